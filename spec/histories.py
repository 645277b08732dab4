"""Histories: recorded traffic, one typed record for each operation and each event.

Owns the form of a record, its required fields and the version of the form. Reads no files and gives
no verdicts. Times are whole numbers: nanoseconds of one clock, or logical time. Intervals may
overlap: the recorded operation happened at some moment from `start` to `end`, both included. An
operation that was never answered has no `end`: it happened after its start, or not at all.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

VERSION: Final = 1
"""The version of the form; a history of another version is refused."""

NEVER: Final = 2**62
"""Later than every time; tables use it as the end of an operation that has none."""

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=NEVER)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Result: TypeAlias = Literal["ok", "failed", "unknown"]
"""A `failed` operation did not happen; an `unknown` one may have happened."""

Kind: TypeAlias = Literal[
    "declare",
    "publish",
    "consume",
    "cancel",
    "deliver",
    "empty",
    "get",
    "acknowledge",
    "release",
    "reject",
    "extend",
    "close",
    "purge",
    "delete",
    "crash",
    "restart",
    "drained",
]


class Record(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One operation or event of a run; `MEANINGS` says what each kind means.

    A message's name is unique in its queue and run. A consumer's name is unique on its channel and
    queue while the consumer is subscribed; a channel's name is unique while the channel is open. A
    get counts as a consumer with a name of its own.

    Attributes:
        position: counts the deliveries to a consumer from 0, in the order of their arrival there; a
            settlement names the delivery that it settles.
        start: of a delivery, the earliest moment at which the broker can have made it: after the
            subscription, and when the consumer had room (`spec/earliest.py`).
        end: of a delivery, when it was seen.
        window: how many unsettled messages a consumer may hold; None, and 0 as AMQP 0-9-1 has it,
            without a limit.
        levels: how many levels of priority a queue has, None where it is first in, first out.
        returns: whether a returned message takes its original place or another one.
        lease: how long a queue lets a message be held, in the unit of the times; None for as long
            as the holder likes.
        unordered: whether a queue promises no order.
        may_drop: whether the queue may drop messages by itself, on expiry or above a length limit.
        selective: whether a consumer takes some messages only.
    """

    op: Kind
    run: Name = "run"
    queue: Name | None = None
    message: Name | None = None
    producer: Name | None = None
    consumer: Name | None = None
    channel: Name | None = None
    start: Time
    end: Time | None = None
    position: Count | None = None
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)] = 4
    size: Count = 0
    persistent: bool = False
    redelivered: bool | None = None
    mode: Literal["acknowledge", "automatic", "browse"] = "acknowledge"
    window: Count | None = None
    levels: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    durable: bool = False
    returns: Literal["original", "elsewhere"] = "original"
    lease: Time | None = None
    unordered: bool = False
    may_drop: bool = False
    selective: bool = False
    outcome: Result = "ok"


MEANINGS: Final[dict[Kind, str]] = {
    "declare": "A queue was made.",
    "publish": "A message was handed over; `ok` is the broker's confirm that it has it.",
    "consume": "A consumer or a browser subscribed.",
    "cancel": "A consumer left; what it holds it keeps.",
    "deliver": "A consumer or a get was given a message, or a browser shown it.",
    "empty": "A get found nothing.",
    "get": "A get whose answer was not recorded: it may have taken any one message, or none.",
    "acknowledge": "A delivery was settled: the message is done with.",
    "release": "A delivery was settled: the message returned to the queue.",
    "reject": "A delivery was settled: the message was discarded.",
    "extend": "The lease of a delivery was renewed.",
    "close": "A channel closed, and all that its consumers and gets held returned.",
    "purge": "All messages that were available were dropped.",
    "delete": "A queue was dropped with all that was in it.",
    "crash": "The broker stopped without warning.",
    "restart": "The broker came back from what is durable.",
    "drained": "A consumer without limits found a queue empty, and none of its messages was held, "
    "except by gets without an answer.",
}

MUST_HAVE: Final[dict[Kind, tuple[str, ...]]] = {
    "declare": ("queue",),
    "publish": ("queue", "message"),
    "consume": ("queue", "consumer"),
    "cancel": ("consumer",),
    "deliver": ("queue", "message", "consumer", "position", "end"),
    "empty": ("queue", "consumer", "end"),
    "get": ("queue", "consumer"),
    "acknowledge": ("queue", "message", "consumer", "position"),
    "release": ("queue", "message", "consumer", "position"),
    "reject": ("queue", "message", "consumer", "position"),
    "extend": ("queue", "message", "consumer", "position"),
    "close": ("channel",),
    "purge": ("queue",),
    "delete": ("queue",),
    "crash": (),
    "restart": (),
    "drained": ("queue", "end"),
}
"""The fields that a record of each kind must have."""

CONTROL: Final[frozenset[Kind]] = frozenset(
    {
        "declare",
        "consume",
        "cancel",
        "get",
        "close",
        "purge",
        "delete",
        "crash",
        "restart",
        "drained",
    }
)
"""The kinds that do not concern a single message; a history has few of them."""


def what_is_wrong(record: Record) -> str | None:
    """Return in one line why a record is invalid by itself, or None."""
    for field in MUST_HAVE[record.op]:
        if getattr(record, field) is None:
            return f"{record.op} has no {field}"
    if record.end is not None and record.end < record.start:
        return f"{record.op} ends at {record.end}, before it starts at {record.start}"
    return None

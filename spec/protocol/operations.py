"""The operations of driver protocol 1, one frozen struct each.

Owns the fields and their meaning in one sentence each; the details are in
`docs/reference/protocol.md`. A candidate in this process gets these structs, and a driver gets the
same structs as JSON lines, so that the two interfaces cannot drift apart.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.messages import Credit, Message, Order, PropertyValue

ConsumeMode: TypeAlias = Literal["acknowledge", "automatic", "browse"]
GetMode: TypeAlias = Literal["acknowledge", "automatic"]
Overflow: TypeAlias = Literal["refuse", "drop_head"]
Selector: TypeAlias = dict[str, PropertyValue]


class Reset(msgspec.Struct, frozen=True, tag_field="op", tag="reset"):
    """Forget everything, volatile and durable; ends a crash."""


class Declare(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="declare"):
    """Make a queue; again with equal arguments it is `ok` without effect, with others `refused`.

    A message is held for `lease_s` seconds, then it returns. One that was delivered `deliveries`
    times and returns once more leaves the queue: for `dead_letters`, another queue, if that is
    given. A queue with `length` available messages refuses the next, or drops its first.
    """

    queue: str
    order: Order
    durable: bool = False
    auto_delete: bool = False
    lease_s: int | None = None
    deliveries: int | None = None
    dead_letters: str | None = None
    length: int | None = None
    overflow: Overflow | None = None


class Publish(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="publish"):
    """Hand over a message; `ok` means that the broker has taken responsibility for it.

    The broker delivers it only from `not_before_s` seconds on and before `expires_s` seconds, both
    of the candidate's own clock, which only `advance` moves.
    """

    queue: str
    message: Message
    not_before_s: int | None = None
    expires_s: int | None = None


class Consume(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="consume"):
    """Subscribe; a consumer of mode `browse` neither acquires nor consumes.

    A consumer of several queues names them all in `queues`, the first in `queue` too; for one queue
    the list is empty. A queue with an `exclusive` consumer takes no other consumer.
    """

    channel: str
    queue: str
    consumer: str
    mode: ConsumeMode = "acknowledge"
    credit: Credit = Credit()
    selector: Selector | None = None
    priority: int = 0
    auto_close: bool = False
    queues: tuple[str, ...] = ()
    exclusive: bool = False

    @property
    def selects(self) -> bool:
        """Whether the consumer wants some messages only."""
        return bool(self.selector)


class SetCredit(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="credit"):
    """Replace the whole window of one consumer, or of one channel, which its consumers share."""

    consumer: str | None = None
    channel: str | None = None
    messages: int | None = None
    bytes: int | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="cancel"):
    """Stop delivering to a consumer; what it holds stays acquired."""

    consumer: str


class Get(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="get"):
    """Take at most one message; this answer reports its delivery, with `consumer` None."""

    channel: str
    queue: str
    mode: GetMode = "acknowledge"


class Acknowledge(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="acknowledge"):
    """Settle one delivery: the message is acknowledged and gone."""

    delivery: str


class Release(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="release"):
    """Settle one delivery: the message returns to the queue, to be seen again after `delay_s`."""

    delivery: str
    delay_s: int | None = None


class Reject(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="reject"):
    """Settle one delivery: the message is discarded."""

    delivery: str


class Extend(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="extend"):
    """Renew the lease of one delivery: it ends the queue's `lease_s` seconds from now."""

    delivery: str


class CloseChannel(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="close_channel"):
    """Cancel the channel's consumers and release all that they hold, as one step."""

    channel: str


class Purge(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="purge"):
    """Drop all available messages; acquired ones stay, and a release returns them to the queue."""

    queue: str


class Delete(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Drop the queue and everything in it, acquired messages included."""

    queue: str


class Crash(msgspec.Struct, frozen=True, tag_field="op", tag="crash"):
    """Stop without warning."""


class Restart(msgspec.Struct, frozen=True, tag_field="op", tag="restart"):
    """Recover the durable queues and messages."""


class Drain(msgspec.Struct, frozen=True, tag_field="op", tag="drain"):
    """Work until no further event is possible, report all events, then answer."""


class Flush(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="flush"):
    """Deliver to one consumer until its credit or the queue ends, then answer."""

    consumer: str


class Advance(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="advance"):
    """Move the candidate's clock."""

    seconds: int


class Inspect(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="inspect"):
    """Ask for the optional grey-box view of one queue."""

    queue: str


Settlement: TypeAlias = Acknowledge | Release | Reject
Operation: TypeAlias = (
    Reset
    | Declare
    | Publish
    | Consume
    | SetCredit
    | Cancel
    | Get
    | Acknowledge
    | Release
    | Reject
    | Extend
    | CloseChannel
    | Purge
    | Delete
    | Crash
    | Restart
    | Drain
    | Flush
    | Advance
    | Inspect
)


def name_of(operation: Operation) -> str:
    """Return the operation's name in the protocol, such as ``close_channel``."""
    return str(type(operation).__struct_config__.tag)

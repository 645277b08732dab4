"""The traces of RabbitMQ's tracing plugin, in its formats `json` and `text`.

A trace shows each publish with the queues to which it was routed, and each delivery with its queue
and channel. It shows no acknowledgement, redelivery, confirm or loss. Its times are those of the
tracer, which writes some time after the channel (rabbitmq-server 3.10 to 4.1:
deps/rabbit/src/rabbit_trace.erl and deps/rabbitmq_tracing/src/rabbit_tracing_consumer.erl). It can
be judged by RabbitMQ's guarantee of order: messages published on one channel come in that order to
each channel that gets them from one queue (documentation, Semantics of AMQP 0-9-1, "Message
ordering guarantees").

So each publishing channel is a run of its own. It is further divided by priority, since the levels
of a queue are unknown: each part of a first-in first-out queue is first in, first out. In a run the
publishes are at the numbers of their lines. A delivery may have been made at any time from its
publish on; positions give the order of the deliveries to one channel. The rest stays open: queues
may drop messages and return them elsewhere, and a message delivered again may have been released
before. A consumer is a channel and a queue, since a trace names none. The lines of one channel are
in the order in which it wrote them, also in a cluster.

Messages sent to a channel but not handed on when it closed return without a line (seen with
RabbitMQ 3.10.8). So the first line of a delivery need not be the first delivery, and the order of
returned messages is unknown. Quorum queues count returns in a header, `x-delivery-count`: if it is
seen at one of a queue's messages, those of its messages without it did not return. For other queues
the user must say that the trace is `STEADY`: no channel was closed that still was sent messages,
and no node stopped. Otherwise the publishes of their messages are left open.

Messages are distinguished by a property (by default `message_id`), by a header, or by their
payload, if the user knows that no two are alike. An ambiguous message is rejected, and so is a
dead-lettered one, whose routing a trace does not show. A trace is read twice, first to see which
messages can be distinguished.

One case looks wrong though RabbitMQ does it: a channel that has a consumer and gets from the same
queue at the same time may be given the answer to the get before what it was sent earlier.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from brokerproof.pipeline.readers.blocks import blocks, numbered_lines
from brokerproof.pipeline.readers.firehose_text import is_text_form, text_rows
from brokerproof.pipeline.readers.json_lines import UNDECODABLE, complaint, rejected_line
from brokerproof.pipeline.readers.rejected_rows import Category, Rejected, reject
from brokerproof.pipeline.readers.rows import Used, name_of
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record

PUBLISHES_MAX: Final = 50_000_000
"""The largest number of publishes in one file; each needs 28 bytes of memory."""

PRIORITIES: Final = range(256)
"""The values of an octet."""

TOLD_APART_BY: Final = "message_id"
STEADY: Final = "steady"
RETURNS: Final = ("x-delivery-count", "x-acquired-count")
"""Headers in which quorum queues count the returns of a message; no header is none."""

PAYLOAD: Final = "payload"
HEADER_PREFIX: Final = "header="


class Row(msgspec.Struct, frozen=True):
    """The fields of a trace's line that are read."""

    type: Literal["published", "received"]
    vhost: str
    connection: str
    channel: int
    properties: dict[str, object] | tuple[()] = ()
    queue: str = "none"
    routed_queues: tuple[str, ...] | Literal["none"] = ()
    payload: str = ""

    @property
    def headers(self) -> dict[str, object]:
        """The message's own headers."""
        found = dict(self.properties).get("headers")
        return found if isinstance(found, dict) else {}

    @property
    def has_returned(self) -> bool:
        """Whether its headers say that it returned to its queue before."""
        return any(self.headers.get(name) for name in RETURNS)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that it is about; a text instead of a list says that there are none."""
        if self.type == "received":
            return (name_of(self.queue),)
        return tuple(map(name_of, self.routed_queues)) if self.routed_queues != "none" else ()

    @property
    def priority(self) -> int:
        """The message's priority; RabbitMQ takes a missing one as 0."""
        found = dict(self.properties).get("priority", 0)
        return found if isinstance(found, int) else -1


Numbered: TypeAlias = tuple[int, Row | Rejected]
Complaint: TypeAlias = tuple[Category, str]

_decode = msgspec.json.Decoder(Row).decode


def read_as(path: Path, argument: str) -> Iterator[Used | Rejected]:
    """Yield the content of a trace's rows; raises `UnreadableHistory`.

    The argument names the property that distinguishes messages, or `STEADY`, or both with a comma.
    """
    words = [word for word in argument.split(",") if word]
    identities = [word for word in words if word != STEADY] or [TOLD_APART_BY]
    if len(identities) > 1:
        raise UnreadableHistory(f"messages are told apart by one thing, not by {argument!r}")
    if identities == ["header="]:
        raise UnreadableHistory("header= is without a name; write header=NAME")
    yield from read(path, identities[0], is_steady=STEADY in words)


def read(
    path: Path, told_apart_by: str = TOLD_APART_BY, *, is_steady: bool = False
) -> Iterator[Used | Rejected]:
    """Yield the content of a trace's rows; raises `UnreadableHistory`."""
    found = _find(path, told_apart_by, is_steady=is_steady)
    for line, row in _rows(path):
        if isinstance(row, Rejected):
            yield row
            continue
        said = _why_not(row, told_apart_by) or found.said(line, row, _identity(row, told_apart_by))
        yield said if isinstance(said, Used) else reject(*said, str(path), line)


def _rows(path: Path) -> Iterator[Numbered]:
    beginning = next(iter(blocks(path)), None)
    if beginning is not None and is_text_form(beginning.lines):
        for line, fields in text_rows(path):
            yield line, _row(path, line, fields)
        return
    for line, text in numbered_lines(path):
        try:
            yield line, _decode(text)
        except UNDECODABLE as error:
            yield line, rejected_line(error, str(path), line, text)


def _row(path: Path, line: int, fields: dict[str, object] | str) -> Row | Rejected:
    if isinstance(fields, str):
        return reject("unreadable", fields, str(path), line)
    try:
        return msgspec.convert(fields, Row)
    except msgspec.ValidationError as error:
        return reject(*complaint(error), str(path), line)


def _identity(row: Row, told_apart_by: str) -> str | None:
    """Return the name of a message, None if it has none."""
    if told_apart_by == PAYLOAD:
        return hashlib.sha256(row.payload.encode("utf-8", "surrogatepass")).hexdigest()
    if told_apart_by.startswith(HEADER_PREFIX):
        found = row.headers.get(told_apart_by.removeprefix(HEADER_PREFIX))
    else:
        found = dict(row.properties).get(told_apart_by)
    return name_of(str(found)) if found not in (None, "") else None


def _why_not(row: Row, told_apart_by: str) -> Complaint | None:
    """Return why a row cannot be used in any trace, or None."""
    if "x-stream-offset" in row.headers:
        return "about something else", "a stream is no queue: it keeps what it gives"
    if "x-death" in row.headers:
        return "refers to nothing", "a message was dead-lettered, which a trace does not show"
    if row.priority not in PRIORITIES:
        return "wrong value", f"no message has priority {row.priority}"
    if "" in row.queues:
        return "wrong value", "a queue has no name"
    if _identity(row, told_apart_by) is None:
        return "not told apart", f"the message has no {told_apart_by}"
    return None


@dataclass
class _Names:
    """Numbers for recurring names, in the order of first occurrence."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]


def _run(path: Path, row: Row) -> str:
    of = f"{row.vhost} {row.connection} ({row.channel}) priority {row.priority}"
    return name_of(f"{path} {of}")


def _key(row: Row, queue: str, message: str) -> int:
    text = f"{row.vhost}\0{queue}\0{message}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _find(path: Path, told_apart_by: str, *, is_steady: bool) -> _Trace:
    """Read a trace for its publishes and returns."""
    keys, lines, runs = array("q"), array("q"), array("i")
    named = _Names()
    returned: dict[int, tuple[str, str]] = {}
    copied: set[int] = set()
    for line, row in _rows(path):
        if isinstance(row, Rejected) or _why_not(row, told_apart_by):
            continue
        message = _identity(row, told_apart_by)
        assert message is not None
        for queue in row.queues:
            key = _key(row, queue, message)
            if row.type == "received":
                if row.has_returned:
                    returned[key] = (row.vhost, queue)
                continue
            if row.has_returned:
                copied.add(key)
            keys.append(key)
            lines.append(line)
            runs.append(named.number(_run(path, row)))
        if len(keys) > PUBLISHES_MAX:
            raise UnreadableHistory(f"{path}: more than {PUBLISHES_MAX} publishes; split the file")
    found, first, counts = np.unique(
        np.array(keys, dtype=np.int64), return_index=True, return_counts=True
    )
    came_back = np.array([*returned, *copied], dtype=np.int64)
    return _Trace(
        keys=found,
        is_one=counts == 1,
        came_back=np.isin(found, came_back),
        counting={queue for key, queue in returned.items() if key not in copied},
        is_steady=is_steady,
        lines=np.array(lines, dtype=np.int64)[first],
        run_of=np.array(runs, dtype=np.int32)[first],
        runs=named.names,
        subscriber=np.full(len(found), -1, dtype=np.int32),
        position=np.zeros(len(found), dtype=np.int32),
    )


@dataclass
class _Trace:
    """The publishes by the digest of queue and message, and the last consumer of each.

    `counting` are the queues, each with its virtual host, that count returns. Two messages with the
    same digest are ambiguous, which is sound.
    """

    keys: npt.NDArray[np.int64]
    is_one: npt.NDArray[np.bool_]
    came_back: npt.NDArray[np.bool_]
    counting: set[tuple[str, str]]
    is_steady: bool
    lines: npt.NDArray[np.int64]
    run_of: npt.NDArray[np.int32]
    runs: list[str]
    subscriber: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    subscribers: _Names = field(default_factory=_Names)
    given: dict[tuple[str, str], int] = field(default_factory=dict)
    declared: set[tuple[str, str]] = field(default_factory=set)

    def said(self, line: int, row: Row, message: str | None) -> Used | Complaint:
        """Return the content of a row, or why it has none."""
        assert message is not None
        places = {queue: self._place(row, queue, message) for queue in row.queues}
        told = {q: at for q, at in places.items() if at is not None and self.is_one[at]}
        if places and not told:
            if None in places.values():
                return "refers to nothing", "the trace does not show that it was published"
            return "not told apart", "the queue was given another message of the same name"
        records: list[Record] = []
        for queue, at in told.items():
            run = self.runs[self.run_of[at]]
            records += self._declared(run, queue)
            if row.type == "published":
                stays = self.is_steady or (row.vhost, queue) in self.counting
                is_open = bool(self.came_back[at]) or not stays
                records.append(_publish(run, queue, message, line, row, is_open=is_open))
            else:
                records += self._given(run, queue, message, at, line, row)
        return Used(line, tuple(records))

    def _place(self, row: Row, queue: str, message: str) -> int | None:
        key = _key(row, queue, message)
        at = int(np.searchsorted(self.keys, key))
        return at if at < len(self.keys) and self.keys[at] == key else None

    def _declared(self, run: str, queue: str) -> Iterator[Record]:
        if (run, queue) not in self.declared:
            self.declared.add((run, queue))
            yield Record(
                op="declare",
                run=run,
                queue=queue,
                start=0,
                end=0,
                returns="elsewhere",
                may_drop=True,
            )

    def _given(
        self, run: str, queue: str, message: str, at: int, line: int, row: Row
    ) -> Iterator[Record]:
        published = int(self.lines[at])
        consumer = name_of(f"{row.connection} ({row.channel}) {queue}")
        seen = max(line, published)
        if (run, consumer) not in self.given:
            yield Record(op="consume", run=run, queue=queue, consumer=consumer, start=0, end=seen)
        position = self.given.setdefault((run, consumer), 0)
        self.given[run, consumer] = position + 1
        if self.subscriber[at] >= 0:
            before = self.subscribers.names[self.subscriber[at]]
            yield Record(
                op="release",
                run=run,
                queue=queue,
                message=message,
                consumer=before,
                position=int(self.position[at]),
                start=published,
                outcome="unknown",
            )
        self.subscriber[at], self.position[at] = self.subscribers.number(consumer), position
        yield Record(
            op="deliver",
            run=run,
            queue=queue,
            message=message,
            consumer=consumer,
            position=position,
            start=published,
            end=seen,
            priority=row.priority,
        )


def _publish(run: str, queue: str, message: str, line: int, row: Row, *, is_open: bool) -> Record:
    return Record(
        op="publish",
        run=run,
        queue=queue,
        message=message,
        producer=name_of(f"{row.connection} ({row.channel})"),
        start=line,
        end=None if is_open else line,
        priority=row.priority,
        persistent=dict(row.properties).get("delivery_mode") == 2,
        outcome="unknown" if is_open else "ok",
    )

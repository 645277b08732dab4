"""Messaging spans of OpenTelemetry, in OTLP's JSON Lines, as the collector's file exporter writes.

A row is a span with attributes `messaging.*`; a line has any number of them, and other spans are no
rows. Spans are written by the clients, each by its own clock, and name no broker's step. So:

* A `send` is a publish. RabbitMQ's clients do not wait for an answer, so theirs are left open.
* A `receive`, or a `process` where no `receive` shows the message, is a delivery: seen when the one
  ended or the other began, and made at any time from the publish on, since clients fetch ahead. A
  receive of Amazon SQS asks the broker, and so does every one if the user says `UNBUFFERED`. A span
  in another delivery of its message is the same delivery.
* A `settle` that accepts is an acknowledgement. It is certain only if the message had one delivery
  until then, and the client had an answer. A delivery of several without one may have come back.
* All times are widened by the most that two clocks may differ.
* A span that was exported twice counts once.

A message is published in each queue from which it was received, since a producer may name an
exchange or a topic. Consumers, positions, priorities, redelivery, returns and losses are not in
spans (OpenTelemetry, semantic conventions for messaging spans; older names are read, too).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from brokerproof.pipeline.readers.blocks import numbered_lines
from brokerproof.pipeline.readers.json_lines import UNDECODABLE, complaint, rejected_line
from brokerproof.pipeline.readers.rejected_rows import Category, Rejected, reject
from brokerproof.pipeline.readers.rows import Used, name_of
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import NEVER, Record, Time

BEGINS: Final = b'{"resourceSpans"'

SPANS_MAX: Final = 2_000_000
"""The largest number of messaging spans in a file; each needs about a kilobyte of memory."""

SKEW_MS: Final = 100
"""How much the clocks of clients may differ, if the user does not say it."""

UNBUFFERED: Final = "unbuffered"
NS_OF_A_MS: Final = 1_000_000

LOGS: Final = frozenset({"kafka", "eventhubs"})
"""Systems that keep what they give, so they are no queues."""

UNANSWERED: Final = frozenset({"rabbitmq"})
"""Systems whose clients do not wait until the broker has taken a message or a settlement."""

PULLED: Final = frozenset({"aws_sqs"})
"""Systems whose clients fetch nothing ahead."""

Work: TypeAlias = Literal["send", "receive", "process", "settle"]

OLDER: Final = {"publish": "send", "deliver": "process"}
ACCEPTS: Final = frozenset({"ack", "acknowledge", "accept", "complete", "delete"})
ERROR_STATUS: Final = (2, "STATUS_CODE_ERROR")
PRODUCER: Final = (4, "SPAN_KIND_PRODUCER")


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | None = None


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Value = _Value()


class _Attributes(msgspec.Struct, frozen=True):
    attributes: tuple[_Attribute, ...] = ()

    def named(self, *names: str) -> str:
        """Return the first of some attributes that there is, as a text; nothing without any."""
        known = {each.key: each.value for each in self.attributes}
        values = (known[name] for name in names if name in known)
        texts = (v.string_value if v.int_value is None else str(v.int_value) for v in values)
        return next(filter(None, texts), "")

    @property
    def message(self) -> str:
        """The key of a message."""
        return self.named("messaging.message.id", "messaging.message_id")


class _Status(msgspec.Struct, frozen=True):
    code: int | str = 0


class _Span(_Attributes, frozen=True, rename="camel", kw_only=True):
    start_time_unix_nano: Time
    end_time_unix_nano: Time
    trace_id: str = ""
    span_id: str
    parent_span_id: str = ""
    kind: int | str = 0
    links: tuple[_Attributes, ...] = ()
    status: _Status = _Status()


class _ScopeSpans(msgspec.Struct, frozen=True):
    spans: tuple[msgspec.Raw, ...] = ()


class _ResourceSpans(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Attributes = _Attributes()
    scope_spans: tuple[_ScopeSpans, ...] = ()


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    resource_spans: tuple[_ResourceSpans, ...] | None = None
    resource_logs: msgspec.Raw = msgspec.Raw()
    resource_metrics: msgspec.Raw = msgspec.Raw()


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_span = msgspec.json.Decoder(_Span, strict=False).decode  # 64 bits are texts in OTLP


class _ClientStep(NamedTuple):
    """A span about messages: its place, what the client did, and how it ended."""

    line: int
    work: Work
    queue: str
    messages: tuple[str, ...]
    start: int
    end: int
    failed: bool
    span: str
    parent: str
    client: str
    system: str
    accepts: bool


Complaint: TypeAlias = tuple[Category, str]
Key: TypeAlias = tuple[str, str]
"""A queue and a message."""


def read_as(path: Path, argument: str) -> Iterator[Used | Rejected]:
    """Yield the content of a file's messaging spans; raises `UnreadableHistory`.

    The argument says by how many milliseconds clocks may differ, or `UNBUFFERED`, or both.
    """
    words = [word for word in argument.split(",") if word]
    numbers = [word for word in words if word != UNBUFFERED]
    if len(numbers) > 1 or not all(word.isdecimal() and len(word) < 10 for word in numbers):
        raise UnreadableHistory(
            f"behind otel: stands how many milliseconds clocks may differ, or {UNBUFFERED}, or "
            f"both with a comma, not {argument!r}"
        )
    skew = int(numbers[0] if numbers else SKEW_MS) * NS_OF_A_MS
    rows = list(_once(_rows(path)))
    steps = [row for row in rows if isinstance(row, _ClientStep)]
    shown = _Shown.of(steps, name_of(str(path)), skew, is_unbuffered=UNBUFFERED in words)
    for row in rows:
        if not isinstance(row, _ClientStep):
            yield row
            continue
        records = shown.records(row)
        if isinstance(records, str):
            yield reject("refers to nothing", records, str(path), row.line)
        else:
            yield Used(row.line, tuple(records))


def _once(
    rows: Iterator[_ClientStep | Used | Rejected],
) -> Iterator[_ClientStep | Used | Rejected]:
    """Yield rows; a span that comes again was exported again, and says nothing new."""
    known = set[str]()
    for row in rows:
        if not isinstance(row, _ClientStep):
            yield row
        elif row.span in known:
            yield Used(row.line)
        else:
            known.add(row.span)
            yield row


def _rows(path: Path) -> Iterator[_ClientStep | Used | Rejected]:
    many = 0
    for number, line in numbered_lines(path):
        try:
            found = _decode_line(line)
        except UNDECODABLE as error:
            yield rejected_line(error, str(path), number, line)
            continue
        if found.resource_spans is None:
            is_other = bytes(found.resource_logs) or bytes(found.resource_metrics)
            why: Complaint = ("about something else", "these are no spans")
            none: Complaint = ("missing", "there is no resourceSpans")
            yield reject(*(why if is_other else none), str(path), number)
        for resource in found.resource_spans or ():
            client = resource.resource.named("service.name")
            client += f" {resource.resource.named('service.instance.id', 'host.name')}".rstrip()
            for text in (bytes(raw) for each in resource.scope_spans for raw in each.spans):
                if b'"messaging.' in text:
                    many += 1
                    yield _row(str(path), number, text, client)
        if many > SPANS_MAX:
            raise UnreadableHistory(
                f"{path}: more than {SPANS_MAX} messaging spans; split the file"
            )


def _row(file: str, line: int, text: bytes, client: str) -> _ClientStep | Used | Rejected:
    try:
        span = _decode_span(text)
    except UNDECODABLE as error:
        return reject(*complaint(error), file, line, text.decode("utf-8", "replace"))
    found = _step(span, line, client)
    return found if isinstance(found, _ClientStep | Used) else reject(*found, file, line)


def _step(span: _Span, line: int, client: str) -> _ClientStep | Used | Complaint:
    """Return what a span says of messages, or why it says nothing."""
    system = span.named("messaging.system")
    work = span.named("messaging.operation.type", "messaging.operation")
    work = work or ("send" if span.kind in PRODUCER else "")
    work = OLDER.get(work, work)
    queue = span.named("messaging.destination.name", "messaging.destination")
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    named = (span.message, *(link.message for link in span.links))
    messages = tuple(dict.fromkeys(map(name_of, filter(None, named))))
    if system in LOGS:
        return "about something else", f"{system} is no queue: it keeps what it gives"
    if not work:
        return "missing", "there is no messaging.operation.type"
    if work == "create" or span.named("messaging.batch.message_count") == "0":
        return Used(line)
    if work not in get_args(Work):
        return "about something else", f"a span of {work} is about no message"
    if end < start:
        return "ends before it starts", f"it ends at {end}, before it starts at {start}"
    if not queue:
        return "missing", "there is no messaging.destination.name"
    if not messages:
        return "not told apart", "there is no messaging.message.id"
    shared = ("messaging.destination.subscription.name", "messaging.consumer.group.name")
    if work != "send" and (part := span.named(*shared)):
        queue += f" / {part}"
    named_so = span.named("messaging.servicebus.disposition_status", "messaging.operation.name")
    return _ClientStep(
        line,
        msgspec.convert(work, Work),
        sys.intern(name_of(queue)),
        messages,
        start,
        end,
        span.status.code in ERROR_STATUS or bool(span.named("error.type")),
        f"{span.trace_id}/{span.span_id}",
        f"{span.trace_id}/{span.parent_span_id}",
        sys.intern(f"{client} {span.named('messaging.client.id')}".strip() or "client"),
        sys.intern(system),
        named_so in ACCEPTS,
    )


@dataclass(frozen=True)
class _Shown:
    """What the spans of a file show of each message.

    `sent` is when each was first sent, `sent_to` the queues named by producers, `received_from` the
    queues of each message, and `given` its deliveries in each queue. `accepted` are the deliveries
    that were certainly acknowledged.
    """

    run: str
    skew: int
    is_unbuffered: bool
    sent: dict[str, int]
    sent_to: set[Key]
    received_from: dict[str, list[str]]
    given: dict[Key, list[_ClientStep]]
    accepted: set[tuple[Key, _ClientStep]]

    @classmethod
    def of(
        cls, steps: Iterable[_ClientStep], run: str, skew: int, *, is_unbuffered: bool
    ) -> _Shown:
        """Return what some spans show."""
        shown = cls(run, skew, is_unbuffered, {}, set(), {}, {}, set())
        seen = defaultdict[Key, list[_ClientStep]](list)
        for step in steps:
            for message in step.messages:
                if step.work == "send":
                    shown.sent[message] = min(step.start, shown.sent.get(message, step.start))
                    shown.sent_to.add((step.queue, message))
                elif step.work != "settle":
                    seen[step.queue, message].append(step)
        for (queue, message), of_message in seen.items():
            shown.received_from.setdefault(message, []).append(queue)
            shown.given[queue, message] = _deliveries(of_message)
        for step in steps:
            for message in step.messages if step.work == "settle" else ():
                key, begun = shown._settled(step, message)
                if step.accepts and len(begun) == 1 and not _is_open(step):
                    shown.accepted.add((key, begun[0]))
        return shown

    def records(self, step: _ClientStep) -> list[Record] | str:
        """Return the records of a span, or why it has none."""
        if step.work == "send":
            return [self._publish(step, m, q) for m in step.messages for q in self._queues(step, m)]
        known = [message for message in step.messages if message in self.sent]
        if not known:
            return "no span shows that its message was sent"
        if step.work != "settle":
            return [each for message in known for each in self._given(step, message)]
        if not any(self._settled(step, message)[1] for message in known):
            return "no span shows that its message was received before"
        return [each for message in known for each in self._acknowledged(step, message)]

    def _queues(self, step: _ClientStep, message: str) -> list[str]:
        """Return the queues into which a message was sent, as far as it was received from them."""
        return [
            queue
            for queue in self.received_from.get(message, ())
            if queue == step.queue or (queue, message) not in self.sent_to
        ] or [step.queue]

    def _publish(self, step: _ClientStep, message: str, queue: str) -> Record:
        is_open = _is_open(step)
        return Record(
            op="publish",
            run=self.run,
            queue=queue,
            message=message,
            producer=name_of(step.client),
            start=self._earliest(step.start),
            end=None if is_open else self._latest(step.end),
            outcome="unknown" if is_open else "ok",
        )

    def _given(self, step: _ClientStep, message: str) -> Iterator[Record]:
        key = step.queue, message
        if step not in self.given[key]:
            return
        seen = self._latest(step.end if step.work == "receive" else step.start)
        is_asked = step.work == "receive" and (self.is_unbuffered or step.system in PULLED)
        start = min(seen, self._earliest(step.start if is_asked else self.sent[message]))
        yield self._about(key, step, "deliver", start, seen)
        if len(self.given[key]) > 1 and (key, step) not in self.accepted:
            yield self._about(key, step, "release", start, None)

    def _settled(self, step: _ClientStep, message: str) -> tuple[Key, list[_ClientStep]]:
        """Return the queue and message of a settlement, and the deliveries that it may settle."""
        queues = self.received_from.get(message, [])
        queue = queues[0] if len(queues) == 1 else step.queue
        given = self.given.get((queue, message), [])
        return (queue, message), [e for e in given if e.start <= step.end + 2 * self.skew]

    def _acknowledged(self, step: _ClientStep, message: str) -> Iterator[Record]:
        key, begun = self._settled(step, message)
        is_known = len(begun) == 1 and (not _is_open(step) or len(self.given[key]) == 1)
        if step.accepts and is_known:
            end = None if _is_open(step) else self._latest(step.end)
            yield self._about(key, begun[0], "acknowledge", self._earliest(step.start), end)

    def _about(
        self,
        key: Key,
        given: _ClientStep,
        op: Literal["deliver", "release", "acknowledge"],
        start: int,
        end: int | None,
    ) -> Record:
        """Return a record about a delivery; each is to a consumer of its own."""
        queue, message = key
        return Record(
            op=op,
            run=self.run,
            queue=queue,
            message=message,
            consumer=name_of(f"{given.client} {given.span} {message}"),
            position=0,
            start=start,
            end=end,
            outcome="ok" if end is not None else "unknown",
        )

    def _earliest(self, time: int) -> int:
        return max(0, time - self.skew)

    def _latest(self, time: int) -> int:
        return min(NEVER - 1, time + self.skew)


def _is_open(step: _ClientStep) -> bool:
    """Return whether a step may have happened or not."""
    return step.failed or step.system in UNANSWERED


def _deliveries(of_message: list[_ClientStep]) -> list[_ClientStep]:
    """Return the spans of a message's receipt that are deliveries, each once."""
    received = [step for step in of_message if step.work == "receive"] or of_message
    spans = {step.span for step in received}
    return [step for step in received if step.parent not in spans]

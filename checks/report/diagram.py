"""A counterexample as a sequence diagram: lanes, arrows between them, and the queues.

The file decides which lanes there are and which arrow each operation and event is; the page decides
how it looks. The client has one lane and each consumer its own: its settlements start there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from brokerproof.checks.report.content import EntryShown, QueueShown, StepShown, content_of
from brokerproof.checks.search.counterexamples import Counterexample, Line, texts_of_moves
from brokerproof.checks.trace.moves import Settle, visible
from brokerproof.spec.protocol.answers import (
    Accepted,
    ConsumerClosed,
    Delivered,
    Event,
    LeaseExpired,
    QueueDeleted,
)
from brokerproof.spec.protocol.operations import Consume, Publish

CLIENT, BROKER = 0, 1

ARROWS_MAX = 100
"""The most events of one step that are drawn; the counterexample's file has all."""

ArrowKind: TypeAlias = Literal["operation", "delivery", "event", "error"]


@dataclass(frozen=True)
class Arrow:
    """An arrow from one lane to another; `marked` if it concerns a witness."""

    start: int
    end: int
    text: str
    kind: ArrowKind
    marked: bool = False

    @property
    def left(self) -> int:
        """The grid line of its left end: a lane has two columns, and arrows end in its middle."""
        return 2 * min(self.start, self.end) + 2

    @property
    def right(self) -> int:
        """The grid line of its right end."""
        return 2 * max(self.start, self.end) + 2

    @property
    def leftwards(self) -> bool:
        """Whether it points to the left."""
        return self.end < self.start


@dataclass(frozen=True)
class Chip:
    """A message in its queue, as the page shows it."""

    text: str
    state: str
    note: str
    marked: bool


@dataclass(frozen=True)
class Row:
    """One numbered step: its arrows, and the queues after it."""

    number: int
    arrows: tuple[Arrow, ...]
    alive: tuple[bool, ...]
    queues: tuple[tuple[str, tuple[Chip, ...]], ...]
    known: bool
    last: bool


@dataclass(frozen=True)
class Diagram:
    """A counterexample to be drawn; `reason` says why some steps show no queues."""

    lanes: tuple[str, ...]
    rows: tuple[Row, ...]
    reason: str


def diagram_of(found: Counterexample) -> Diagram:
    """Return the diagram of a counterexample."""
    consumers = list(dict.fromkeys(_consumers(found)))
    lanes = {name: number for number, name in enumerate(consumers, BROKER + 1)}
    shown = content_of(found)
    witnesses = frozenset(found.witnesses)
    rows = []
    before: tuple[QueueShown, ...] = ()
    subscribed: frozenset[str] = frozenset()
    # If threads run after the steps, no step is the one that broke the requirement.
    last = len(found.steps) if found.interleaved is None else 0
    texts = texts_of_moves(found.steps)
    for number, line in enumerate(found.steps, 1):
        step = shown.steps[number - 1] if number <= len(shown.steps) else None
        present = subscribed | (step.consumers if step else frozenset(lanes))
        rows.append(
            Row(
                number=number,
                arrows=tuple(
                    _arrows(line, texts[number - 1], lanes, before, witnesses, last=number == last)
                ),
                alive=(True, True, *(name in present for name in consumers)),
                queues=() if step is None else tuple(_queues(step, witnesses)),
                known=step is not None,
                last=number == last,
            )
        )
        if step is not None:
            before, subscribed = step.queues, step.consumers
    names = ("client", "broker", *map(visible, consumers))
    return Diagram(names, tuple(rows), shown.reason)


def _consumers(found: Counterexample) -> Iterator[str]:
    """Yield the consumers named anywhere, also those that never subscribed."""
    for line in found.steps:
        if isinstance(line.move, Consume):
            yield line.move.consumer
        for event in line.events:
            if isinstance(event, Delivered | ConsumerClosed) and event.consumer is not None:
                yield event.consumer


def _arrows(
    line: Line,
    text: str,
    lanes: dict[str, int],
    before: tuple[QueueShown, ...],
    witnesses: frozenset[str],
    *,
    last: bool,
) -> Iterator[Arrow]:
    """Yield the arrows of a step; a plain `ok` is drawn only where it may be the fault."""
    move = line.move
    start, about = CLIENT, ""
    if isinstance(move, Settle):
        about = move.message
        start = lanes.get(_holder_of(move.message, before), CLIENT)
    elif isinstance(move, Publish):
        about = move.message.id
    yield Arrow(start, BROKER, text, "operation", about in witnesses)
    yield from _folded([_told(event, lanes, witnesses) for event in line.events])
    if line.error is not None:
        words = f"{line.error.code}: {line.error.message}".rstrip(": ")
        yield Arrow(BROKER, start, visible(words), "error")
    elif not line.events and (last or line.answered != "ok"):
        # A file from before answers were recorded has their words only.
        yield Arrow(BROKER, start, visible(line.answered), "event")


def _folded(arrows: list[Arrow]) -> Iterator[Arrow]:
    """Draw equal arrows in a row once, with their number; cut at `ARROWS_MAX`."""
    for number, (arrow, equal) in enumerate(itertools.groupby(arrows)):
        times = len(list(equal))
        if number == ARROWS_MAX:
            yield Arrow(BROKER, CLIENT, f"more, {len(arrows)} events in all", "event")
            return
        text = arrow.text if times == 1 else f"{arrow.text} ({times} times)"
        yield replace(arrow, text=text)


def _holder_of(message: str, queues: tuple[QueueShown, ...]) -> str:
    entries = (entry for queue in queues for entry in queue.entries)
    return next((entry.holder for entry in entries if entry.message == message), "")


def _told(event: Event, lanes: dict[str, int], witnesses: frozenset[str]) -> Arrow:
    match event:
        case Delivered(consumer=consumer, message=message, redelivered=redelivered):
            text = visible(message) + (" redelivered" if redelivered else "")
            lane = CLIENT if consumer is None else lanes[consumer]
            return Arrow(BROKER, lane, text, "delivery", message in witnesses)
        case ConsumerClosed(consumer=consumer):
            return Arrow(BROKER, lanes[consumer], "closed", "event")
        case Accepted(message=message):
            text = f"{visible(message)} accepted"
            return Arrow(BROKER, CLIENT, text, "event", message in witnesses)
        case QueueDeleted(queue=queue):
            return Arrow(BROKER, CLIENT, f"{visible(queue)} deleted", "event")
        case LeaseExpired(message=message):
            text = f"lease of {visible(message)} over"
            return Arrow(BROKER, CLIENT, text, "event", message in witnesses)


def _queues(step: StepShown, witnesses: frozenset[str]) -> Iterator[tuple[str, tuple[Chip, ...]]]:
    for queue in step.queues:
        yield visible(queue.queue), tuple(_chip(entry, witnesses) for entry in queue.entries)


def _chip(entry: EntryShown, witnesses: frozenset[str]) -> Chip:
    match entry.state:
        case "available":
            note = "came back" if entry.returned else ""
        case "held":
            note = f"held by {visible(entry.holder)}"
        case "gone":
            note = entry.end
        case "open":
            note = visible(" or ".join(entry.may_be))
    return Chip(visible(entry.message), entry.state, note, entry.message in witnesses)

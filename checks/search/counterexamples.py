"""Counterexamples: a trace that breaks a requirement, to be read, stored and replayed.

The file holds the moves, the answers, and how certain it is that no trace is shorter. Reading
decodes it into typed structures and rejects errors with line or field, like all outside input.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from brokerproof.checks.oracle.explanations import expected_and_seen
from brokerproof.checks.search.findings import Exchange, Run
from brokerproof.checks.search.interleaved import Interleaved, lines_of
from brokerproof.checks.trace.moves import Move, Settle, text_of, visible
from brokerproof.spec.protocol.answers import (
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    Event,
    LeaseExpired,
    QueueDeleted,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import CloseChannel, Consume, Delete, Get, Operation
from brokerproof.spec.requirements import catalogue

Grade: TypeAlias = Literal["product", "sequences", "switches", "not certified"]
"""The search that certifies; `product` and `sequences` search all shorter traces."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """How sure it is that no trace is shorter: the grade of the search, or why there was none.

    Of a run on threads the grade is `switches`, and `operations` are switches between threads.
    """

    grade: Grade
    scope: str = ""
    operations: int = 0
    reason: str = ""

    def __str__(self) -> str:
        if self.grade == "not certified":
            return f"Not certified as shortest: {self.reason}."
        if self.grade == "switches":
            if not self.operations:
                return (
                    f'Shortest: no thread gives way that could go on, in the case "{self.scope}".'
                )
            return (
                f'Shortest: no schedule of the case "{self.scope}" with fewer than '
                f"{self.operations} switches away from a thread that could go on breaks it."
            )
        if self.operations == 1:
            return f'Shortest: a single operation breaks it in the scope "{self.scope}".'
        return (
            f"Shortest: no run of up to {_counted(self.operations - 1)} in the scope "
            f'"{self.scope}" breaks it by itself.'
        )


def _counted(operations: int) -> str:
    return "1 operation" if operations == 1 else f"{operations} operations"


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One numbered step: the move, what was answered in words, and the answer as it came.

    An answer that is plainly `ok` takes no room in a file.
    """

    move: Move
    answered: str
    events: tuple[Event, ...] = ()
    error: Error | None = None
    parked: bool = False

    @property
    def answer(self) -> Answer:
        """The recorded answer."""
        return Answer(self.events, self.error, parked=self.parked)


def line_of(told: Exchange) -> Line:
    """Return a step of a run as a line."""
    answer = told.answer
    words = answer_text(told.move, answer)
    return Line(told.move, words, answer.events, answer.error, answer.parked)


class RecordedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded of an event: in words, between which times, in which line of which file.

    What had no answer has no end, and what is in no file the line 0.
    """

    event: str
    start: int
    end: int | None
    file: str
    line: int

    def __str__(self) -> str:
        until = "on" if self.end is None else f"to {self.end:,}"
        at = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.event}, from {self.start:,} {until}{at}"


class Counterexample(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that breaks a requirement, and what was expected and seen at its last step.

    `again` says how often it was seen again and in how many tries, for a candidate that answers
    differently to the same operations. With `claims`, the candidate's capabilities, the recorded
    answers can be judged again without it; files from before they were kept have none.
    Of what was found in a recording, `recorded` are its events, and `records` is the file below the
    report that has all of them. Of what was found on threads, `steps` come before these begin, and
    `interleaved` is what they did.
    """

    format: Literal["brokerproof-counterexample/1"]
    candidate: str
    requirement: str
    expected: str
    seen: str
    witnesses: tuple[str, ...]
    steps: tuple[Line, ...]
    certificate: Certificate
    also: tuple[str, ...] = ()
    seed: int | None = None
    again: tuple[int, int] | None = None
    claims: Capabilities | None = None
    recorded: tuple[RecordedEvent, ...] = ()
    records: str = ""
    interleaved: Interleaved | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves to replay."""
        return tuple(line.move for line in self.steps)

    @property
    def summary(self) -> str:
        """What was expected and seen, in one line."""
        often = f" ({self.how_often})" if self.how_often else ""
        return visible(f"expected {self.expected}; seen {self.seen}{often}")

    @property
    def how_often(self) -> str:
        """How often it was seen again; empty if each try broke the same requirement."""
        if self.again is None:
            return ""
        times, tries = self.again
        if not tries:
            return "seen once: no time was left to try it again"
        if not times:
            return f"seen once: it did not come again in {tries} tries"
        return f"seen again in {times} of {tries} tries"


class UnreadableCounterexample(Exception):
    """A file is not a counterexample; the message is one line with the place and the reason."""


def counterexample_of(
    address: str,
    run: Run,
    certificate: Certificate,
    seed: int | None = None,
    again: tuple[int, int] | None = None,
) -> Counterexample:
    """Return the counterexample for a failing run."""
    assert run.broken is not None
    expected, seen = expected_and_seen(run.broken)
    return Counterexample(
        format="brokerproof-counterexample/1",
        candidate=address,
        requirement=run.broken.requirement,
        expected=expected,
        seen=seen,
        witnesses=run.broken.witnesses,
        steps=tuple(map(line_of, run.steps)),
        certificate=certificate,
        also=run.broken.also,
        seed=seed,
        again=again,
    )


def answer_text(asked: Move | Operation, answer: Answer) -> str:
    """Return the answer to an operation in a few words, as counterexamples print it."""
    parts = list(_folded([event_text(event) for event in answer.events]))
    if answer.error is not None:
        parts.append(f"{answer.error.code}: {answer.error.message}".rstrip(": "))
    return visible(", ".join(parts) or ("nothing" if isinstance(asked, Get) else "ok"))


def _folded(texts: list[str]) -> Iterator[str]:
    """Yield equal texts in a row once, with their number."""
    for text, equal in itertools.groupby(texts):
        times = len(list(equal))
        yield text if times == 1 else f"{text} ({times} times)"


def event_text(event: Event) -> str:
    """Return an event in a few words."""
    match event:
        case Delivered(consumer=consumer, message=message, redelivered=redelivered):
            again = " redelivered" if redelivered else ""
            return f"{message}{again} → {consumer or 'the get'}"
        case ConsumerClosed(consumer=consumer):
            return f"{consumer} closed"
        case Accepted(message=message):
            return f"{message} accepted"
        case QueueDeleted(queue=queue):
            return f"{queue} deleted"
        case LeaseExpired(message=message):
            return f"lease of {message} over"


class _Held(NamedTuple):
    """A message that a client holds by a delivery, and where the delivery came from."""

    message: str
    channel: str
    queue: str

    def ends_by(self, move: Move) -> bool:
        """Whether a move ends the delivery, given that it was answered `ok`."""
        match move:
            case Settle(how="acknowledge" | "release" | "reject", message=message, again=False):
                return message == self.message
            case CloseChannel(channel=channel):
                return channel == self.channel
            case Delete(queue=queue):
                return queue == self.queue
            case _:
                return False


def texts_of_moves(steps: Iterable[Line]) -> list[str]:
    """Return the moves in words; a delivery settled once more is named, with its end."""
    channels: dict[str, str] = {}
    held: dict[str, _Held] = {}
    ended: dict[str, str] = {}
    texts = []
    for number, line in enumerate(steps, 1):
        move = line.move
        if isinstance(move, Settle) and move.again and move.message in ended:
            texts.append(f"{move.how} {move.message} by {ended[move.message]}")
        else:
            texts.append(text_of(move))
        if line.error is None:
            for delivery in [name for name, each in held.items() if each.ends_by(move)]:
                ended[held.pop(delivery).message] = f"{delivery}, which ended in step {number}"
        if isinstance(move, Consume) and move.mode == "acknowledge":
            channels[move.consumer] = move.channel
        getter = move.channel if isinstance(move, Get) and move.mode == "acknowledge" else None
        for event in line.events:
            if isinstance(event, Delivered):
                subscriber = getter if event.consumer is None else channels.get(event.consumer)
                if subscriber is not None:
                    held[event.delivery] = _Held(event.message, subscriber, event.queue)
    return [visible(each) for each in texts]


def text_of_counterexample(found: Counterexample) -> str:
    """Return a counterexample as the terminal shows it."""
    requirement = catalogue()[found.requirement]
    moves = texts_of_moves(found.steps)
    width = max(map(len, moves), default=0)
    lines = [f"{found.requirement} ({requirement.level.value}): {requirement.statement}"]
    lines += [f"  source: {source}" for source in requirement.sources]
    lines += [
        f"  {number:>2}  {move:<{width}}  {visible(line.answered)}"
        for number, (move, line) in enumerate(zip(moves, found.steps, strict=True), 1)
    ]
    if found.interleaved is not None:
        lines += lines_of(found.interleaved)
    lines += [
        f"      expected  {visible(found.expected)}",
        f"      seen      {visible(found.seen)}",
        *(f"      recorded  {visible(str(each))}" for each in found.recorded),
        *([f"      records   {visible(found.records)}"] if found.records else []),
        f"  {found.certificate}",
    ]
    if found.how_often:
        lines.append(f"  {found.how_often}")
    return "\n".join(lines)


def write(found: Counterexample, folder: Path) -> Path:
    """Write a counterexample below a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.requirement}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return path


def read(path: Path) -> Counterexample:
    """Return the counterexample of a file; raises `UnreadableCounterexample`."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Counterexample)
    except OSError as error:
        raise UnreadableCounterexample(f"{path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableCounterexample(f"{path}: not a counterexample: {error}") from error
    if found.requirement not in catalogue():
        raise UnreadableCounterexample(f"{path}: there is no requirement {found.requirement!r}")
    return found

"""The content of each queue after each step of a counterexample, as far as the oracle knows it.

The file puts the contract's states into words, entry by entry. It neither judges nor guesses: a
state that the observations leave open is shown as open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.search.recorded import Followed, NotRecorded, follow, known_cases
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.contract.core import Origin, Status
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language.read.pointwise_code import Local

State: TypeAlias = Literal["available", "held", "gone", "open"]

_STATES: dict[int, State] = {
    Status.values.index("AVAILABLE"): "available",
    Status.values.index("ACQUIRED"): "held",
    Status.values.index("DEQUEUED"): "gone",
}
_PUBLISHED = Origin.values.index("PUBLISHED")


@dataclass(frozen=True)
class EntryShown:
    """A message in its queue: its state (`open` where several are possible) and its holder.

    `may_be` lists the possible states of an open message. `returned` says that it came back. `end`
    says how a message that is gone ended.
    """

    message: str
    state: State
    holder: str = ""
    returned: bool = False
    may_be: tuple[str, ...] = ()
    end: str = ""


@dataclass(frozen=True)
class QueueShown:
    """A queue with its entries in order; an entry that is gone is shown for one step."""

    queue: str
    entries: tuple[EntryShown, ...]


@dataclass(frozen=True)
class StepShown:
    """One step, the queues after it, and the consumers subscribed then."""

    followed: Followed
    queues: tuple[QueueShown, ...]
    consumers: frozenset[str]


@dataclass(frozen=True)
class Shown:
    """The steps that could be followed, and the reason if some could not."""

    steps: tuple[StepShown, ...]
    reason: str = ""


def content_of(found: Counterexample) -> Shown:
    """Return what the queues held after each step of a counterexample."""
    steps: list[StepShown] = []
    try:
        steps.extend(_steps(found))
    except (NotRecorded, Unfollowable) as error:
        return Shown(tuple(steps), str(error))
    except AssertionError as error:
        # An error of ours; the rest of the report is still useful.
        return Shown(tuple(steps), f"our own oracle failed: {error}")
    missing = len(found.steps) - len(steps)
    return Shown(tuple(steps), "it broke a requirement before its end" if missing else "")


def _steps(found: Counterexample) -> Iterator[StepShown]:
    gone: frozenset[str] = frozenset()
    for followed in follow(found):
        entries = list(_entries(followed.oracle))
        here: dict[str, list[EntryShown]] = {queue: [] for queue in followed.oracle.bindings.queues}
        for queue, shown in entries:
            if shown.message not in gone:
                here.setdefault(queue, []).append(shown)
        queues = tuple(QueueShown(queue, tuple(shown)) for queue, shown in here.items())
        yield StepShown(followed, queues, followed.oracle.bindings.active)
        # A message that has gone is shown once more, as gone, and then left out.
        gone = frozenset(shown.message for _, shown in entries if shown.state == "gone")


def _entries(oracle: Oracle) -> Iterator[tuple[str, EntryShown]]:
    """Yield each entry with its queue, in the queue's order."""
    reader = _Reader(oracle.bindings)
    worlds = [world for world, _, _ in known_cases(oracle)]
    found: list[tuple[tuple[int, ...], str, EntryShown]] = []
    for message, entry in oracle.bindings.messages.items():
        possible: set[Local] = set()
        for _, entries in worlds:
            here = entries[entry]
            possible |= here if isinstance(here, frozenset) else {here}
        shown = reader.entry(message, possible)
        if shown is not None:
            turn = reader.turn(entry, min(possible))
            found.append((turn, oracle.bindings.queue_of_message(message), shown))
    for _, queue, shown in sorted(found, key=lambda each: each[0]):
        yield queue, shown


class _Reader:
    """Reads the local states of one contract; it finds the symbols by name."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        contract = bindings.contract
        self.place = {symbol.name: place for place, symbol in enumerate(contract.local)}
        self.before = bindings.frame.rows[contract.row_of("before")]
        self.level = bindings.frame.rows[contract.row_of("level")]

    def turn(self, entry: int, local: Local) -> tuple[int, ...]:
        """Return the sort key of an entry in its queue, for every release position."""
        position = self.bindings.claims.release_position
        if position not in {"head", "tail"} or "stamp" not in self.place:
            return (self.before[entry].bit_count(), entry)
        waits = int(position == "head" and not self._returned(local))
        return (-self.level[entry], waits, local[self.place["stamp"]], entry)

    def entry(self, message: str, possible: set[Local]) -> EntryShown | None:
        """Return the possible states of a message; None if the broker has not accepted it."""
        words = {self._words(local) for local in possible}
        if not words or words == {("absent", "")}:
            return None
        returned = all(map(self._returned, possible))
        if len(words) > 1:
            may_be = sorted(
                f"{what} by {holder}" if what == "held" else what for what, holder in words
            )
            return EntryShown(message, "open", returned=returned, may_be=tuple(may_be))
        [(_, about)] = words
        state = _STATES[min(possible)[self.place["status"]]]
        return EntryShown(
            message,
            state,
            holder=about if state == "held" else "",
            returned=returned and state == "available",
            end=about if state == "gone" else "",
        )

    def _returned(self, local: Local) -> bool:
        return local[self.place["origin"]] != _PUBLISHED

    def _words(self, local: Local) -> tuple[str, str]:
        """Return a state, with the holder of the message or how it ended."""
        state = _STATES.get(local[self.place["status"]], "absent")
        if state == "held":
            return state, self._subscriber(local[self.place["holder"]])
        return state, self._end(local) if state == "gone" else ""

    def _end(self, local: Local) -> str:
        """Return how a message that is gone ended; the core contract knows one way only."""
        if "end" not in self.place:
            return "settled"
        name = End.values[local[self.place["end"]]]
        return "settled" if name in {"NONE", "FINAL"} else name.lower().replace("_", " ")

    def _subscriber(self, element: int) -> str:
        """Return the name of the consumer or get that an element of the contract stands for."""
        for name, subscriber in self.bindings.consumers.items():
            if subscriber.element == element:
                return name
        gets = [
            subscriber
            for subscriber in self.bindings.getters.values()
            if subscriber.element == element
        ]
        return f"a get on {gets[0].channel}" if gets else "somebody"

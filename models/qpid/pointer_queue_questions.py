"""Whether given steps of the model lead from one state of a queue of pointers to another.

Owns the form of that question, in numbers instead of names, and its answer. How states of the model
follow each other is stated in the model and nowhere here; where questions come from is
`pointer_queue_steps`.

A long queue is read as a shorter one: of neighbours to which the same has happened, and that no
pointer stands on, one stands for all. Whatever the model can do to one it can do to all of them,
one after the other, so a path in the short queue is one in the long queue; what it has done to all
of them, in any order, it has done to the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.paths import Seen, Taken, path
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue

STATES_MAX = 20_000
"""How many states of the model are looked at for one step."""

HEAD = 0
"""The dummy head's number in the model, as in a view."""
NOBODY = -1

ABSENT, AVAILABLE, ACQUIRED, DEQUEUED = (
    Status.values.index(name) for name in ("ABSENT", "AVAILABLE", "ACQUIRED", "DEQUEUED")
)
HELD = len(Status.values)
"""The status of what is available and held back, which the model keeps apart."""
STATUS_OF = {"available": AVAILABLE, "held": HELD, "acquired": ACQUIRED, "dequeued": DEQUEUED}


@dataclass(frozen=True)
class Place:
    """A subscription's part of a view: who has left stands nowhere."""

    active: bool = False
    last_seen: int = HEAD
    released: int = NOBODY


@dataclass(frozen=True)
class SeenEntry:
    """An entry before and after: its status, and the number of the subscription that has it.

    `unwanted` are the numbers of the subscriptions that do not want it.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    unwanted: tuple[int, ...] = ()


@dataclass(frozen=True)
class SeenSubscription:
    """A subscription before and after."""

    browses: bool
    settles_when_sent: bool
    before: Place
    after: Place


@dataclass(frozen=True)
class Question:
    """Whether given steps lead from one state to another, without names; equal ones are one.

    `first` must be taken, and before all others: what a client settles is settled.
    """

    entries: tuple[SeenEntry, ...]
    subscriptions: tuple[SeenSubscription, ...]
    first: Taken | None
    steps: tuple[Taken, ...]


def shortened(question: Question) -> Question:
    """Let one stand for neighbours that look alike, that no pointer stands on, with like steps."""
    stood_on = {
        number
        for each in question.subscriptions
        for place in (each.before, each.after)
        for number in (place.last_seen, place.released)
    }
    if question.first is not None:
        stood_on.add(question.first.arguments[-1])
    done_to: dict[int, set[tuple[str, tuple[int, ...]]]] = {}
    for name, arguments in question.steps:
        if name not in _OF_SUBSCRIPTIONS:
            done_to.setdefault(arguments[-1], set()).add((name, arguments[:-1]))
    shorter: list[SeenEntry] = []
    number = {HEAD: HEAD, NOBODY: NOBODY}
    last: object = None
    for at, entry in enumerate(question.entries, start=1):
        alike = None if at in stood_on else (entry, done_to.get(at))
        if alike is None or alike != last:
            shorter.append(entry)
        number[at] = len(shorter)
        last = alike

    def renumbered(place: Place) -> Place:
        return Place(place.active, number[place.last_seen], number[place.released])

    subscriptions = tuple(
        SeenSubscription(
            each.browses, each.settles_when_sent, renumbered(each.before), renumbered(each.after)
        )
        for each in question.subscriptions
    )

    def moved(taken: Taken) -> Taken:
        if taken.action in _OF_SUBSCRIPTIONS:
            return taken
        return taken._replace(arguments=(*taken.arguments[:-1], number[taken.arguments[-1]]))

    first = question.first and moved(question.first)
    steps = tuple(dict.fromkeys(map(moved, question.steps)))
    return Question(tuple(shorter), subscriptions, first, steps)


_OF_SUBSCRIPTIONS = ("subscribe", "unsubscribe")


@functools.lru_cache(maxsize=1 << 16)
def answer(question: Question) -> tuple[str, ...] | None:
    """Return the names of the actions on a path from before to after; None if there is none."""
    reading = reading_of(len(question.entries) + 1, len(question.subscriptions))
    start = state_of(reading, question, after=False)
    goal = _seen(reading, state_of(reading, question, after=True))
    first = question.first
    if first is not None:
        if not reading.enabled(first.action, start, first.arguments):
            return None
        start = reading.step(first.action, start, first.arguments)
    found = path(
        reading, start, goal, question.steps, lambda state: _seen(reading, state), STATES_MAX
    )
    if found is None:
        return None
    return tuple(taken.action for taken in ((first, *found) if first else found))


@functools.cache
def reading_of(entries: int, subscriptions: int) -> PlainReading:
    """Return the model in a scope of so many entries, the head among them."""
    scope = Scope({Entry: entries, Subscription: subscriptions}, range(1))
    return PlainReading(trace(TimedQueue), scope)


def state_of(reading: PlainReading, question: Question, *, after: bool) -> State:
    """Return a state of the model; what no view shows of it (who was shown what) begins anew."""
    entries = [(DEQUEUED, NOBODY), *((e.after if after else e.before) for e in question.entries)]
    unwanted: list[tuple[int, ...]] = [(), *(each.unwanted for each in question.entries)]
    places = [each.after if after else each.before for each in question.subscriptions]
    values: dict[str, Callable[..., int]] = {
        "head": lambda: HEAD,
        "browser": lambda who: question.subscriptions[who].browses,
        "wants": lambda who, at: who not in unwanted[at],
        "status": lambda at: AVAILABLE if entries[at][0] == HELD else entries[at][0],
        "held_back": lambda at: entries[at][0] == HELD,
        "holds": lambda who, at: entries[at][1] == who,
        "active": lambda who: places[who].active,
        "last_seen": lambda who: places[who].last_seen,
        "rewound": lambda who: places[who].released != NOBODY,
        "released": lambda who: max(places[who].released, HEAD),
    }
    return tuple(
        int(values[cell.symbol.name](*cell.indices)) if cell.symbol.name in values else 0
        for cell in reading.cells
    )


def _seen(reading: PlainReading, state: State) -> Seen:
    """Return what a view shows of a state: of pointers, those of subscriptions that are there."""
    at = _positions(reading)
    seen = [state[position] for name in _SHOWN for position in at[name]]
    places = zip(at["active"], at["last_seen"], at["rewound"], at["released"], strict=True)
    for active, last_seen, rewound, released in places:
        seen.append(state[last_seen] if state[active] else HEAD)
        seen.append(state[released] if state[active] and state[rewound] else NOBODY)
    return tuple(seen)


_SHOWN = ("status", "held_back", "holds", "active")


@functools.cache
def _positions(reading: PlainReading) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for position, cell in enumerate(reading.cells):
        positions.setdefault(cell.symbol.name, []).append(position)
    return positions

"""A queue of pointers, watched: each step between two views of it is a path of the model.

Owns the reading of a `PointerQueueView` as a state of `PointerQueue`, and which of the model's
actions an operation of a client may be. What the broker may do besides, at any time, is what the
model says: move a pointer, give an entry, show one. How states of the model follow each other is
stated there and nowhere here.

A long queue is read as a shorter one: of neighbours that nothing has happened to, and that no
pointer stands on, one stands for all. Whatever the model can do to one it can do to all of them,
one after the other, so a path in the short queue is one in the long queue, and the other way round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from brokerproof.models.language.model import trace
from brokerproof.models.language.paths import Seen, Taken, path
from brokerproof.models.language.plain import PlainReading, State
from brokerproof.models.language.scope import Scope
from brokerproof.models.pointer_queue import Entry, PointerQueue, Status, Subscription
from brokerproof.spec.inspections import PointerQueueView, SubscriptionView
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
)

STATES_MAX = 20_000
"""How many states of the model are looked at for one step."""

UNTAKEN: Mapping[str, str] = {
    "append": "no message was published to a queue that is first in first out",
    "insert": "no message was published to a queue of priorities",
    "look_back": "no message was published to a queue of priorities",
    "browse": "nobody browsed",
    "release": "nothing was released, and no channel closed that held something",
    "acknowledge": "nothing was settled",
    "subscribe": "nobody subscribed, and there was no get",
    "unsubscribe": "nobody left, and there was no get",
    "deliver": "nothing was delivered",
    "pass_over": "no pointer met an entry that somebody had",
}
"""What has not happened where a transition of the model was never taken."""

HEAD = 0
"""The dummy head's number in the model, as in a view."""
NOBODY = -1


@dataclass(frozen=True)
class Happening:
    """What a client did, as far as a queue is concerned.

    `arrival` is the message that was published to it, with its level; `settled` the message whose
    delivery was settled. `closed` are the consumers that were told to have closed by themselves.
    """

    operation: Operation
    arrival: tuple[str, int] | None = None
    settled: str | None = None
    closed: frozenset[str] = frozenset()


def happening(
    operation: Operation,
    settled: str | None,
    queue: str,
    level: Callable[[Message], int],
    closed: frozenset[str] = frozenset(),
) -> Happening:
    """Return what an operation is to `queue`; `level` is that of a message in it."""
    arrival = None
    if isinstance(operation, Publish) and operation.queue == queue:
        arrival = operation.message.id, level(operation.message)
    return Happening(operation, arrival, settled, closed)


class NotAQueue(Exception):
    """Two views that cannot be of one queue, before and after an operation; one line."""


@dataclass(frozen=True)
class _Place:
    """A subscription's part of a view: who has left stands nowhere."""

    active: bool = False
    last_seen: int = HEAD
    released: int = NOBODY


@dataclass(frozen=True)
class _Entry:
    """An entry before and after: its status, and the number of the subscription that has it."""

    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True)
class _Subscription:
    """A subscription before and after."""

    browses: bool
    settles_when_sent: bool
    before: _Place
    after: _Place


@dataclass(frozen=True)
class Question:
    """Whether given steps lead from one state to another, without names; equal ones are one.

    `first` must be taken, and before all others: what a client settles is settled.
    """

    entries: tuple[_Entry, ...]
    subscriptions: tuple[_Subscription, ...]
    first: Taken | None
    steps: tuple[Taken, ...]


def explained(
    before: PointerQueueView, after: PointerQueueView, happened: Happening
) -> tuple[str, ...] | None:
    """Return the names of the actions that lead from one view to the other; None if none do.

    Raises `NotAQueue`, and `TooFar` where the search was given up.
    """
    if before == after and not _concerns(happened, before):
        return ()
    done_by = _is_done_by(happened.operation)
    asked = before, after, happened.arrival, happened.settled, happened.closed, done_by
    known = _KNOWN.get(asked, _UNKNOWN)
    if known is _UNKNOWN:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        known = _KNOWN[asked] = answer(shortened(question(before, after, happened)))
    return cast("tuple[str, ...] | None", known)


KNOWN_MAX = 1 << 16
"""So many steps are remembered with what explains them; a search meets few, but those often."""

_KNOWN: dict[Hashable, object] = {}
_UNKNOWN = object()


def _is_done_by(operation: Operation) -> tuple[type[Operation], str]:
    """Return all that matters of an operation besides the message that it is about."""
    match operation:
        case Consume(consumer=name) | Cancel(consumer=name) | CloseChannel(channel=name):
            return type(operation), name
        case _:
            return type(operation), ""


def question(before: PointerQueueView, after: PointerQueueView, happened: Happening) -> Question:
    """Return the question whether the model explains two views; raises `NotAQueue`."""
    return _Watched(before, after, happened).question()


def _concerns(happened: Happening, view: PointerQueueView) -> bool:
    """Whether an operation does anything at all to a queue."""
    match happened.operation:
        case Publish():
            return happened.arrival is not None
        case Acknowledge() | Reject() | Release():
            return any(entry.message == happened.settled for entry in view.entries)
        case _:
            return False


_ABSENT, _AVAILABLE, _ACQUIRED, _DEQUEUED = (
    Status.values.index(name) for name in ("ABSENT", "AVAILABLE", "ACQUIRED", "DEQUEUED")
)
_STATUS = {"available": _AVAILABLE, "acquired": _ACQUIRED, "dequeued": _DEQUEUED}


class _Watched:
    """Two views with their entries and subscriptions numbered alike."""

    def __init__(
        self, before: PointerQueueView, after: PointerQueueView, happened: Happening
    ) -> None:
        self.before, self.after, self.happened = before, after, happened
        self.messages = self._merged()
        self.number = {message: at for at, message in enumerate(self.messages, start=1)}
        self.names_before, self.names_after = _names(before), _names(after)
        self.names = list(dict.fromkeys([*self.names_before, *self.names_after]))
        self.spare = len(self.names)
        """The number of the subscription that a get is as long as it lasts."""
        self.entries = tuple(
            map(
                _Entry,
                self._statuses(before, self.names_before, _ABSENT),
                self._statuses(after, self.names_after, _DEQUEUED),
            )
        )
        self.subscriptions = self._numbered()

    def question(self) -> Question:
        """Return the question whether the model explains what happened."""
        first = self._settlement()
        client = tuple(self._of_the_client())
        returned = {
            taken.arguments[-1] for taken in (first, *client) if taken and taken.action == "release"
        }
        steps = (*client, *self._of_the_broker(returned))
        return Question(self.entries, self.subscriptions, first, steps)

    def _merged(self) -> list[str]:
        """Return all messages in the order of the queue; an arrival is the last of its level."""
        levels = [(entry.message, entry.level) for entry in self.before.entries]
        if self.happened.arrival is not None:
            levels.append(self.happened.arrival)
        merged = [message for message, _ in sorted(levels, key=lambda pair: -pair[1])]
        place = {message: at for at, message in enumerate(merged)}
        for entry in self.after.entries:
            if entry.message not in place:
                raise NotAQueue(f"{entry.message} is there and was not published")
        places = [place[entry.message] for entry in self.after.entries]
        if places != sorted(places):
            raise NotAQueue("its entries are not in their order")
        return merged

    def _statuses(
        self, view: PointerQueueView, names: list[_Name], otherwise: int
    ) -> list[tuple[int, int]]:
        found = {
            entry.message: (
                _STATUS[entry.state],
                NOBODY if entry.holder is None else self.names.index(names[entry.holder]),
            )
            for entry in view.entries
        }
        return [found.get(message, (otherwise, NOBODY)) for message in self.messages]

    def _numbered(self) -> tuple[_Subscription, ...]:
        before = dict(zip(self.names_before, self.before.subscriptions, strict=True))
        after = dict(zip(self.names_after, self.after.subscriptions, strict=True))
        known = {**before, **after}
        numbered = [
            _Subscription(
                known[name].browses,
                known[name].settles_when_sent,
                self._place(self.before, before.get(name)),
                self._place(self.after, after.get(name)),
            )
            for name in self.names
        ]
        get = _Subscription(browses=False, settles_when_sent=True, before=_Place(), after=_Place())
        return (*numbered, get)

    def _place(self, view: PointerQueueView, each: SubscriptionView | None) -> _Place:
        if each is None or not each.active:
            return _Place()
        released = NOBODY if each.released is None else self._at(view, each.released)
        return _Place(True, self._at(view, each.last_seen), released)

    def _at(self, view: PointerQueueView, number: int) -> int:
        return HEAD if number == HEAD else self.number[view.entries[number - 1].message]

    # What may have happened.

    def _of_the_broker(self, returned: set[int]) -> Iterator[Taken]:
        gone = [at for at, entry in enumerate(self.entries, 1) if entry.after[0] == _DEQUEUED]
        for who, each in enumerate(self.subscriptions):
            for at in self._held_by(who, after=True):
                if at in returned or self.entries[at - 1].before[1] != who:
                    yield Taken("deliver", (who, at))
            if each.settles_when_sent:
                for at in gone:
                    yield Taken("deliver", (who, at))
                    yield Taken("acknowledge", (who, at))
            for at, _ in enumerate(self.entries, 1):
                if each.browses:
                    yield Taken("browse", (who, at))
                yield Taken("pass_over", (who, at))

    def _held_by(self, who: int, *, after: bool) -> Iterator[int]:
        for at, entry in enumerate(self.entries, 1):
            if (entry.after if after else entry.before)[1] == who:
                yield at

    def _of_the_client(self) -> Iterator[Taken]:
        if self.happened.arrival is not None:
            arrival = self.number[self.happened.arrival[0]]
            if isinstance(self.before.order, Fifo):
                yield Taken("append", (arrival,))
            else:
                yield Taken("insert", (arrival,))
                yield Taken("look_back", (arrival,))
        for consumer in sorted(self.happened.closed):
            if (consumer, "") in self.names:
                yield Taken("unsubscribe", (self.names.index((consumer, "")),))
        match self.happened.operation:
            case Consume(consumer=consumer) if (consumer, "") in self.names:
                yield Taken("subscribe", (self.names.index((consumer, "")),))
            case Consume(consumer=consumer) if consumer in self.happened.closed:
                # It came and left, and holds nothing.
                yield Taken("subscribe", (self.spare,))
                yield Taken("unsubscribe", (self.spare,))
            case Cancel(consumer=consumer) if (consumer, "") in self.names:
                yield Taken("unsubscribe", (self.names.index((consumer, "")),))
            case Get():
                yield from self._of_a_get()
            case Purge():
                # The queue itself takes what it drops, as a subscription of its own would.
                yield Taken("subscribe", (self.spare,))
                yield Taken("unsubscribe", (self.spare,))
            case CloseChannel(channel=channel):
                yield from self._of_a_closing(channel)

    def _of_a_get(self) -> Iterator[Taken]:
        """What holds a message afterwards is the get itself; else it was the spare one."""
        came = [name for name in self.names_after if name[0] is None]
        new = [self.names.index(name) for name in came if name not in self.names_before]
        for who in new or [self.spare]:
            yield Taken("subscribe", (who,))
            yield Taken("unsubscribe", (who,))

    def _of_a_closing(self, channel: str) -> Iterator[Taken]:
        for name, each in zip(self.names_before, self.before.subscriptions, strict=True):
            if each.channel == channel:
                who = self.names.index(name)
                yield Taken("unsubscribe", (who,))
                yield from (Taken("release", (who, at)) for at in self._held_by(who, after=False))

    def _settlement(self) -> Taken | None:
        operation = self.happened.operation
        if not isinstance(operation, Acknowledge | Reject | Release):
            return None
        at = self.number.get(self.happened.settled or "")
        if at is None or (who := self.entries[at - 1].before[1]) == NOBODY:
            return None
        return Taken("release" if isinstance(operation, Release) else "acknowledge", (who, at))


_Name: TypeAlias = tuple[str | None, str]
"""What tells a subscription from others before and after: a consumer, or the message of a get."""


def _names(view: PointerQueueView) -> list[_Name]:
    held = {entry.holder: entry.message for entry in view.entries if entry.holder is not None}
    return [
        (each.consumer, "" if each.consumer is not None else held.get(number, ""))
        for number, each in enumerate(view.subscriptions)
    ]


# The answer.


def shortened(question: Question) -> Question:
    """Let one stand for neighbours that nothing has happened to and no pointer stands on."""
    stood_on = {
        number
        for each in question.subscriptions
        for place in (each.before, each.after)
        for number in (place.last_seen, place.released)
    }
    all_steps = (*question.steps, *([question.first] if question.first else ()))
    stood_on |= {taken.arguments[-1] for taken in all_steps if taken.action in _CHANGING}
    shorter: list[_Entry] = []
    number = {HEAD: HEAD, NOBODY: NOBODY}
    last_was_idle = False
    for at, entry in enumerate(question.entries, start=1):
        idle = at not in stood_on and entry.before == entry.after
        if not (idle and last_was_idle and shorter[-1] == entry):
            shorter.append(entry)
        number[at] = len(shorter)
        last_was_idle = idle

    def renumbered(place: _Place) -> _Place:
        return _Place(place.active, number[place.last_seen], number[place.released])

    subscriptions = tuple(
        _Subscription(
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
_CHANGING = ("append", "insert", "look_back", "deliver", "acknowledge", "release")


@functools.lru_cache(maxsize=1 << 16)
def answer(question: Question) -> tuple[str, ...] | None:
    """Return the names of the actions on a path from before to after; None if there is none."""
    reading = _reading(len(question.entries) + 1, len(question.subscriptions))
    start = _state(reading, question, after=False)
    goal = _seen(reading, _state(reading, question, after=True))
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
def _reading(entries: int, subscriptions: int) -> PlainReading:
    scope = Scope({Entry: entries, Subscription: subscriptions}, range(1))
    return PlainReading(trace(PointerQueue), scope)


def _state(reading: PlainReading, question: Question, *, after: bool) -> State:
    """Return a state of the model; what no view shows of it (who was shown what) begins anew."""
    entries = [(_DEQUEUED, NOBODY), *((e.after if after else e.before) for e in question.entries)]
    places = [each.after if after else each.before for each in question.subscriptions]
    values: dict[str, Callable[..., int]] = {
        "head": lambda: HEAD,
        "browser": lambda who: question.subscriptions[who].browses,
        "status": lambda at: entries[at][0],
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
    seen = [state[position] for name in ("status", "holds", "active") for position in at[name]]
    places = zip(at["active"], at["last_seen"], at["rewound"], at["released"], strict=True)
    for active, last_seen, rewound, released in places:
        seen.append(state[last_seen] if state[active] else HEAD)
        seen.append(state[released] if state[active] and state[rewound] else NOBODY)
    return tuple(seen)


@functools.cache
def _positions(reading: PlainReading) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for position, cell in enumerate(reading.cells):
        positions.setdefault(cell.symbol.name, []).append(position)
    return positions

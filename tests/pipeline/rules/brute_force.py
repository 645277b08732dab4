"""Whether a plain sound queue can have made a small history: all orders of its events are tried.

A moment is chosen for each event within its span, in the order of each subscriber's stream; what is
unknown is done or left out. The state that a set of done events leads to is remembered, so no state
is looked at twice. It is lenient where the promises are: a settlement that is told as `ok` may be
one in vain, once its delivery is not held any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from brokerproof.spec.histories import NEVER, Record

Delivery: TypeAlias = tuple[str | None, int | None]
EVENTS_MAX = 40


class Entry(NamedTuple):
    """A message in the queue: with whom it is, None if it waits; whether it was given before.

    A crash keeps what is `persistent`, or loses it too if its publish was not `answered`.
    """

    name: str
    level: int
    persistent: bool
    answered: bool
    held: Delivery | None = None
    came_back: bool = False
    either_flag: bool = False


class State(NamedTuple):
    """What a queue remembers.

    `entries` are in the order of their places, `made` the deliveries so far, `passed` what
    each browser has behind it. Nothing is given any more to subscribers of `closed` channels, and
    to those that were there before a crash or a deletion, which are `gone`.
    """

    entries: tuple[Entry, ...] = ()
    down: bool = False
    passed: frozenset[tuple[str | None, str]] = frozenset()
    made: frozenset[Delivery] = frozenset()
    closed: frozenset[str | None] = frozenset()
    gone: frozenset[str | None] = frozenset()


@dataclass(frozen=True)
class Known:
    """The declarations of the queue and of its consumers."""

    levels: int
    durable: bool
    to_place: bool
    windows: dict[str | None, int]
    channels: dict[str | None, str | None]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Known:
        """Return what the records of one queue declare."""
        declared = next((each for each in records if each.op == "declare"), None)
        consumes = [each for each in records if each.op == "consume"]
        channels = {each.consumer: each.channel for each in records if each.op == "deliver"}
        return cls(
            (declared.levels or 0) if declared else 0,
            declared.durable if declared else False,
            declared is None or declared.returns == "original",
            {each.consumer: each.window for each in consumes if each.window is not None},
            channels | {each.consumer: each.channel for each in consumes},
        )


def can_be_explained(records: Sequence[Record]) -> bool:
    """Whether there are moments within the spans at which a sound queue does all of this."""
    known = Known.of(records)
    passive = {"declare", "consume", "cancel"}
    events = [each for each in records if each.op not in passive and each.outcome != "failed"]
    assert len(events) <= EVENTS_MAX
    optional = sum(1 << number for number, e in enumerate(events) if e.outcome == "unknown")
    everything = (1 << len(events)) - 1
    start = (0, State())
    reached, to_do = {start}, [start]
    while to_do:
        done, state = to_do.pop()
        if done | optional == everything:
            return True
        for number in _next(events, done):
            for after in _after(state, events[number], known):
                step = (done | 1 << number, after)
                if step not in reached:
                    reached.add(step)
                    to_do.append(step)
    return False


def _end(record: Record) -> int:
    return record.end if record.outcome == "ok" and record.end is not None else NEVER


def _next(events: Sequence[Record], done: int) -> Iterator[int]:
    """Yield which events may be next, so that none is too late for its span."""
    left = [number for number in range(len(events)) if not done >> number & 1]
    latest = min(_end(events[number]) for number in left)
    for number in left:
        event = events[number]
        if event.start > latest:
            continue
        earlier = any(
            events[other].op == event.op == "deliver"
            and events[other].consumer == event.consumer
            and (events[other].position or 0) < (event.position or 0)
            for other in left
        )
        if not earlier:
            yield number


def _after(state: State, event: Record, known: Known) -> Iterator[State]:
    """Yield the states to which an event can lead; none if it cannot happen."""
    if state.down and event.op != "restart":
        return
    match event.op:
        case "publish":
            level = min(event.priority, known.levels - 1) if known.levels else 0
            assert event.message is not None
            persistent = event.persistent and known.durable
            new = Entry(event.message, level, persistent, answered=_end(event) < NEVER)
            if all(entry.name != event.message for entry in state.entries):
                yield state._replace(entries=(*state.entries, new))
        case "deliver" if known.channels.get(event.consumer, "") in state.closed:
            return
        case "deliver" if event.consumer in state.gone:
            return
        case "deliver" if event.mode == "browse":
            yield from _shown(state, event, known)
        case "deliver":
            yield from _given(state, event, known)
        case "get":
            # Its outcome is unknown, so leaving it out is tried, too.
            for entry in _waiting(state)[:1]:
                yield _without(state, entry)
        case "empty" | "drained":
            if not _waiting(state):
                yield state
        case "acknowledge" | "reject" | "release":
            yield from _settled(state, event, known)
        case "close":
            yield from _closed(state, event, known)
        case "purge":
            held = tuple(entry for entry in state.entries if entry.held is not None)
            yield state._replace(entries=held)
        case "delete":
            yield state._replace(entries=(), gone=_subscribers(state))
        case "crash":
            yield from _crashed(state)
        case "restart":
            if state.down:
                yield state._replace(down=False)
        case _:
            raise AssertionError(event.op)


def _crashed(state: State) -> Iterator[State]:
    """Yield the states after a crash: with and without each message that the queue may lose."""
    kept: list[tuple[Entry, ...]] = [()]
    for entry in state.entries:
        flag = entry.either_flag or entry.came_back or bool(entry.held)
        back = entry._replace(held=None, either_flag=flag)
        lost = [] if entry.persistent and entry.answered else kept
        kept = [*lost, *((*each, back) for each in kept if entry.persistent)]
    for entries in kept:
        yield state._replace(entries=entries, down=True, gone=_subscribers(state))


def _subscribers(state: State) -> frozenset[str | None]:
    return state.gone | {subscriber for subscriber, _ in state.made}


def _waiting(state: State) -> list[Entry]:
    """Return what waits, in the order in which it is to be given."""
    there = [entry for entry in state.entries if entry.held is None]
    return sorted(there, key=lambda entry: -entry.level)


def _given(state: State, event: Record, known: Known) -> Iterator[State]:
    waiting = _waiting(state)
    if not waiting or waiting[0].name != event.message:
        return
    entry = waiting[0]
    told = event.redelivered
    if told is not None and told != entry.came_back and not entry.either_flag:
        return
    window = known.windows.get(event.consumer, NEVER)
    holds = sum(each.held is not None and each.held[0] == event.consumer for each in state.entries)
    if holds >= window:
        return
    delivery = (event.consumer, event.position)
    state = state._replace(made=state.made | {delivery})
    if event.mode == "automatic":
        yield _without(state, entry)
    else:
        yield _with(state, entry, entry._replace(held=delivery))


def _shown(state: State, event: Record, known: Known) -> Iterator[State]:
    browser = event.consumer
    new = [each for each in _waiting(state) if (browser, each.name) not in state.passed]
    if known.levels == 0:
        new = new[:1]
    for entry in new:
        if entry.name == event.message:
            place = state.entries.index(entry)
            behind = state.entries[: place + 1] if known.levels == 0 else (entry,)
            passed = state.passed | {(browser, each.name) for each in behind}
            yield state._replace(passed=passed)


def _settled(state: State, event: Record, known: Known) -> Iterator[State]:
    delivery = (event.consumer, event.position)
    if delivery not in state.made:
        return
    held = [each for each in state.entries if (each.held, each.name) == (delivery, event.message)]
    if not held:
        yield state
    elif event.op == "release":
        yield from _returned(state, held[0], known)
    else:
        yield _without(state, held[0])


def _closed(state: State, event: Record, known: Known) -> Iterator[State]:
    states = [state._replace(closed=state.closed | {event.channel})]
    for entry in state.entries:
        if entry.held is not None and known.channels.get(entry.held[0]) == event.channel:
            states = [after for before in states for after in _returned(before, entry, known)]
    yield from states


def _returned(state: State, entry: Entry, known: Known) -> Iterator[State]:
    """Yield the states after a return: to its place, or where none is promised to any."""
    back = entry._replace(held=None, came_back=True)
    if known.to_place:
        yield _with(state, entry, back)
        return
    others = _without(state, entry).entries
    for place in range(len(others) + 1):
        elsewhere = state._replace(entries=(*others[:place], back, *others[place:]))
        yield elsewhere
        behind = {each.name for each in others[place:]}
        ahead_of = {browser for browser, _ in state.passed} - {
            browser for browser, name in state.passed if name in behind
        }
        # A browser's place may be before or behind it: no entry that the browser passed follows.
        if ahead_of:
            seen_anew = frozenset((browser, entry.name) for browser in ahead_of)
            yield elsewhere._replace(passed=state.passed - seen_anew)


def _with(state: State, old: Entry, new: Entry) -> State:
    return state._replace(entries=tuple(new if e is old else e for e in state.entries))


def _without(state: State, entry: Entry) -> State:
    return state._replace(entries=tuple(each for each in state.entries if each is not entry))

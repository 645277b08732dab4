"""Whether steps of the model lead from one state of a paging queue to another.

Owns the form of that question, in numbers instead of names, and its answer. How states of the model
follow each other is stated in the model and nowhere here; where questions come from is
`paging_steps`.

A long queue is read as a shorter one: of neighbours in one place that nothing has happened to, the
first stands for all, and so it does for neighbours in one segment to which the same has happened.
Whatever the model can do to one it can do to all of them, one after the other.

The search is led: of each action only those messages are offered that its guard can be about, as
the first of a place. What is offered is still asked of the guard.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.paths import Seen, Taken, path_if_any
from brokerproof.models.rabbitmq.paging_invariants import FLAG, IN_TURN
from brokerproof.models.rabbitmq.paging_places import Message, PagingPlaces, Place, Segment

STATES_FEW, STATES_MAX = 300, 10_000
"""How many states of the model are looked at for one step, before its invariants are and after."""

NOWHERE, Q1, Q2, DELTA, Q3, Q4, PENDING, GONE = map(Place.values.index, Place.values)


class Facts(NamedTuple):
    """What a view says of one message; of what is in delta or gone, only what the index has.

    `live` is whether the index has its position, `noted` whether it has its delivery; the others
    are where its position is: from delta's start on, before its end, before the next free one.
    """

    place: int = NOWHERE
    in_ram: bool = False
    stored: bool = False
    delivered: bool = False
    live: bool = False
    noted: bool = False
    from_start: bool = False
    before_end: bool = False
    used: bool = False


class Known(NamedTuple):
    """A message before and after; `segment` counts those that have a message, from 0."""

    before: Facts
    after: Facts
    segment: int
    persistent: bool


class Question(NamedTuple):
    """Whether messages, in their order, can have gone their ways; equal questions are one.

    Of `first`, where there are any, one must be taken, and before all others: what a client settles
    is settled. `arrival` is the message that was published, if one was. `returned` are those that a
    closing channel has given back.
    """

    messages: tuple[Known, ...]
    first: tuple[Taken, ...] = ()
    arrival: int | None = None
    returned: tuple[int, ...] = ()
    purges: bool = False


def shortened(question: Question) -> Question:
    """Let one stand for neighbours that look alike."""
    alone = {question.arrival, *(taken.arguments[-1] for taken in question.first)}
    returned = frozenset(question.returned)
    shorter: list[Known] = []
    number: dict[int, int] = {}
    last: object = None
    for at, message in enumerate(question.messages):
        alike: object = None
        if at not in alone:
            here = message.before
            alike = message, at in returned
            if here == message.after and at not in returned:
                # Nothing has happened to it: only what is pending may be somewhere else meanwhile.
                alike = here.place, here[-3:], here.place == PENDING and here.in_ram
        if alike is None or alike != last:
            shorter.append(message)
        number[at] = len(shorter) - 1
        last = alike
    segments = {each: at for at, each in enumerate(sorted({each.segment for each in shorter}))}
    return Question(
        tuple([each._replace(segment=segments[each.segment]) for each in shorter]),
        tuple(
            [
                taken._replace(arguments=tuple([number[at] for at in taken.arguments]))
                for taken in question.first
            ]
        ),
        None if question.arrival is None else number[question.arrival],
        tuple(sorted({number[each] for each in question.returned})),
        question.purges,
    )


@functools.lru_cache(maxsize=1 << 16)
def answer(question: Question) -> tuple[str, ...] | None:
    """Return the names of the actions on a path from before to after; None if there is none.

    Raises `TooFar` where the search was given up.
    """
    if not question.messages:
        return ()
    reading = reading_of(len(question.messages))
    start = state_of(reading, question, after=False)
    goal = _seen(reading, state_of(reading, question, after=True))
    first = [each for each in question.first if reading.enabled(each.action, start, each.arguments)]
    if question.first:
        if not first:
            return None
        # The guards leave one of several.
        start = reading.step(first[0].action, start, first[0].arguments)

    found = path_if_any(
        reading,
        start,
        goal,
        lambda state: offered(reading, question, state),
        lambda state: _seen(reading, state),
        lambda: _is_ruled_out(reading, question),
        states=(STATES_FEW, STATES_MAX),
    )
    if found is None:
        return None
    return tuple([taken.action for taken in (*first[:1], *found)])


def _is_ruled_out(reading: PlainReading, question: Question) -> bool:
    """Whether an invariant is lost, which no step of the model does: that is what is proved."""
    before, after = (state_of(reading, question, after=which) for which in (False, True))
    lost = {*reading.violated(after)} - {FLAG, IN_TURN}
    return bool(lost) and not reading.violated(before)


@functools.cache
def reading_of(messages: int) -> PlainReading:
    """Return the model in a scope of so many messages, each in a segment of its own at most."""
    return PlainReading(
        trace(PagingPlaces), Scope({Message: messages, Segment: messages}, range(1))
    )


@functools.cache
def _base(reading: PlainReading) -> dict[str, int]:
    """Return where the cells of each symbol begin."""
    base: dict[str, int] = {}
    for position, cell in enumerate(reading.cells):
        base.setdefault(cell.symbol.name, position)
    return base


def state_of(reading: PlainReading, question: Question, *, after: bool) -> State:
    """Return a state of the model; what no view shows of it begins anew."""
    facts = [each.after if after else each.before for each in question.messages]
    values: dict[str, list[int]] = {
        "segment": [each.segment for each in question.messages],
        "persistent": [each.persistent for each in question.messages],
        "place": [each.place for each in facts],
        "in_ram": [each.in_ram for each in facts],
        "stored": [each.stored for each in facts],
        "delivered": [each.delivered for each in facts],
        "indexed": [each.live for each in facts],
        "noted": [each.noted for each in facts],
        "from_start": [each.from_start for each in facts],
        "before_end": [each.before_end for each in facts],
        "used": [each.used for each in facts],
        # Of what was fetched, and whether in turn, nothing is shown: before, it is taken for so.
        "was_fetched": [each.delivered or each.noted for each in facts],
    }
    return tuple(
        [
            int(values[cell.symbol.name][cell.indices[0]]) if cell.symbol.name in values else 0
            for cell in reading.cells
        ]
    )


_SHOWN = ("in_ram", "stored", "from_start", "before_end", "used", "out_of_turn")


def _seen(reading: PlainReading, state: State) -> Seen:
    """Return what a view shows of a state, and that nothing was fetched out of turn."""
    base = _base(reading)
    many = base["in_ram"] - base["place"]
    places = state[base["place"] : base["place"] + many]
    seen = list(places)
    for name in _SHOWN:
        seen += state[base[name] : base[name] + many]
    delivered, indexed = base["delivered"], base["indexed"]
    noted, acked = base["noted"], base["acked"]
    for at, place in enumerate(places):
        live = state[indexed + at] and not state[acked + at]
        seen.append(state[delivered + at] if place not in _WITHOUT_STATUS else 0)
        seen.append(int(live))
        seen.append(state[noted + at] if live else 0)
    return tuple(seen)


_WITHOUT_STATUS = frozenset((NOWHERE, GONE, DELTA))


def offered(reading: PlainReading, question: Question, state: State) -> Iterator[Taken]:
    """Yield the steps that may be taken in a state: of what is enabled there no fewer.

    What a client does comes first, so what is fetched ends as pending, or is gone for good.
    """
    base = _base(reading)
    many = len(question.messages)
    places = state[base["place"] : base["place"] + many]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, place in enumerate(places):
        first.setdefault(place, at)
        last[place] = at
    yield from _of_the_client(question, places, first)
    yield from _of_fetching(question, first)
    if Q1 in first:
        yield Taken("page_q1_to_q3", (first[Q1],))
        yield Taken("page_q1_to_q2", (first[Q1],))
    if Q4 in first:
        yield Taken("page_q4", (last[Q4],))
    if Q3 in first:
        yield Taken("page_q3", (first[Q3], last[Q3]))
    if Q2 in first:
        yield Taken("page_q2", (first[Q2],))
    in_ram = state[base["in_ram"] : base["in_ram"] + many]
    pending = [at for at, place in enumerate(places) if place == PENDING and in_ram[at]]
    yield from (Taken("limit_ram_acks", (at,)) for at in pending[-1:])


def _of_the_client(
    question: Question, places: tuple[int, ...], first: Mapping[int, int]
) -> Iterator[Taken]:
    for at in question.returned:
        if places[at] == PENDING:
            yield Taken("requeue_to_q4", (at,))
            if Q3 in first:
                yield Taken("requeue_to_q3", (first[Q3], at))
                yield Taken("requeue_to_delta", (first[Q3], at))
    arrival = question.arrival
    if arrival is not None and places[arrival] == NOWHERE:
        yield Taken("publish_delivered", (arrival,))
        yield Taken("publish", (arrival,))
    if question.purges:
        yield Taken("purge", ())


def _of_fetching(question: Question, first: Mapping[int, int]) -> Iterator[Taken]:
    head = first.get(Q4, first.get(Q3))
    if head is None:
        return
    ends = question.messages[head].after.place
    if ends not in (PENDING, GONE):
        return
    keeps = int(ends == PENDING)
    if Q4 in first:
        yield Taken("fetch_from_q4", (head, keeps))
        return
    yield Taken("fetch_from_q3", (head, keeps))
    yield Taken("fetch_last", (head, keeps))
    if DELTA in first:
        yield Taken("fetch_last_and_reload", (head, first[DELTA], keeps))
        yield Taken("fetch_last_and_reload_all", (head, first[DELTA], keeps))

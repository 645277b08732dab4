"""The whole contract and the catalogue name the same promises, and its readings agree.

It is too large to be enumerated, so its readings are compared along random walks in tiny scopes,
each about one thing that only some brokers claim. Invariants are explored where windows and time
hardly change. Each check is held against a twin that is broken.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

import pytest

from brokerproof.models.contract.core_state import Channel, Consumer, Entry, Queue, Status
from brokerproof.models.contract.jobs import JobContract
from brokerproof.models.contract.lawful_differences import LawfulContract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import Bool, Int, action, forall, require
from brokerproof.models.language.core.model import Model, ModelError, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Sort
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.read.pointwise import Pointwise
from tests.models.contract.test_contract import (
    ACKNOWLEDGE,
    AUTOMATIC,
    BROWSE,
    CONTRACT,
    CORE,
    disagreements,
    inexact,
    labels,
    stated_in,
    uncertain,
    unmatched,
    without_situation,
)

WHOLE = trace(WholeContract)
BEYOND = stated_in("whole.toml")
COUNTED_BY_THE_ORACLE = frozenset(("exclusive-is-alone", "refuses-what-it-must"))
"""A refusal depends on the operation, not on its effects."""


# The promises by name.


def test_every_guard_is_a_requirement_and_every_requirement_a_guard() -> None:
    assert unmatched(CORE | BEYOND, labels(WHOLE)) == []


def test_what_the_core_promises_is_promised_in_the_whole() -> None:
    assert labels(CONTRACT) < labels(WHOLE)


def test_every_requirement_is_exercised_somewhere() -> None:
    assert without_situation(CORE | BEYOND, WHOLE) == sorted(COUNTED_BY_THE_ORACLE)


def test_only_requirements_are_exercised() -> None:
    for each in WHOLE.actions:
        situations = {situation.label for situation in each.situations}
        assert situations <= CORE | BEYOND, each.name


def test_the_whole_goes_on_where_the_core_ends() -> None:
    """The whole has every guard of the core, and drops none."""
    for each in CONTRACT.actions:
        known = {guard.label for guard in WHOLE.action(each.name).guards}
        assert {guard.label for guard in each.guards} <= known, each.name


# Small scopes, each about one thing.

FOR_EVER = 12


def scope(
    modes: tuple[int, ...] = (ACKNOWLEDGE,),
    entries: int = 2,
    *,
    queues: int = 1,
    channels: int = 1,
    **fixed: int | tuple[int, ...],
) -> Scope:
    """Return a scope in which all rigid symbols are fixed, to 0 by default."""
    sizes: dict[Sort, int] = {
        Queue: queues,
        Channel: channels,
        Consumer: len(modes),
        Entry: entries,
    }
    nothing = {symbol.name: 0 for symbol in WHOLE.rigid if not symbol.is_order}
    usual: dict[str, int | tuple[int, ...]] = {
        "fifo": 1,
        "wants": 1,
        "concerned": 1,
        "subscribed": 1,
        "ties": 1,
        "size": 1,
        "expires": FOR_EVER,
        "horizon": 2,
        "mode": modes,
    }
    return Scope(sizes, range(FOR_EVER + 1), nothing | usual | fixed)


SCOPES = {
    "windows": scope((ACKNOWLEDGE, AUTOMATIC), size=(2, 1), returns_to_place=1),
    "idle windows of bytes": scope((ACKNOWLEDGE, BROWSE), size=(2, 1), when_idle=1),
    "a channel's window": scope((ACKNOWLEDGE, ACKNOWLEDGE), channels=2, channel=(0, 1)),
    "to the tail": scope(entries=3, to_tail=1),
    "to the head": scope((ACKNOWLEDGE, BROWSE), to_head=1),
    "last values": scope((ACKNOWLEDGE, BROWSE), replaces=(0, 1, 1, 0), returns_to_place=1),
    "a sorted queue": scope((ACKNOWLEDGE, BROWSE), fifo=0, is_sorted_by_key=1),
    "queues that go": scope(
        (ACKNOWLEDGE, AUTOMATIC),
        queues=2,
        home=(0, 1),
        ties=0,
        deletes_itself=(1, 0),
        wants=(1, 0, 0, 1),
        concerned=(1, 0, 0, 1),
        subscribed=(1, 0, 0, 1),
    ),
    "crashes": scope((ACKNOWLEDGE, BROWSE), survives=(1, 0), to_tail=1),
    "a clock": scope((ACKNOWLEDGE, BROWSE), not_before=(0, 1), expires=(1, FOR_EVER)),
    "ranks": scope((ACKNOWLEDGE, ACKNOWLEDGE), rank=(0, 1)),
    "endings": scope((ACKNOWLEDGE, BROWSE), closes_itself=1, exclusive=(1, 0)),
}


class Few(PlainReading):
    """The plain reading with few windows and times to choose from, though integers go far."""

    def arguments(self, action: str) -> Iterable[tuple[int, ...]]:
        """Return the arguments that are tried."""
        if action in ("set_credit", "set_pool"):
            family = self.scope.sizes[Consumer if action == "set_credit" else Channel]
            return itertools.product(range(family), range(2), range(3), range(2), range(3))
        return ((0,), (1,)) if action == "advance" else super().arguments(action)


def walks(plain: PlainReading, number: int, length: int = 14) -> Iterator[State]:
    """Yield the states along random walks, the same in each run, each state once."""
    chosen = random.Random(number)  # noqa: S311  the same in each run, nothing secret
    seen: set[State] = set()
    for start in itertools.islice(itertools.cycle(plain.initial_states()), number):
        state = start
        for _ in range(length):
            if state not in seen:
                seen.add(state)
                yield state
            state = _after_some_step(plain, state, chosen)


def _after_some_step(plain: PlainReading, state: State, chosen: random.Random) -> State:
    """Return a state after one step, mostly one of those that much depends on."""
    for _ in range(20):
        often = chosen.random() < 0.75
        name = chosen.choice(USUAL if often else [each.name for each in plain.system.actions])
        possible = [some for some in plain.arguments(name) if plain.enabled(name, state, some)]
        if possible:
            try:
                return plain.step(name, state, chosen.choice(possible))
            except ModelError:  # beyond the integers of the scope
                continue
    return state


USUAL = ("publish", "consume", "set_credit", "deliver", "deliver", "get", "browse", "release")
"""Actions drawn more often: a run without them, or with an early deletion, shows nothing."""


@functools.cache
def read(name: str) -> tuple[PlainReading, Pointwise]:
    """Return both readings of the whole contract."""
    return Few(WHOLE, SCOPES[name]), Pointwise(WHOLE, Entry)


@pytest.mark.each_time(2)
@pytest.mark.parametrize("name", SCOPES)
def test_the_pointwise_reading_agrees_with_the_plain_one(name: str) -> None:
    plain, pointwise = read(name)
    states = list(walks(plain, 8))
    assert len(states) > 40
    assert list(disagreements(plain, pointwise, states)) == []


@pytest.mark.each_time(4)
@pytest.mark.parametrize("name", SCOPES)
def test_possible_states_entry_by_entry_lose_nothing_and_add_nothing(name: str) -> None:
    plain, pointwise = read(name)
    chosen = random.Random(7)  # noqa: S311  the same in each run, nothing secret
    worlds = list(uncertain(plain, pointwise, chosen, walks(plain, 25)))
    unsure = [each for each in worlds if any(len(possible) > 1 for possible in each[1][1])]
    assert len(unsure) > 5
    assert list(inexact(plain, pointwise, unsure[:25])) == []


def test_walks_come_to_everything_that_can_happen() -> None:
    happened: set[str] = set()
    for name in SCOPES:
        plain, _ = read(name)
        for state in walks(plain, 12):
            for each in WHOLE.actions:
                if each.name not in happened and any(
                    plain.enabled(each.name, state, some) for some in plain.arguments(each.name)
                ):
                    happened.add(each.name)
    assert happened == {each.name for each in WHOLE.actions}


class Stingy(WholeContract):
    """Gives back messages and keeps their bytes."""

    def _gives_back_credit(self, entry: Entry) -> None:
        super()._gives_back_credit(entry)
        consumer = self.holder[entry]
        self.unsettled_bytes[consumer] = self.unsettled_bytes[consumer] + self.size[entry]


class Impartial(WholeContract):
    """Knows no ranks."""

    @action
    def deliver_by_rank(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """Deliver to any consumer."""
        self.deliver(consumer, entry, redelivered)


class Hasty(WholeContract):
    """Lets no consumer wait at a message that does not fit."""

    def waits_before(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether something without an order is in the way."""
        return ~self.has_room(consumer, f)


class Mislabelled(WholeContract):
    """Calls the promise of a get by another name."""

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """Find nothing, where there is nothing."""
        require(forall(Entry, lambda f: ~self.there_for(consumer, f)), "quiescence")


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("twin", "name", "difference"),
    [
        (Stingy, "crashes", "leads elsewhere"),
        (Impartial, "ranks", "is possible in one reading"),
        (Hasty, "windows", "quiesce_by_size() leads elsewhere"),
        (Mislabelled, "crashes", "is refused for other reasons"),
    ],
)
def test_a_reading_of_another_text_is_found_out(
    twin: type[WholeContract], name: str, difference: str
) -> None:
    plain, _ = read(name)
    found = disagreements(plain, Pointwise(trace(twin), Entry), walks(plain, 80))
    assert any(difference in each for each in found)


# Its consequences, in scopes that can be explored.


class Steady(WholeContract):
    """Windows are set to one message or none at all, and channels have none."""

    @action
    def set_credit(
        self, consumer: Consumer, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """Open a window, by one or for good."""
        require(~byte_limited & (byte_limit == 0) & (limit == 1))
        super().set_credit(consumer, limited, limit, byte_limited, byte_limit)

    @action
    def set_pool(
        self, which: Channel, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """No channel gets a window."""
        require(limited & ~limited)
        super().set_pool(which, limited, limit, byte_limited, byte_limit)


class Overfull(Steady):
    """Delivers regardless of the window."""

    def _requires_room(self, consumer: Consumer, entry: Entry) -> None:
        require(self.has_bytes_left(consumer, entry), "byte-credit-not-exceeded")


class Destructive(Steady):
    """A crash takes everything with it."""

    @action
    def crash(self) -> None:
        """Lose everything."""
        super().crash()
        self._ends(lambda f: self.status[f] == Status.AVAILABLE, End.LOST)


class Silent(Steady):
    """Does not note why something has gone."""

    @action
    def purge(self, queue: Queue) -> None:
        """Drop everything."""
        require(forall(Entry, lambda f: self.home[f] == queue))
        self.status = self.status.map(lambda _, old: old)
        self.status.fill(Status.DEQUEUED)


class Sparing(Steady):
    """A purge leaves messages that were never published."""

    def is_spared(self, queue: Queue, f: Entry) -> Bool:
        """Spare all that has no other end."""
        return self.is_in(queue, f)


def explored(model: type[WholeContract], **fixed: int | tuple[int, ...]) -> tuple[str, int]:
    """Return the invariant that is violated in a small scope, if one is, and the states."""
    wide = scope()
    usual = {**wide.fixed, "horizon": 0, "survives": (1, 0), "returns_to_place": 1, "expires": 1}
    small = Scope(wide.sizes, range(3), usual | fixed)
    found = explore(trace(model), small)
    assert not found.incomplete
    return "" if found.violation is None else found.violation.invariant, found.states


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    "fixed",
    [
        {},
        {"mode": AUTOMATIC, "closes_itself": 1},
        {"mode": BROWSE, "deletes_itself": 1},
        {"replaces": (0, 1, 1, 0)},
    ],
)
def test_the_invariants_hold_in_small_scopes(fixed: dict[str, int | tuple[int, ...]]) -> None:
    violated, states = explored(Steady, **fixed)
    assert violated == ""
    assert states > 1_000


@pytest.mark.parametrize(
    ("model", "invariant"),
    [
        (Overfull, "window-is-never-exceeded"),
        (Destructive, "what-survives-is-not-lost"),
        (Silent, "what-is-gone-has-ended"),
        (Sparing, "what-was-left-had-been-there"),
    ],
)
def test_a_contract_that_breaks_an_invariant_is_found_out(
    model: type[WholeContract], invariant: str
) -> None:
    assert explored(model)[0] == invariant


def test_every_invariant_is_stated_in_the_whole_too() -> None:
    def names(statements: Sequence[object]) -> set[str]:
        return {str(getattr(each, "name", "")) for each in statements}

    assert names(CONTRACT.invariants) < names(WHOLE.invariants)


ENDS = "what-is-gone-has-ended"


class RevivesThePurged(LawfulContract):
    """A contract in which a delivery may be of a purged message."""

    def _requires_it_to_be_there(self, entry: Entry) -> None:
        require(self.end[entry] != End.DELETED, "delete-drops")


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("model", "outcome"),
    [
        (WholeContract, "proved"),
        (LawfulContract, "proved"),
        (JobContract, "proved"),
        (RevivesThePurged, "refuted"),
    ],
)
def test_what_has_ended_never_comes_back_for_any_number(model: type[Model], outcome: str) -> None:
    system = trace(model)
    [statement] = [each for each in system.invariants if each.name == ENDS]
    assert prove_invariant(system, statement).outcome == outcome


def test_a_first_state_is_found_where_too_many_are_possible_to_list() -> None:
    sizes: dict[Sort, int] = dict.fromkeys((Queue, Channel, Consumer, Entry), 2)
    plain = PlainReading(WHOLE, Scope(sizes, range(-1, 4)))
    assert next(plain.initial_states()) in set(itertools.islice(plain.initial_states(), 5))
    assert len(list(plain.initial_states(20))) == 20


@pytest.mark.parametrize(
    ("last", "fixed"),
    [
        pytest.param(2, {}, id="of the same level"),
        pytest.param(0, {"level": (1, 0, 0), "ties": (1, 0, 0, 0, 1, 1, 0, 1, 1)}, id="above"),
    ],
)
def test_an_arrival_takes_a_browser_back_only_to_entries_behind_it(
    last: int, fixed: dict[str, int | tuple[int, ...]]
) -> None:
    """Where returns go to the tail, an arrival of the same level stands behind all others."""
    plain = PlainReading(
        WHOLE, scope((BROWSE,), 3, queues=1, channels=1, fifo=0, to_tail=1, **fixed)
    )
    state = next(plain.initial_states())
    before = [each for each in range(3) if each != last]
    steps: list[tuple[str, tuple[int, ...]]] = [
        *(("publish", (each,)) for each in before),
        ("consume", (0,)),
        ("set_credit", (0, 0, 0, 0, 0)),
        *(("browse", (0, each, 0)) for each in before),
        ("publish", (last,)),
    ]
    for name, arguments in steps:
        assert plain.enabled(name, state, arguments), name
        state = plain.step(name, state, arguments)

    def told(symbol: str) -> set[int]:
        at = [each for each in plain.cells if each.symbol.name == symbol]
        return {cell.indices[1] for cell in at if state[plain.position(cell)]}

    assert told("may_repeat") == ({last, *before} if fixed else {last})
    assert told("behind") == (set() if fixed else set(before))

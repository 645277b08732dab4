"""The contract and the catalogue name the same requirements, and the contract's readings agree.

Scopes check a fact beyond first-order logic: the ghost counter of a consumer's unsettled messages
counts its acquired messages. Each check has a broken twin.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable, Iterator
from importlib import resources

import pytest

from brokerproof.models.contract.core import Channel, Consumer, Contract, Entry, Mode, Queue, Status
from brokerproof.models.language import action, forall, require
from brokerproof.models.language.core.model import Action, System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Symbol
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.counting import with_counts
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.read.pointwise import Blame, Frame, Pointwise, World
from brokerproof.spec import requirements

OF_THE_CONVERSATION = frozenset(("does-what-it-claims", "protocol"))
"""Requirements on the answers themselves; the contract is about their effects."""
OF_A_DOCUMENTED_MODEL = frozenset(("documented-steps",))
"""Requirements on views: these are compared with a model that refines the contract."""
NOT_OF_THE_CONTRACT = OF_THE_CONVERSATION | OF_A_DOCUMENTED_MODEL

CONTRACT = trace(Contract)

ACKNOWLEDGE, AUTOMATIC, BROWSE = range(3)


class Forgetful(Contract):
    """Forgets to give back credit for a released message."""

    @action
    def release(self, entry: Entry) -> None:
        """Let the message return to the queue, and nothing else."""
        require(self.status[entry] == Status.ACQUIRED)
        self.status[entry] = Status.AVAILABLE


class Unchecked(Contract):
    """Lets a get find nothing while something is there."""

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """Find nothing, whatever there is."""
        require(self.mode[consumer] == Mode.ACKNOWLEDGE)


class Mislabelled(Contract):
    """Calls the promise of a get by another name."""

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """Find nothing, where there is nothing."""
        require(forall(Entry, lambda f: ~self.there_for(consumer, f)), "quiescence")


# The promises by name.


def labels(system: System) -> frozenset[str]:
    """Return the labels of all guards."""
    return frozenset(g.label for each in system.actions for g in each.guards if g.label)


def unmatched(stated: Iterable[str], meant: Iterable[str]) -> list[str]:
    """Return the requirements without a guard, and the guards without a requirement."""
    stated, meant = frozenset(stated) - NOT_OF_THE_CONTRACT, frozenset(meant)
    return [
        *(f"{each} has no guard" for each in sorted(stated - meant)),
        *(f"{each} is no requirement" for each in sorted(meant - stated)),
    ]


def stated_in(name: str) -> set[str]:
    """Return the ids of the requirements that one file of the catalogue states."""
    file = resources.files(requirements) / name
    return {each.id for each in requirements.read_catalogue(name, file.read_text("utf-8"))}


CORE = stated_in("core.toml") | stated_in("qpid.toml")
"""The requirements of the core; `test_whole_contract.py` has the others."""


def test_every_guard_is_a_requirement_and_every_requirement_a_guard() -> None:
    assert unmatched(CORE, labels(CONTRACT)) == []


def test_a_requirement_without_a_guard_and_a_guard_without_a_requirement_are_found() -> None:
    assert unmatched(["a", "b", "protocol"], ["b", "c"]) == [
        "a has no guard",
        "c is no requirement",
    ]


def without_situation(stated: Iterable[str], system: System) -> list[str]:
    """Return the requirements that no action exercises."""
    said = {situation.label for each in system.actions for situation in each.situations}
    return sorted(frozenset(stated) - NOT_OF_THE_CONTRACT - said)


def test_every_requirement_is_exercised_somewhere() -> None:
    assert without_situation(CORE, CONTRACT) == []


def test_a_requirement_that_nothing_exercises_is_found() -> None:
    assert without_situation([*CORE, "sung-well"], CONTRACT) == ["sung-well"]


def test_only_requirements_are_exercised() -> None:
    for each in CONTRACT.actions:
        assert {situation.label for situation in each.situations} <= CORE, each.name


# Small scopes.


def scope(
    modes: tuple[int, ...],
    limits: tuple[int | None, ...],
    entries: int = 2,
    *,
    fifo: int = 1,
    levels: tuple[int, ...] = (),
    channels: tuple[int, ...] = (),
    in_place: int = 1,
) -> Scope:
    """Return a scope with one queue and consumers of these modes, windows and channels."""
    consumers = len(modes)
    return Scope(
        {Queue: 1, Channel: max(channels, default=0) + 1, Consumer: consumers, Entry: entries},
        range(4),
        {
            "home": 0,
            "level": levels or 0,
            "fifo": fifo,
            "returns_to_place": in_place,
            "channel": channels or 0,
            "mode": modes,
            "wants": 1,
            "limited": tuple(int(limit is not None) for limit in limits),
            "limit": tuple(limit or 0 for limit in limits),
        },
    )


SCOPES = {
    "a window and none": scope((ACKNOWLEDGE, ACKNOWLEDGE), (1, None), channels=(0, 1)),
    "automatic beside a window": scope((AUTOMATIC, ACKNOWLEDGE), (None, 2), in_place=0),
    "a browser beside a window": scope((BROWSE, ACKNOWLEDGE), (None, 1), channels=(0, 1)),
    "a browser among priorities": scope((BROWSE,), (None,), fifo=0, levels=(1, 0)),
    "three entries": scope((ACKNOWLEDGE,), (2,), entries=3),
}


def states_of(plain: PlainReading, limit: int) -> Iterator[State]:
    """Yield reachable states, nearest first, all of them or the first so many."""
    seen = dict.fromkeys(plain.initial_states())
    ahead = list(seen)
    for state in ahead:
        yield state
        for each in plain.system.actions:
            for arguments in plain.arguments(each.name):
                if len(seen) >= limit:
                    break
                if plain.enabled(each.name, state, arguments):
                    after = plain.step(each.name, state, arguments)
                    if after not in seen:
                        seen[after] = None
                        ahead.append(after)


# The ghost counter.


@pytest.mark.parametrize("name", SCOPES)
def test_the_counter_of_what_is_unsettled_counts_what_is_held(name: str) -> None:
    counted = with_counts(CONTRACT, SCOPES[name])
    found = explore(counted, SCOPES[name], invariants=["unsettled-is-the-count"])
    assert found.violation is None
    assert not found.incomplete
    assert found.states > 40


def test_a_contract_that_forgets_to_give_back_credit_is_found_out() -> None:
    counted = with_counts(trace(Forgetful), SCOPES["three entries"])
    found = explore(counted, SCOPES["three entries"])
    assert found.violation is not None
    assert found.violation.invariant == "unsettled-is-the-count"
    steps = [step.action for step in found.violation.trace if step.action]
    assert steps == ["publish", "consume", "deliver", "release"]


# The pointwise reading, with which the oracle follows a broker, and the plain one.


@functools.lru_cache(maxsize=32)
def places(plain: PlainReading) -> dict[tuple[str, tuple[int, ...]], int]:
    """Return where in a state each cell is, by the name of its symbol and its indices."""
    return {(cell.symbol.name, cell.indices): place for place, cell in enumerate(plain.cells)}


def as_world(plain: PlainReading, pointwise: Pointwise, state: State) -> tuple[Frame, World]:
    """Return a state of the plain reading as frame and world, everything in it certain."""

    def cell(symbol: Symbol, *indices: int) -> int:
        if symbol.is_order:
            return int(indices[0] < indices[1])
        return state[places(plain)[symbol.name, indices]]

    def row(symbol: Symbol) -> tuple[int, ...]:
        if not symbol.domain:
            return (cell(symbol),)
        every = plain.scope.values(symbol.domain[-1])
        if len(symbol.domain) == 1:
            return tuple(cell(symbol, index) for index in every)
        firsts = plain.scope.values(symbol.domain[0])
        return tuple(sum(cell(symbol, i, index) << i for i in firsts) for index in every)

    sizes = tuple(len(plain.scope.values(family)) for family in pointwise.families)
    entries = tuple(zip(*map(row, pointwise.local), strict=True))
    rest = tuple(map(row, pointwise.elsewhere))
    return Frame(sizes, tuple(map(row, pointwise.rigid))), (rest, entries)


def disagreements(
    plain: PlainReading, pointwise: Pointwise, states: Iterable[State]
) -> Iterator[str]:
    """Yield where the readings differ: whether, why not, and where to."""
    for state in states:
        frame, world = as_world(plain, pointwise, state)
        for each in plain.system.actions:
            for arguments in plain.arguments(each.name):
                found, blames = pointwise.take(frame, world, each.name, arguments)
                where = f"{each.name}{arguments}"
                if plain.enabled(each.name, state, arguments):
                    after = plain.step(each.name, state, arguments)
                    if found != [(as_world(plain, pointwise, after)[1], frozenset())]:
                        yield f"{where} leads elsewhere"
                elif found:
                    yield f"{where} is possible in one reading"
                elif [set(blame) for blame in blames] != [why_not(plain, each, state, arguments)]:
                    yield f"{where} is refused for other reasons"


def why_not(plain: PlainReading, of: Action, state: State, arguments: tuple[int, ...]) -> set[str]:
    """Return the labels of the guards that fail, the empty one for those without."""
    known = {guard.label for guard in of.guards}
    failing = plain.failing(of.name, state, arguments)
    return {label if label in known else "" for label in failing}


@pytest.mark.each_time(2)
@pytest.mark.parametrize("name", SCOPES)
def test_the_pointwise_reading_agrees_with_the_plain_one(name: str) -> None:
    plain, pointwise = PlainReading(CONTRACT, SCOPES[name]), Pointwise(CONTRACT, Entry)
    assert list(disagreements(plain, pointwise, states_of(plain, 400))) == []


@pytest.mark.parametrize(
    ("twin", "difference"),
    [
        (Forgetful, "release(0,) leads elsewhere"),
        (Unchecked, "get_nothing(0,) is possible in one reading"),
        (Mislabelled, "get_nothing(0,) is refused for other reasons"),
    ],
)
def test_a_reading_of_another_text_is_found_out(twin: type[Contract], difference: str) -> None:
    plain = PlainReading(CONTRACT, SCOPES["three entries"])
    other = Pointwise(trace(twin), Entry)
    assert difference in disagreements(plain, other, states_of(plain, 60))


# Where not everything is certain: possible local states, entry by entry.


def certain(world: World) -> Iterator[World]:
    """Yield every world without uncertainty that a world may be."""
    rest, entries = world
    choices = [each if isinstance(each, frozenset) else frozenset((each,)) for each in entries]
    for chosen in itertools.product(*choices):
        yield rest, chosen


def uncertain(
    plain: PlainReading, pointwise: Pointwise, chosen: random.Random, states: Iterable[State]
) -> Iterator[tuple[Frame, World]]:
    """Yield worlds in which each entry has its values from one of several states."""
    alike: dict[tuple[Frame, object], list[World]] = {}
    for state in states:
        frame, world = as_world(plain, pointwise, state)
        alike.setdefault((frame, world[0]), []).append(world)
    for (frame, _), worlds in alike.items():
        some = chosen.sample(worlds, min(len(worlds), 3))
        columns = zip(*(entries for _, entries in some), strict=True)
        yield frame, (some[0][0], tuple(frozenset(column) for column in columns))


def inexact(
    plain: PlainReading, pointwise: Pointwise, worlds: Iterable[tuple[Frame, World]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the actions whose result in an uncertain world differs from that of its cases."""
    for frame, world in worlds:
        for each in plain.system.actions:
            for arguments in plain.arguments(each.name):
                found, _ = pointwise.take(frame, world, each.name, arguments)
                together = {case for after, _ in found for case in certain(after)}
                one_by_one = {
                    after
                    for case in certain(world)
                    for after, _ in pointwise.take(frame, case, each.name, arguments)[0]
                }
                if together != one_by_one:
                    yield each.name, arguments


@pytest.mark.parametrize("name", SCOPES)
def test_possible_states_entry_by_entry_lose_nothing_and_add_nothing(name: str) -> None:
    plain, pointwise = PlainReading(CONTRACT, SCOPES[name]), Pointwise(CONTRACT, Entry)
    chosen = random.Random(7)  # noqa: S311  the same in each run, nothing secret
    worlds = uncertain(plain, pointwise, chosen, states_of(plain, 300))
    assert list(inexact(plain, pointwise, worlds)) == []


def test_a_reading_that_forgets_possibilities_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, pointwise = PlainReading(CONTRACT, SCOPES["three entries"]), Pointwise(CONTRACT, Entry)
    honest = pointwise.take

    def hasty(
        frame: Frame, world: World, name: str, arguments: tuple[int, ...]
    ) -> tuple[list[tuple[World, frozenset[str]]], list[Blame]]:
        found, blames = honest(frame, world, name, arguments)
        return found[:1], blames

    monkeypatch.setattr(pointwise, "take", hasty)
    chosen = random.Random(7)  # noqa: S311  the same in each run, nothing secret
    worlds = uncertain(plain, pointwise, chosen, states_of(plain, 300))
    assert next(inexact(plain, pointwise, worlds), None) is not None

"""What clients have seen keeps each promise; a weaker guard breaks that of its requirement.

Proofs show that for states that satisfy the invariants, and random walks for runs from the
beginning: whatever step a weaker guard adds to a run breaks the promise at once. Each promise has a
twin: a mistake that several guards share, which breaks it.
"""

from __future__ import annotations

import itertools
import random

import pytest

from brokerproof.models.contract.core import Consumer, Contract, Entry
from brokerproof.models.contract.ledger.core import LedgerOfContract
from brokerproof.models.language import FALSE, TRUE, Bool, invariant
from brokerproof.models.language.attack.mutants import Mutant
from brokerproof.models.language.attack.mutation_testing import promises_lost, weaker_guards
from brokerproof.models.language.core.model import System, trace
from brokerproof.models.language.core.scope import Cell, Scope
from brokerproof.models.language.prove.prover import can_fire, initial_state_exists, prove_invariant
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.read.pointwise import Frame, Pointwise
from brokerproof.spec.requirements import catalogue
from tests.models.contract.forbidden_steps import (
    STEPS_MAX,
    Step,
    allows,
    changed,
    guard_changes,
    random_frame,
    reading,
    walked,
)

LEDGER = trace(LedgerOfContract)
GUARDS = weaker_guards(LEDGER)

EQUIVALENT = {
    # With messages that return to their places, each guard is asked only of the others.
    *(
        "deliver: priority-order: without returns_to_place",
        "get: priority-order: without returns_to_place",
    ),
    *("deliver: fifo-order: without returns_to_place", "get: fifo-order: without returns_to_place"),
    # A browser holds no message, so its window is never partly full.
    "browse: credit-not-exceeded: unsettled[consumer] <= limit[consumer]",
    "quiesce: browser-sees-all: (unsettled[c] + 1) < limit[c]",
    # What a browser was shown is behind its place, or may be repeated.
    "browse: browser-once-by-priority: without behind[consumer, entry]",
    # `credit-used` is only about consumers with a window.
    "quiesce: credit-used: without ~limited[c]",
}
"""The weaker guards that forbid the same; `prove --attack` proves that of each."""


def outcome(model: type[LedgerOfContract], name: str) -> str:
    [statement] = [each for each in trace(model).invariants if each.name == name]
    proof = prove_invariant(trace(model), statement)
    assert not proof.says_nothing
    return proof.outcome


@pytest.mark.parametrize("name", [each.name for each in LEDGER.invariants])
def test_the_ledger_of_every_run_keeps_what_is_promised(name: str) -> None:
    assert outcome(LedgerOfContract, name) == "proved"


def test_the_promises_are_about_runs_in_which_everything_happens() -> None:
    assert initial_state_exists(LEDGER).outcome == "fires"
    assert {can_fire(LEDGER, each).outcome for each in LEDGER.actions} == {"fires"}


def unpromised(system: System) -> set[str]:
    """Return the labels of guards that no invariant states."""
    labels = {guard.label for each in system.actions for guard in each.guards if guard.label}
    return labels - {label for each in system.invariants for label in each.states}


def test_each_labelled_guard_is_promised_over_the_ledger() -> None:
    assert unpromised(LEDGER) == set()
    assert unpromised(trace(Contract)) >= {"browser-once", "quiescence", "nothing-lost"}


def test_a_promise_states_requirements() -> None:
    assert {label for each in LEDGER.invariants for label in each.states} <= catalogue().keys()


def test_the_ledger_forbids_nothing() -> None:
    assert list(GUARDS) == list(weaker_guards(trace(Contract)))
    for one, other in zip(trace(Contract).actions, LEDGER.actions, strict=True):
        assert (one.name, len(one.guards)) == (other.name, len(other.guards))


@pytest.mark.each_time(1)
@pytest.mark.parametrize("name", [name for name in GUARDS if name not in EQUIVALENT])
def test_a_weaker_guard_breaks_a_promise_that_states_its_requirement(name: str) -> None:
    assert promises_lost(LEDGER, GUARDS[name]) != ()


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(EQUIVALENT))
def test_a_guard_that_forbids_the_same_breaks_no_promise(name: str) -> None:
    assert promises_lost(LEDGER, GUARDS[name]) == ()


class WithoutPromise(LedgerOfContract):
    """A ledger that lets a browser see a message as often as it likes."""

    @invariant("a-browser-sees-once", states=("browser-once-by-priority",))
    def browser_sees_once(self, e: Entry) -> Bool:
        """Nothing is promised of the number."""
        return self.sightings[e] >= 0


def test_a_ledger_without_the_promise_loses_nothing_with_the_guard() -> None:
    name = "browse: browser-once-by-priority: dropped"
    assert promises_lost(trace(WithoutPromise), weaker_guards(trace(WithoutPromise))[name]) == ()
    assert promises_lost(LEDGER, GUARDS[name]) == ("a-browser-sees-once",)


# Runs from the beginning.


class Reader:
    """The ledger of one small world, in the eyes of one consumer."""

    def __init__(self, ledger: System, frame: Frame, number: int) -> None:
        """Read the world's rigid symbols; its entries become numbers in the order of the queue."""
        self.ledger = ledger
        contract = reading("core")
        self.rows = dict(zip((symbol.name for symbol in contract.rigid), frame.rows, strict=True))
        self.sizes = dict(zip(contract.families, frame.sizes, strict=True))
        self.order = sorted(
            range(self.sizes[Entry]), key=lambda e: self.rows["before"][e].bit_count()
        )
        self.number = number

    def plain(self, system: System) -> PlainReading:
        """Return the reading of a ledger in this world."""
        return PlainReading(system, Scope(self.sizes, range(3 * STEPS_MAX)))

    def arguments(self, step: Step) -> tuple[int, ...]:
        """Return the arguments of a step of the contract."""
        parameters = self.ledger.action(step[0]).parameters
        pairs = zip(parameters, step[1], strict=True)
        return tuple(self.order.index(n) if isinstance(p, Entry) else n for p, n in pairs)

    def before(self, steps: list[Step]) -> State:
        """Return the state after lawful steps; each of them keeps every promise."""
        plain = self.plain(self.ledger)
        state = plain.initial_state(tuple(map(self._value, plain.cells)))
        for step in steps:
            state = plain.step(step[0], state, self.arguments(step))
            assert not plain.violated(state)
        return state

    def breaks(self, mutant: Mutant, steps: list[Step], last: Step) -> bool:
        """Whether a step of the mutant breaks a promise of the guard's requirement."""
        plain = self.plain(mutant.within(self.ledger))
        violated = plain.violated(plain.step(last[0], self.before(steps), self.arguments(last)))
        stated = {each.name for each in self.ledger.invariants if mutant.guard in each.states}
        return not stated.isdisjoint(violated)

    def _value(self, cell: Cell) -> int:
        if cell.symbol.name == "reader":
            return self.number
        if cell.symbol.name not in self.rows:
            return 0
        row, sorts = self.rows[cell.symbol.name], cell.symbol.domain
        at = [
            self.order[n] if sort is Entry else n
            for n, sort in zip(cell.indices, sorts, strict=True)
        ]
        match at:
            case [one, other]:
                return row[other] >> one & 1
            case [one]:
                return row[one]
            case _:
                return row[0]


def shown_by_walks(ledger: System, frames: int) -> set[str]:
    """Return the weaker guards that add a step to some random walk, which breaks a promise.

    Those that forbid the same are not tried: they add no step to any walk.
    """
    contract, draw = reading("core"), random.Random(1)  # noqa: S311 - walks, not secrets
    left: dict[str, dict[str, Pointwise]] = {}
    for mutant in guard_changes(contract.system):
        if mutant.name not in EQUIVALENT:
            left.setdefault(mutant.original.name, {})[mutant.name] = changed(contract, mutant)
    remembered = weaker_guards(ledger)
    shown: set[str] = set()
    for _ in range(frames):
        if not any(left.values()):
            break
        frame = random_frame(contract, draw)
        readers = [Reader(ledger, frame, number) for number in range(frame.sizes[1])]
        for steps, world, step in itertools.chain(*(walked(contract, frame, draw) for _ in "1234")):
            for name, other in list(left.get(step[0], {}).items()):
                if allows(other.actions[step[0]], frame, world, step[1]):
                    mutant = remembered[name]
                    assert any(each.breaks(mutant, steps, step) for each in readers), name
                    shown.add(name)
                    del left[step[0]][name]
    return shown


def test_a_step_that_a_weaker_guard_adds_to_a_run_breaks_a_promise() -> None:
    assert len(shown_by_walks(LEDGER, 40)) >= 60


def test_a_step_that_breaks_no_promise_is_found() -> None:
    with pytest.raises(AssertionError, match="browse: browser-once-by-priority"):
        shown_by_walks(trace(WithoutPromise), 40)


@pytest.mark.thorough
def test_each_weaker_guard_adds_such_a_step() -> None:
    assert shown_by_walks(LEDGER, 5000) == GUARDS.keys() - EQUIVALENT


# Mistakes that several guards share.


class HasNone(LedgerOfContract):
    """No consumer ever has a message: for deliveries, gets and browsers alike."""

    def is_held_or_settled(self, f: Entry) -> Bool:  # noqa: ARG002
        """Forget its holder."""
        return FALSE


class MissesNone(LedgerOfContract):
    """No message is ever the next one: for each order, for gets and for browsers."""

    def is_missed(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Let it wait."""
        return FALSE


class HasNoRoom(LedgerOfContract):
    """No window lets anything through, so no consumer is owed anything."""

    def must_take(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Excuse the broker."""
        return FALSE


class HasRoom(LedgerOfContract):
    """Every window lets everything through."""

    def has_messages_left(self, consumer: Consumer) -> Bool:  # noqa: ARG002
        """Let it through."""
        return TRUE


class NothingIsThere(LedgerOfContract):
    """No message is available to any consumer."""

    def there_for(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """See none."""
        return FALSE


class TakesAny(LedgerOfContract):
    """Messages of all queues concern each consumer."""

    def concerns(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Be concerned."""
        return TRUE


class TellsAnything(LedgerOfContract):
    """Any flag will do."""

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:  # noqa: ARG002
        """Say anything."""
        return TRUE


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("twin", "promise"),
    [
        (HasNone, "each-delivery-but-the-first-follows-a-return"),
        (HasNone, "a-browser-sees-what-is-back"),
        (MissesNone, "what-was-first-in-turn-went-first"),
        (MissesNone, "an-empty-get-left-nothing-waiting"),
        (MissesNone, "a-browser-skips-nothing"),
        (HasNoRoom, "rest-leaves-no-consumer-wanting"),
        (HasNoRoom, "rest-has-shown-a-browser-all"),
        (HasRoom, "no-window-is-exceeded"),
        (NothingIsThere, "a-drain-leaves-nothing"),
        (NothingIsThere, "rest-leaves-no-consumer-wanting"),
        (TakesAny, "what-is-seen-is-wanted"),
        (TellsAnything, "the-flag-tells-of-a-return"),
    ],
)
def test_a_mistake_that_guards_share_breaks_the_promise(
    twin: type[LedgerOfContract], promise: str
) -> None:
    assert outcome(twin, promise) == "refuted"

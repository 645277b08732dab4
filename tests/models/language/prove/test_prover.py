"""The prover: true invariants are proved, false ones are shown, and no proof is vacuous."""

from __future__ import annotations

import pytest
import z3

from brokerproof.models.contract.jobs import JobContract
from brokerproof.models.language import (
    Bool,
    Int,
    action,
    axiom,
    forall,
    implies,
    invariant,
    require,
)
from brokerproof.models.language.core.model import System, trace
from brokerproof.models.language.core.terms import fresh
from brokerproof.models.language.prove.interruption import checked
from brokerproof.models.language.prove.prover import (
    InvariantProof,
    can_fire,
    initial_state_exists,
    prove,
    prove_invariant,
)
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FIRST,
    after,
    asked,
    assumed,
    decided,
    taken,
)
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Status, Subscription
from tests.models.small_models import Counters, Item, Shelves


def proof_of(system: System, name: str) -> InvariantProof:
    """Return the proof of one invariant."""
    [statement] = [s for s in system.invariants if s.name == name]
    return prove_invariant(system, statement)


def test_the_pointer_queue_is_proved_for_any_size() -> None:
    reported: list[str] = []
    proof = prove(trace(PointerQueue), report=lambda p: reported.append(p.name))
    assert {i.name: i.outcome for i in proof.stated} == dict.fromkeys(reported, "proved")
    assert (len(proof.invariants), len(proof.leads_to)) == (8, 1)
    assert {a: s.outcome for a, s in proof.firing.items()} == dict.fromkeys(proof.firing, "fires")
    assert proof.start.outcome == "fires"
    assert proof.complete
    assert all(i.assumptions == () for i in proof.invariants)


class Forgetful(PointerQueue):
    """A release that sends no subscription back."""

    @action
    def release(self, consumer: Subscription, entry: Entry) -> None:
        """The entry returns to its place, and pointers stay where they are."""
        require(self.holds[consumer, entry])
        self.status[entry] = Status.AVAILABLE
        self.holds[consumer, entry] = False


def test_without_the_rewind_a_pointer_passes_what_came_back() -> None:
    proof = proof_of(trace(Forgetful), "pointer-passes-nothing-of-interest")
    assert proof.outcome == "refuted"
    [broken] = [c for c in proof.conditions if c.outcome != "proved"]
    assert broken.action == "release"
    before, step = broken.witness
    entry = step.arguments["entry"]
    assert step.action == "release"
    assert before.state[f"status[{entry}]"] == "ACQUIRED"
    assert step.state[f"status[{entry}]"] == "AVAILABLE"
    assert sum(cell.startswith("status[") for cell in step.state) == 2


class Overconfident(Counters):
    """Counters with invariants that do not hold."""

    @invariant("nothing-is-ever-counted")
    def nothing_counted_ever(self) -> Bool:
        """Wrong after the first increment."""
        return forall(Item, lambda i: self.count[i] < 1)

    @invariant("something-is-counted")
    def something_counted(self) -> Bool:
        """Wrong from the beginning."""
        return forall(Item, lambda i: self.count[i] > 0)


def test_a_wrong_invariant_is_refuted_with_a_small_state() -> None:
    class TooLow(Counters):
        """States a limit that is too low."""

        @invariant("nothing-above-one")
        def low(self) -> Bool:
            """Wrong where the limit is two."""
            return forall(Item, lambda i: self.count[i] < 2)

    proof = proof_of(trace(TooLow), "nothing-above-one")
    assert proof.outcome == "refuted"
    assert [c.outcome for c in proof.conditions if c.action is None] == ["proved"]
    [broken] = [c for c in proof.conditions if c.action == "increment"]
    before, step = broken.witness
    assert before.state["count[item0]"] == 1
    assert step.state["count[item0]"] == 2
    assert set(before.state) == {"limit[item0]", "phase[item0]", "count[item0]"}


def test_an_invariant_that_is_wrong_from_the_beginning_shows_an_initial_state() -> None:
    proof = proof_of(trace(Overconfident), "something-is-counted")
    first = proof.conditions[0]
    assert (first.action, first.outcome) == (None, "refuted")
    [step] = first.witness
    assert step.state["count[item0]"] == 0


def test_invariants_that_contradict_the_start_are_reported() -> None:
    start = initial_state_exists(trace(Overconfident))
    assert start.outcome == "never"
    assert start.reason == "impossible with any number of elements"


def test_a_contradictory_axiom_is_reported_though_it_proves_everything() -> None:
    class Contradictory(Counters):
        """Assumes too much."""

        @axiom("no-limit-is-positive")
        def no_limit(self) -> Bool:
            """Contradict the other axiom."""
            return forall(Item, lambda i: self.limit[i] < 0)

    proof = prove(trace(Contradictory))
    assert {i.outcome for i in proof.invariants} == {"proved"}
    assert proof.start.outcome == "never"
    assert proof.start.reason == "the axioms contradict each other"
    assert not proof.complete


def test_a_guard_that_can_never_hold_is_reported() -> None:
    class Vacuous(Counters):
        """Has an action that keeps everything, since it never happens."""

        @action
        def escape(self, item: Item) -> None:
            """Exceed the limit where the limit is exceeded."""
            require(self.count[item] > self.limit[item])
            self.count[item] = self.count[item] + 1

    system = trace(Vacuous)
    fires = can_fire(system, system.action("escape"))
    assert (fires.outcome, fires.sizes) == ("never", {})
    assert fires.reason == "impossible with any number of elements"
    assert can_fire(system, system.action("begin")).outcome == "fires"
    assert not prove(system).complete


def test_an_action_that_needs_several_elements_fires_with_so_many() -> None:
    system = trace(Counters)
    assert can_fire(system, system.action("hand_on")).sizes == {"Item": 2}


def test_families_of_different_sizes_are_tried_where_equal_ones_do_not_do() -> None:
    class Sorted(Shelves):
        """One item and at least two places."""

        @axiom("one-item-above-its-hub")
        def one_item(self) -> Bool:
            """There is one item, and the hub leads elsewhere."""
            return forall(Item, Item, lambda i, j: i == j) & (self.leads_to[self.hub] != self.hub)

    system = trace(Sorted)
    found = can_fire(system, system.action("move_together"))
    assert (found.outcome, found.sizes) == ("fires", {"Item": 1, "Place": 2})


def test_a_set_parameter_is_shown_in_a_refutation() -> None:
    class Fenced(Shelves):
        """Believes that nothing ever leaves the hub."""

        @invariant("nothing-leaves-the-hub")
        def nothing_leaves(self) -> Bool:
            """Wrong after a move."""
            return forall(Item, lambda i: self.at[i] == self.hub)

    proof = proof_of(trace(Fenced), "nothing-leaves-the-hub")
    [broken] = [c for c in proof.conditions if c.action == "move_together"]
    assert broken.witness[1].arguments["which"] in {"{item0}", "{item1}", "{item0, item1}"}


def test_what_an_action_does_not_touch_needs_no_question() -> None:
    class Still(Counters):
        """States something of rigid things alone."""

        @invariant("limits-stay")
        def stay(self) -> Bool:
            """Follow from the axiom."""
            return forall(Item, lambda i: implies(self.limit[i] < 1, self.limit[i] > 1))

    proof = proof_of(trace(Still), "limits-stay")
    assert proof.outcome == "proved"
    assert [c.seconds for c in proof.conditions[1:]] == [0.0, 0.0, 0.0]


def test_what_patterns_leave_open_is_decided_without_them() -> None:
    system = trace(JobContract)
    action = system.action("deliver_by_rank")
    [limit] = [s for s in system.invariants if s.name == "no-delivery-beyond-the-limit"]
    formulas = [*assumed(system), *taken(action), ~after(limit.term, action.updates)]
    assert asked(system, formulas, STEPS_FIRST)[0] == z3.unknown
    assert decided(system, formulas, action).outcome == "proved"
    too_little = [*taken(action), ~after(limit.term, action.updates)]
    assert decided(system, too_little, action).outcome == "refuted"


def test_what_z3_is_asked_does_not_depend_on_what_was_traced_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(solver: z3.Solver, steps: int) -> tuple[z3.CheckSatResult, str]:
        asked.append(solver.sexpr())
        return checked(solver, steps)

    def questions_about_a_model_traced_now() -> list[str]:
        class Once(PointerQueue):
            """Traced anew."""

        asked.clear()
        prove_invariant(trace(Once), trace(Once).invariants[-1])
        return [*asked]

    monkeypatch.setattr("brokerproof.models.language.prove.z3_queries.checked", noted)
    first = questions_about_a_model_traced_now()
    for _ in range(7):
        fresh(Int, "x")
    assert len(first) > 2
    assert questions_about_a_model_traced_now() == first

"""The queue of pointers with a clock: no interested subscription passes an entry that falls due."""

from __future__ import annotations

import pytest

from brokerproof.models.language import action, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue


class Silent(TimedQueue):
    """An entry that falls due takes no subscription back."""

    @action
    def come_due(self, entry: Entry) -> None:
        """An entry's time has come, and that is all."""
        require(self.held_back[entry])
        self.held_back[entry] = False


class Grasping(TimedQueue):
    """An expired entry is taken from its holder, and left marked as held back."""

    @action
    def expire(self, entry: Entry) -> None:
        """An entry leaves the list."""
        require(self.status[entry] == Status.AVAILABLE)
        self.status[entry] = Status.DEQUEUED


def test_the_queue_with_a_clock_is_proved_for_any_size() -> None:
    proof = prove(trace(TimedQueue))
    assert proof.complete
    assert all(each.assumptions == () for each in proof.invariants)


@pytest.mark.parametrize(
    ("model", "broken"),
    [(Silent, "pointer-passes-nothing-of-interest"), (Grasping, "what-is-held-back-is-there")],
)
def test_a_wrong_step_is_refuted(model: type[TimedQueue], broken: str) -> None:
    system = trace(model)
    [statement] = [each for each in system.invariants if each.name == broken]
    proof = prove_invariant(system, statement)
    assert proof.outcome == "refuted"


def test_every_step_is_taken_in_a_small_scope() -> None:
    found = explore(trace(TimedQueue), Scope({Entry: 3, Subscription: 1}, range(1), {"wants": 1}))
    assert found.violation is None
    assert found.never_taken == ()

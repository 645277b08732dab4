"""The queue of pointers with selectors: pointers pass unwanted entries only."""

from __future__ import annotations

from brokerproof.models.language import action, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Status, Subscription
from brokerproof.models.qpid.pointer_queue_selectors import SelectingQueue

PASSES_NOTHING = "pointer-passes-nothing-of-interest"


class Sated(SelectingQueue):
    """A pointer passes an available entry, wanted or not."""

    @action
    def pass_over(self, consumer: Subscription, entry: Entry) -> None:
        """The pointer moves over its candidate, whatever that is."""
        require(self.active[consumer])
        require(self.candidate(consumer, entry))
        self.last_seen[consumer] = entry
        self.rewound[consumer] = False


class Indifferent(SelectingQueue):
    """A subscription receives an unwanted entry, which need not be its first."""

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """Anything available is acquired, from anywhere."""
        require(self.active[consumer] & ~self.browser[consumer])
        require(self.status[entry] == Status.AVAILABLE)
        require(self.only_arrival(entry))
        self.status[entry] = Status.ACQUIRED
        self.holds[consumer, entry] = True
        self._move_to(consumer, entry)


def test_the_queue_with_selectors_is_proved_for_any_size() -> None:
    proof = prove(trace(SelectingQueue))
    assert proof.complete
    assert all(each.assumptions == () for each in proof.invariants)


def test_what_is_wanted_must_not_be_passed() -> None:
    for model in (Sated, Indifferent):
        system = trace(model)
        [statement] = [each for each in system.invariants if each.name == PASSES_NOTHING]
        assert prove_invariant(system, statement).outcome == "refuted"


def test_without_selectors_it_is_the_queue_of_pointers() -> None:
    small: dict[type[Term], int] = {Entry: 3, Subscription: 1}
    plain = explore(trace(PointerQueue), Scope(small, range(1)))
    everything = explore(trace(SelectingQueue), Scope(small, range(1), {"wants": 1}))
    assert (plain.states, plain.transitions) == (everything.states, everything.transitions)
    chosen = explore(trace(SelectingQueue), Scope(small, range(1)))
    assert chosen.states > plain.states
    assert chosen.violation is None
    assert chosen.never_taken == ()

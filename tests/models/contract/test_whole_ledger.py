"""What clients have seen of the whole contract keeps each promise; a weaker guard breaks one.

As for the core (`test_ledger`): proofs for any number of messages and consumers, and twins. A twin
is the contract with a mistake that several guards share, or a ledger that promises less.
"""

from __future__ import annotations

import pytest

from brokerproof.models.contract.core_state import Consumer, Entry, Queue
from brokerproof.models.contract.ledger.whole_promises import WholeLedgerOfContract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language import FALSE, TRUE, Bool, invariant
from brokerproof.models.language.attack.mutation_testing import (
    is_equivalent,
    promises_lost,
    weaker_guards,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.prove.prover import can_fire, initial_state_exists, prove_invariant
from brokerproof.spec.requirements import catalogue
from tests.models.contract.test_ledger import unpromised
from tests.models.contract.unbroken import NEARLY_THE_SAME, UNBROKEN

LEDGER = trace(WholeLedgerOfContract)
GUARDS = weaker_guards(LEDGER)
BREAKING = [name for name in GUARDS if name not in UNBROKEN]


def outcome(model: type[WholeLedgerOfContract], name: str) -> str:
    [statement] = [each for each in trace(model).invariants if each.name == name]
    proof = prove_invariant(trace(model), statement)
    assert not proof.says_nothing
    return proof.outcome


@pytest.mark.each_time(6)
@pytest.mark.parametrize("name", [each.name for each in LEDGER.invariants])
def test_the_ledger_of_every_run_keeps_what_is_promised(name: str) -> None:
    assert outcome(WholeLedgerOfContract, name) == "proved"


@pytest.mark.thorough
def test_the_promises_are_about_runs_in_which_everything_happens() -> None:
    assert initial_state_exists(LEDGER).outcome == "fires"
    assert {can_fire(LEDGER, each).outcome for each in LEDGER.actions} == {"fires"}


def test_each_labelled_guard_of_the_whole_is_promised_over_the_ledger() -> None:
    assert unpromised(LEDGER) == set()
    assert {label for each in LEDGER.invariants for label in each.states} <= catalogue().keys()


def test_the_ledger_forbids_nothing() -> None:
    assert list(GUARDS) == list(weaker_guards(trace(WholeContract)))
    for one, other in zip(trace(WholeContract).actions, LEDGER.actions, strict=True):
        assert (one.name, len(one.guards)) == (other.name, len(other.guards))


@pytest.mark.each_time(10)
@pytest.mark.parametrize("name", BREAKING)
def test_a_weaker_guard_breaks_a_promise_that_states_its_requirement(name: str) -> None:
    assert promises_lost(LEDGER, GUARDS[name]) != ()


def test_the_guards_that_break_none_are_guards() -> None:
    assert UNBROKEN.keys() <= GUARDS.keys()
    assert all(UNBROKEN.values())


@pytest.mark.each_time(8)
@pytest.mark.parametrize("name", [name for name in UNBROKEN if name not in NEARLY_THE_SAME])
def test_a_guard_that_breaks_no_promise_forbids_the_same(name: str) -> None:
    whole = trace(WholeContract)
    assert is_equivalent(whole, weaker_guards(whole)[name])


class WithoutPromise(WholeLedgerOfContract):
    """A ledger that lets the reader see messages of before a purge."""

    @invariant("what-waits-at-a-purge-is-not-seen-after", states=("purge-drops",))
    def purged_is_not_seen(self, e: Entry) -> Bool:
        """Nothing is promised of purges."""
        return self.purged_at[self.home[e]] >= 0


def test_a_ledger_without_the_promise_loses_nothing_with_the_guard() -> None:
    name = "get: purge-drops: dropped"
    assert promises_lost(trace(WithoutPromise), weaker_guards(trace(WithoutPromise))[name]) == ()
    assert promises_lost(LEDGER, GUARDS[name]) == ("what-waits-at-a-purge-is-not-seen-after",)


# Mistakes that several guards share.


class NoTime(WholeLedgerOfContract):
    """No message is ever due."""

    def is_due(self, f: Entry) -> Bool:  # noqa: ARG002
        """Wait for ever."""
        return FALSE


class AlwaysFits(WholeLedgerOfContract):
    """Windows of bytes let everything through."""

    def fits_bytes(self, *_: object) -> Bool:
        """Let it through."""
        return TRUE


class MayAlwaysWait(WholeLedgerOfContract):
    """No consumer has room for certain, so none is owed anything."""

    def must_take(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Excuse the broker."""
        return FALSE


class HasPool(WholeLedgerOfContract):
    """A channel's windows let everything through."""

    def has_pool_left(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Let it through."""
        return TRUE


class StaysInPlace(WholeLedgerOfContract):
    """Returned messages are where they were, whatever is claimed."""

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Look at the arrival alone."""
        return self.before(e, f)


class WaitsAnywhere(WholeLedgerOfContract):
    """A consumer may always be waiting at an earlier message."""

    def waits_before(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """Excuse the broker."""
        return TRUE


class IsUsed(WholeLedgerOfContract):
    """Every queue has consumers."""

    def has_consumers(self, queue: Queue) -> Bool:  # noqa: ARG002
        """See some."""
        return TRUE


class LeavesNothing(WholeLedgerOfContract):
    """Nothing is left for a consumer that closes by itself."""

    def is_left_for(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002
        """See none."""
        return FALSE


class TellsNone(WholeLedgerOfContract):
    """No consumer has to be told of anything."""

    def must_be_told(self, consumer: Consumer) -> Bool:  # noqa: ARG002
        """Keep silent."""
        return FALSE


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("twin", "promise"),
    [
        (NoTime, "rest-leaves-no-consumer-wanting"),
        (NoTime, "a-flush-leaves-nothing-to-give"),
        (NoTime, "what-closes-itself-has-seen-all"),
        (NoTime, "an-empty-get-left-nothing-waiting"),
        (NoTime, "a-drain-leaves-nothing"),
        (NoTime, "what-was-first-in-turn-went-first"),
        (AlwaysFits, "no-window-of-bytes-is-exceeded"),
        (AlwaysFits, "no-window-of-a-channel-is-exceeded"),
        (HasPool, "no-window-of-a-channel-is-exceeded"),
        (MayAlwaysWait, "rest-has-shown-a-browser-all"),
        (MayAlwaysWait, "a-higher-consumer-goes-first"),
        (StaysInPlace, "a-returned-message-is-where-claimed"),
        (StaysInPlace, "a-sorted-queue-goes-by-its-key"),
        (WaitsAnywhere, "rest-leaves-no-consumer-wanting"),
        (WaitsAnywhere, "a-flush-leaves-nothing-to-give"),
        (IsUsed, "a-queue-without-consumers-ends"),
        (LeavesNothing, "what-closes-itself-has-seen-all"),
        (TellsNone, "a-dismissed-consumer-is-told"),
    ],
)
def test_a_mistake_that_guards_share_breaks_the_promise(
    twin: type[WholeLedgerOfContract], promise: str
) -> None:
    assert outcome(twin, promise) == "refuted"

"""The pushed queue keeps the whole contract, for any number of everything; and twins do not.

Each twin lacks one rule of the algorithm. What it breaks are the requirements that this rule keeps.
"""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.language import FALSE, TRUE, Bool, action, least, require
from brokerproof.models.language.attack.mutants import mutants
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove import refining
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Status, Subscription
from brokerproof.models.qpid.pointer_queue_clock import ClockedQueue
from brokerproof.models.qpid.pointer_queue_credit import CreditQueue
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pointer_queue_refines_contract import POINTER_QUEUE_REFINES_CONTRACT
from brokerproof.models.qpid.pointer_queue_refines_contract import (
    RememberingRemovingQueue as Remembering,
)
from brokerproof.models.qpid.pointer_queue_removal import RemovingQueue

OF_THE_WHOLE = (
    *("selector-respected", "held-until-its-time", "gone-when-expired", "sorted-order"),
    *("byte-credit-not-exceeded", "channel-credit-not-exceeded", "flush-delivers"),
    *("auto-close-at-the-end", "closes-only-when-asked", "auto-close-happens"),
    *("auto-delete-when-unused", "auto-delete-happens", "deletion-is-told"),
    *("exclusive-is-alone", "refuses-what-it-must", "purge-drops", "delete-drops"),
)


class ForgetsSelectors(RemovingQueue):
    """Gives every subscription every entry."""

    def is_wanted(self, consumer: Subscription, e: Entry) -> Bool:  # noqa: ARG002
        """Whether the subscription wants the entry."""
        return TRUE


class OffersWhatIsHeldBack(RemovingQueue):
    """Looks at the state of an entry, and not whether it is held back."""

    def is_held_back(self, e: Entry) -> Bool:  # noqa: ARG002
        """Whether the entry's time has not come."""
        return FALSE


class LetsGoEarly(RemovingQueue):
    """Lets go of a held entry before its time."""

    @action
    def come_due(self, entry: Entry) -> None:
        """Let go of it."""
        super(ClockedQueue, self).come_due(entry)


class NeverLooksAtTheClock(RemovingQueue):
    """Gives an entry that has expired."""

    def is_over(self, e: Entry) -> Bool:  # noqa: ARG002
        """Whether the entry has expired."""
        return FALSE


class SkipsEntries(RemovingQueue):
    """Gives an entry that is not the next one for its consumer."""

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """Give an entry from anywhere."""
        require(
            self.is_consumer(consumer) & ~self.browser[consumer] & self.has_room(consumer, entry)
        )
        require(self.can_have(consumer, entry) & ~self.is_over(entry) & self.only_arrival(entry))
        self._move_to(consumer, entry)
        self._sends(consumer, entry)


class CountsOwnMessagesOnly(RemovingQueue):
    """Looks neither at bytes nor at the window of the channel."""

    def has_room(self, consumer: Subscription, e: Entry) -> Bool:  # noqa: ARG002
        """Whether the consumer's window of messages lets the entry through."""
        return ~self.limited[consumer] | (self.unsettled[consumer] < self.limit[consumer])


class EndsAFlushAtOnce(RemovingQueue):
    """Reports the end of a flush before all is given."""

    @action
    def flush(self, consumer: Subscription) -> None:
        """Say so."""
        require(self.is_consumer(consumer))


class ClosesBeforeTheTail(RemovingQueue):
    """Closes an auto-close consumer that still has a candidate."""

    @action
    def close_itself(self, consumer: Subscription) -> None:
        """Close it."""
        require(self.nothing_arrives() & self.closes_itself[consumer])
        self.unsubscribe(consumer)


class ClosesAnyConsumer(RemovingQueue):
    """Closes a consumer at the tail that did not ask for it."""

    @action
    def close_itself(self, consumer: Subscription) -> None:
        """Close it."""
        least(self.before, lambda e: self.is_ahead(consumer, e))
        require(self.nothing_arrives() & self.is_at_the_tail(consumer))
        self.unsubscribe(consumer)


class LooksWheneverItLikes(RemovingQueue):
    """Ends though no consumer has left, as where a get counts as a consumer."""

    @action
    def delete_if_unused(self) -> None:
        """Drop everything."""
        require(self.deletes_itself & ~self.shut)
        self._drops()


class EndsAtOnce(RemovingQueue):
    """Says that all has ended that ends, at any time."""

    @action
    def come_to_an_end(self) -> None:
        """Say so."""


class LetsAnyoneIn(RemovingQueue):
    """Registers a consumer beside others, and in a queue that is gone."""

    @action
    def subscribe(self, consumer: Subscription) -> None:
        """Register it."""
        super(RemovingQueue, self).subscribe(consumer)


class KeepsOthersOut(RemovingQueue):
    """Lets no other in after its exclusive consumer has left."""

    def _left(self, unless: Bool) -> None:
        self.has_to_look |= ~unless


class TakesWhatComesTooLate(RemovingQueue):
    """Takes a message though the queue is gone."""

    @action
    def append(self, entry: Entry) -> None:
        """Append it."""
        super(RemovingQueue, self).append(entry)


class PurgesWhatIsAcquired(RemovingQueue):
    """Takes off the entries that consumers hold, too."""

    @action
    def purge(self) -> None:
        """Take off everything."""
        require(self.nothing_arrives())
        self._takes_off(lambda e: self.in_list(e) & ~self.held_back[e])


class KeepsItsEntries(RemovingQueue):
    """Is gone, and leaves the available entries in its list."""

    @action
    def drop_everything(self) -> None:
        """Remove every entry that a consumer holds."""
        require(self.shut & ~self.gone & ~self.has_consumers() & self.nothing_arrives())
        self._takes_off(lambda e: self.status[e] == Status.ACQUIRED)
        self.holds.fill(False)
        self.gone = True


def unproved(concrete: type[RemovingQueue], *only: str) -> set[tuple[str, str]]:
    """Return the obligations of these actions that are not proved of another queue."""
    remembering = type("RememberingTwin", (concrete, Remembering), {})
    refinement = dataclasses.replace(
        POINTER_QUEUE_REFINES_CONTRACT, concrete=concrete, remembering=remembering
    )
    answers = bind(refinement).proof(only).answers
    return {(each.action, each.name) for each in answers if each.outcome == "refuted"}


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("twin", "broken"),
    [
        (ForgetsSelectors, {("deliver", "selector-respected"), ("browse", "selector-respected")}),
        (OffersWhatIsHeldBack, {("deliver", "held-until-its-time")}),
        pytest.param(
            NeverLooksAtTheClock,
            {("deliver", "gone-when-expired"), ("get", "gone-when-expired")},
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            SkipsEntries,
            {("deliver", "sorted-order"), ("deliver", "priority-order")},
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            CountsOwnMessagesOnly,
            {
                ("deliver", "byte-credit-not-exceeded"),
                ("deliver", "channel-credit-not-exceeded"),
                ("browse", "byte-credit-not-exceeded"),
            },
            marks=pytest.mark.thorough,
        ),
        (EndsAFlushAtOnce, {("flush", "flush-delivers")}),
        (ClosesBeforeTheTail, {("close_itself", "auto-close-at-the-end")}),
        (ClosesAnyConsumer, {("close_itself", "closes-only-when-asked")}),
        (LooksWheneverItLikes, {("delete_if_unused", "auto-delete-when-unused")}),
        (
            EndsAtOnce,
            {
                ("come_to_an_end", "auto-close-happens"),
                ("come_to_an_end", "auto-delete-happens"),
                ("come_to_an_end", "deletion-is-told"),
            },
        ),
        (
            LetsAnyoneIn,
            {("subscribe", "exclusive-is-alone"), ("subscribe", "refuses-what-it-must")},
        ),
        (TakesWhatComesTooLate, {("append", "refuses-what-it-must")}),
        (PurgesWhatIsAcquired, {("purge", "status")}),
        (KeepsItsEntries, {("drop_everything", "status")}),
    ],
)
def test_each_rule_of_the_queue_keeps_its_requirement(
    twin: type[RemovingQueue], broken: set[tuple[str, str]]
) -> None:
    assert broken <= unproved(twin, *sorted({step for step, _ in broken}))


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("twin", "broken"),
    [
        (LetsGoEarly, "what-was-let-go-is-due"),
        (KeepsOthersOut, "alone-is-an-exclusive-consumer"),
    ],
)
def test_a_twin_breaks_an_invariant_that_the_queue_keeps(
    twin: type[RemovingQueue], broken: str
) -> None:
    for model, outcome in ((RemovingQueue, "proved"), (twin, "refuted")):
        system = trace(model)
        [statement] = [each for each in system.invariants if each.name == broken]
        assert prove_invariant(system, statement).outcome == outcome


@pytest.mark.thorough
def test_the_pushed_queue_refines_the_whole_contract() -> None:
    proof = bind(POINTER_QUEUE_REFINES_CONTRACT).proof()
    assert proof.complete
    assert len(proof.answers) > 1400
    assert {proof.standing(each) for each in OF_THE_WHOLE} == {"proved"}
    assert {"crash", "deliver_by_rank", "publish_still_waits", "rest"} <= set(proof.never)


@pytest.mark.thorough
@pytest.mark.parametrize("model", [ClockedQueue, CreditQueue, RemovingQueue])
def test_its_parts_are_proved_and_deliver_in_the_end(model: type[PointerQueue]) -> None:
    proof = prove(trace(model))
    assert proof.complete
    assert "what-a-consumer-wants-is-delivered" in {each.name for each in proof.stated}


def test_the_nearest_states_keep_all_of_it_and_take_every_step() -> None:
    never: set[str] = {action.name for action in trace(RemovingQueue).actions}
    for browser, not_before in ((0, 0), ((1, 0), 0), (0, (0, 1))):
        scope = Scope(
            {Entry: 2, Subscription: 2, Channel: 1},
            range(2),
            {
                **dict.fromkeys(("head", "level", "by_key", "fifo", "exclusive"), 0),
                **dict.fromkeys(("wants", "size", "expires", "horizon", "deletes_itself"), 1),
                "settles_when_sent": 0,
                "is_get": (0, 1),
                "closes_itself": (1, 0),
                "browser": browser,
                "not_before": not_before,
            },
        )
        found = explore(trace(RemovingQueue), scope, limit_states=200_000)
        assert found.violation is None
        never &= set(found.never_taken)
    assert never == set()


def test_a_mistake_that_takes_four_entries_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dummy head, an entry behind the place, the place, and the entry that a get overlooks."""
    bound = bind(POINTER_QUEUE_REFINES_CONTRACT)
    wanted = "find_nothing: guard 3: (g before last_seen[consumer]) instead"
    [overlooks] = [each for each in mutants(bound.concrete) if each.name == wanted]
    changed = overlooks.within(bound.concrete)
    assert bound.broken_by(changed) != ()
    monkeypatch.setattr(refining, "SIZE_LAST", 3)
    assert bound.broken_by(changed) == ()

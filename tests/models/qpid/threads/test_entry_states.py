"""The states of an entry: proved for any number of threads, and each rule is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, action, forall, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.prove.ranking import HELPED, STEP, prove_leads_to
from brokerproof.models.qpid.threads.entry_states import (
    Consumer,
    Doing,
    Entry,
    EntryStates,
    State,
    Worker,
)

FORGOTTEN = "nothing-acquired-is-forgotten"


def scope(workers: int = 2, consumers: int = 1) -> Scope:
    """Return a scope of one entry."""
    sizes: dict[type[Term], int] = {Entry: 1, Consumer: consumers, Worker: workers}
    return Scope(sizes, range(1), {"anybody": 0, "nothing": 0, "idle": 0})


def explored(model: type[Model], *invariants: str, workers: int = 2) -> Exploration:
    """Explore; all invariants, or those named."""
    named = invariants or None
    return explore(trace(model), scope(workers), invariants=named, limit_states=3_000_000)


class GivesUp(EntryStates):
    """Swaps once and gives up if the entry has become stealable meanwhile (QPID-6419)."""

    @action
    def look_again(self, w: Worker) -> None:
        """The state has changed: that was all."""
        super().look_again(w)
        self.doing[w] = Doing.NOTHING


class ReleasesOnce(EntryStates):
    """Swaps once to release, as Qpid does."""

    @action
    def look_again_to_release(self, w: Worker) -> None:
        """The state has changed: that was all."""
        super().look_again_to_release(w)
        self.doing[w] = Doing.NOTHING


class OnOneThread(ReleasesOnce):
    """Settles an entry only after the sender has made it stealable."""

    @action
    def settle(self, w: Worker, c: Consumer, e: Entry, releases: Bool) -> None:
        """The connection's thread sends and settles, one after the other."""
        require(~self.gives(self.giver[c], c) | (self.at[self.giver[c]] != e))
        super().settle(w, c, e, releases)


class StealsWhatIsSent(EntryStates):
    """Steals an entry that is just being sent."""

    @action
    def steal(self, w: Worker, e: Entry) -> None:
        """The queue steals it from any consumer that has acquired it."""
        require(self.may_begin(w) & self.is_a_consumers(e))
        self._becomes(e, State.THE_QUEUES)
        self._begins(w, e, self.anybody, Doing.LOOKS_TO_DELETE)
        self.for_queue[w] = True
        self.keeper[e] = w


class GivesWithoutLock(EntryStates):
    """Gives to a consumer while another thread does."""

    @action
    def look(self, w: Worker, c: Consumer, e: Entry) -> None:
        """A thread looks at an entry."""
        require(self.may_begin(w))
        require((self.state[e] == State.AVAILABLE) & ~self.expired[e])
        self.saw_expired[w] = self.expired[e]
        self._begins(w, e, c, Doing.ACQUIRES)
        self.giver[c] = w


class DeletesWhatIsAvailable(EntryStates):
    """Deletes an entry in whatever state it is."""

    @action
    def look_to_delete(self, w: Worker) -> None:
        """The state is read."""
        require(self.doing[w] == Doing.LOOKS_TO_DELETE)
        self._see(w)
        self.doing[w] = Doing.DELETES


class GivesWhatHasExpired(EntryStates):
    """Looks at no entry's time."""

    @action
    def look(self, w: Worker, c: Consumer, e: Entry) -> None:
        """A thread with the consumer's send lock looks at an entry."""
        require(self.may_begin(w) & self.lock_is_free(c) & (self.state[e] == State.AVAILABLE))
        self.saw_expired[w] = self.expired[e]
        self._begins(w, e, c, Doing.ACQUIRES)
        self.giver[c] = w


class ReleasesSilently(EntryStates):
    """Does not mark a returned entry."""

    @action
    def lock(self, w: Worker) -> None:
        """It is still the consumer's."""
        super().lock(w)
        self.redelivered = self.redelivered.map(lambda _, old: old & ~self.releases[w])


class DropsWhatComesBack(EntryStates):
    """Deletes a returned entry, as if it had been acknowledged."""

    @action
    def lock(self, w: Worker) -> None:
        """It is still the consumer's."""
        super().lock(w)
        self.doing[w] = Doing.LOOKS_TO_DELETE


class SendsUnnoted(EntryStates):
    """Does not note with the entry that it was sent."""

    @action
    def send(self, w: Worker) -> None:
        """It is noted as unsettled and sent."""
        super().send(w)
        self.was_sent[self.at[w]] = False


def test_it_is_proved_for_any_number_of_entries_consumers_and_threads() -> None:
    system = trace(EntryStates)
    stated = [prove_invariant(system, each) for each in system.invariants]
    assert [each.name for each in stated if each.outcome != "proved"] == []
    assert {FORGOTTEN, "each-move-is-in-the-table"} <= {each.name for each in stated}


def test_one_entry_and_two_threads_keep_all_of_it() -> None:
    found = explore(trace(EntryStates), scope(), limit_states=3_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken", "workers"),
    [
        (GivesUp, FORGOTTEN, 2),
        (ReleasesOnce, FORGOTTEN, 2),
        (StealsWhatIsSent, "what-is-sent-was-available-and-fresh", 2),
        (GivesWithoutLock, "one-gives-to-a-consumer-at-a-time", 2),
        (DeletesWhatIsAvailable, "each-move-is-in-the-table", 3),
        (GivesWhatHasExpired, "what-is-sent-was-available-and-fresh", 1),
        (ReleasesSilently, "what-comes-back-is-marked", 1),
        (DropsWhatComesBack, "what-is-returned-is-put-back", 1),
        (SendsUnnoted, "what-is-unsettled-was-sent", 1),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, workers: int) -> None:
    found = explored(model, broken, workers=workers)
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_a_release_that_swaps_once_is_enough_where_one_thread_sends_and_settles() -> None:
    found = explored(OnOneThread, FORGOTTEN)
    assert (found.violation, found.incomplete) == (None, "")


def test_every_settlement_send_and_taking_comes_to_an_end() -> None:
    assert all(each.kept for each in check(trace(EntryStates), scope(1)))


class UnlocksLate(EntryStates):
    """A thread lets go of the send lock only if no thread settles."""

    @action
    def unlock(self, w: Worker) -> None:
        """No thread settles."""
        require(forall(Worker, lambda v: ~self.settles(v)))
        super().unlock(w)


class Wavers(EntryStates):
    """Makes an entry stealable and unstealable again and again."""

    @action
    def waver(self, e: Entry) -> None:
        """A consumer has the entry."""
        require(self.is_a_consumers(e))
        is_stealable = self.state[e] == State.STEALABLE
        self._becomes(e, ite(is_stealable, State.UNSTEALABLE, State.STEALABLE))


class PutsBackLate(EntryStates):
    """The queue puts an entry back only if no thread sends one."""

    @action
    def release(self, w: Worker) -> None:
        """No thread sends."""
        require(forall(Worker, lambda v: self.doing[v] != Doing.SENDS))
        super().release(w)


@pytest.mark.each_time(3)
@pytest.mark.parametrize(
    ("model", "ended", "failing"),
    [
        (EntryStates, "each-send-ends", set()),
        (EntryStates, "each-settlement-ends", set()),
        (EntryStates, "each-taking-for-the-queue-ends", set()),
        (UnlocksLate, "each-send-ends", {(HELPED, None), (STEP, "settle")}),
        (Wavers, "each-settlement-ends", {(STEP, "waver")}),
        (PutsBackLate, "each-taking-for-the-queue-ends", {(HELPED, None), (STEP, "acquire")}),
    ],
)
def test_threads_end_with_any_number_of_others_and_need_their_own_steps_alone(
    model: type[Model], ended: str, failing: set[tuple[str, str | None]]
) -> None:
    [progress] = [each for each in trace(model).leads_to if each.name == ended]
    conditions = prove_leads_to(trace(model), progress).conditions
    assert {(c.of, c.action) for c in conditions if c.outcome != "proved"} == failing

"""The runner's protocol: proved for any number of threads, and each step of it is needed."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.language import Bool, action, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.systems import LeadsTo
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.ranking import prove_leads_to
from brokerproof.models.qpid.threads.queue_runner import (
    Announcing,
    Change,
    QueueRunner,
    Runner,
    Running,
    Walks,
)

ENDS = {"each-announced-change-is-seen", "each-announcement-ends", "each-run-ends"}
SCOPE = Scope({Change: 2, Runner: 2}, range(1))


class CountsLate(QueueRunner):
    """Counts a change after it has tried the slot."""

    def is_counted(self, c: Change) -> Bool:
        """Whether the last step has been made."""
        return self.announcing[c] == Announcing.IS_DONE

    @action
    def count(self, c: Change) -> None:
        """It is counted at last."""
        require(self.announcing[c] == Announcing.TRIES)
        self.announcing[c] = Announcing.IS_DONE

    @action
    def start(self, c: Change, r: Runner) -> None:
        """The slot is free: a runner is put there."""
        require(self.announcing[c] == Announcing.COUNTS)
        require(self.slot_is_free() & (self.running[r] == Running.IS_IDLE))
        self.announcing[c] = Announcing.TRIES
        self.in_slot[r] = True
        self.running[r] = Running.IS_HANDED_OVER

    @action
    def leave_it(self, c: Change) -> None:
        """A runner is in the slot already."""
        require((self.announcing[c] == Announcing.COUNTS) & ~self.slot_is_free())
        self.announcing[c] = Announcing.TRIES


class EndsUnread(QueueRunner):
    """Ends after a complete walk without a look at the count."""

    @action
    def end(self, r: Runner) -> None:
        """The last walk was complete."""
        require((self.running[r] == Running.READS) & (self.left[r] == Walks.NONE))
        self.running[r] = Running.IS_IDLE


class KeepsTheSlot(QueueRunner):
    """Stays in the slot while it reads, so that no other runner starts."""

    @action
    def give_back(self, r: Runner) -> None:
        """Nothing is given back where the run goes on."""
        require(self.running[r] == Running.GIVES_BACK)
        self.running[r] = Running.READS


class TakesBlindly(QueueRunner):
    """Walks whether or not another is in the slot."""

    @action
    def take(self, r: Runner) -> None:
        """The walk begins."""
        require(self.running[r] == Running.TAKES)
        self.in_slot[r] = True
        self.looks_at = self.looks_at.map(lambda s, c, old: old | ((s == r) & self.is_made(c)))
        self.running[r] = Running.WALKS


class LeavesTheRest(QueueRunner):
    """Does not ask to be executed again when its slice is used up."""

    @action
    def leave_the_rest(self, r: Runner) -> None:
        """The slice is used up."""
        require(self.running[r] == Running.WANTS_MORE)
        self.running[r] = Running.IS_IDLE


class DeliversForEver(QueueRunner):
    """A message that one walk has delivered may be delivered by another again."""

    @action
    def go_on(self, r: Runner, c: Change) -> None:
        """The walk delivers, so there must be another."""
        require((self.running[r] == Running.WALKS) & self.looks_at[r, c])
        self.left[r] = Walks.TWO
        self.running[r] = Running.GIVES_BACK


class LooksAhead(QueueRunner):
    """Takes a message that is not there yet for seen, at the beginning of its walk."""

    @action
    def take(self, r: Runner) -> None:
        """The walk begins, and sees to everything."""
        super().take(r)
        self.looks_at = self.looks_at.map(lambda s, _, old: old | (s == r))


def explored(model: type[Model], *invariants: str) -> Exploration:
    """Explore in the scope; all invariants, or those named."""
    return explore(trace(model), SCOPE, invariants=invariants or None)


def test_every_run_of_two_changes_and_two_runners_keeps_the_promises() -> None:
    found = explored(QueueRunner)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


def test_it_is_proved_for_any_number_of_changes_and_runners() -> None:
    proof = prove(trace(QueueRunner))
    assert proof.complete
    assert {each.name for each in proof.leads_to} == ENDS
    assert "no-lost-wake-up" in {each.name for each in proof.invariants}


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (CountsLate, "no-lost-wake-up"),
        (LooksAhead, "what-is-seen-was-made"),
        (EndsUnread, "no-lost-wake-up"),
        (KeepsTheSlot, "no-lost-wake-up"),
        (TakesBlindly, "one-in-the-slot"),
        (LeavesTheRest, "no-lost-wake-up"),
    ],
)
def test_each_step_is_needed(model: type[Model], broken: str) -> None:
    found = explored(model, broken)
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_every_change_is_seen_in_the_end_unless_walks_deliver_for_ever() -> None:
    assert all(each.kept and each.asked for each in check(trace(QueueRunner), SCOPE))
    broken = {each.name for each in check(trace(DeliversForEver), SCOPE) if not each.kept}
    assert {"each-announced-change-is-seen", "each-run-ends"} <= broken


def failing(model: type[Model], progress: LeadsTo) -> list[str | None]:
    """Return the actions after which a condition of the rank fails."""
    conditions = prove_leads_to(trace(model), progress).conditions
    return [each.action for each in conditions if each.outcome != "proved"]


@pytest.mark.each_time(1)
@pytest.mark.parametrize("ended", sorted(ENDS, reverse=True))
def test_no_rank_shows_an_end_where_walks_deliver_or_changes_come_for_ever(ended: str) -> None:
    [right] = [each for each in trace(QueueRunner).leads_to if each.name == ended]
    changing = dataclasses.replace(right, finitely={})
    assert failing(QueueRunner, changing) == ["change"]
    [wrong] = [each for each in trace(DeliversForEver).leads_to if each.name == ended]
    assert failing(DeliversForEver, wrong) == ["go_on"]

"""The queue that consumers pull from: its additions are proved; and twins."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.language import action, require
from brokerproof.models.language.attack.mutants import mutants
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.prove.refining import Bound
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pull.pull_queue import Listed, PullQueue
from brokerproof.models.qpid.pull.pull_queue_refines_contract import PULL_QUEUE_REFINES_CONTRACT

LISTS = "a-subscription-is-in-a-list"


class StaysListed(PullQueue):
    """Leaves, and stays in its list."""

    @action
    def unsubscribe(self, consumer: Subscription) -> None:
        """A consumer leaves."""
        require(self.active[consumer])
        self.active[consumer] = False


class NotifiesWithoutRoom(PullQueue):
    """Notifies a consumer whether or not it is interested."""

    @action
    def notify(self, consumer: Subscription) -> None:
        """A consumer is notified of work."""
        require(
            self.is_listed(consumer, Listed.INTERESTED)
            | self.is_listed(consumer, Listed.NOT_INTERESTED)
        )
        self._moves(consumer, Listed.NOTIFIED)


class TakesBrowsersForOthers(PullQueue):
    """Lists a browser that has room among the interested."""

    @action
    def want(self, consumer: Subscription) -> None:
        """A consumer has room."""
        require(self.is_listed(consumer, Listed.NOT_INTERESTED))
        self._moves(consumer, Listed.INTERESTED)


class KeepsWhatLeaves(PullQueue):
    """A consumer that moves stays ahead of the same others."""

    def _moves(self, consumer: Subscription, to: Listed) -> None:
        self.was_listed[consumer] = self.listed[consumer]
        self.listed[consumer] = to


def unproved(bound: Bound, *actions: str) -> set[tuple[str, str]]:
    """Return the unproved obligations of these actions, with the action."""
    answers = [each for action in actions for each in bound.answers(action)]
    assert len(answers) > 5 * len(actions)
    return {(each.action, each.name) for each in answers if each.outcome != "proved"}


def test_what_it_adds_is_proved_for_any_number_of_everything() -> None:
    system = trace(PullQueue)
    added = [s for s in system.invariants if s.name == LISTS or s.name.startswith("each-")]
    assert len(added) == 4
    outcomes = {each.name: prove_invariant(system, each).outcome for each in added}
    assert set(outcomes.values()) == {"proved"}


def test_two_consumers_and_a_message_keep_all_of_it() -> None:
    scope = Scope(
        {Entry: 2, Subscription: 2, Channel: 1},
        range(2),
        {"wants": 1, "fifo": 0, "level": (1, 0)},
    )
    found = explore(trace(PullQueue), scope, limit_states=2_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (StaysListed, LISTS),
        (NotifiesWithoutRoom, "each-move-is-a-row-of-the-table"),
        (TakesBrowsersForOthers, "each-is-where-it-belongs"),
        (KeepsWhatLeaves, "each-list-is-in-one-order"),
    ],
)
def test_each_rule_of_the_lists_is_needed(model: type[Model], broken: str) -> None:
    scope = Scope({Entry: 1, Subscription: 2, Channel: 1}, range(1), {"wants": 1})
    found = explore(trace(model), scope, invariants=[broken])
    assert found.violation is not None


def test_what_it_does_besides_the_queue_of_pointers_refines_the_contract() -> None:
    bound = bind(PULL_QUEUE_REFINES_CONTRACT)
    assert unproved(bound, "come_to_rest", "want", "deliver") == set()


def test_a_rest_with_work_left_is_no_rest_of_the_contract() -> None:
    bound = bind(PULL_QUEUE_REFINES_CONTRACT)
    wanted = "come_to_rest: guard 3: dropped"
    [early] = [each for each in mutants(bound.concrete) if each.name == wanted]
    assert set(bound.broken_by(early.within(bound.concrete))) & {"quiescence", "browser-sees-all"}


def test_without_the_obligation_of_consumers_a_rest_may_leave_work() -> None:
    assumed = dict(PULL_QUEUE_REFINES_CONTRACT.assumptions)
    del assumed["come_to_rest"]
    bound = bind(dataclasses.replace(PULL_QUEUE_REFINES_CONTRACT, assumptions=assumed))
    system = bound.concrete
    again = tuple(
        dataclasses.replace(each) if each.name == "come_to_rest" else each
        for each in system.actions
    )
    assert "quiescence" in bound.broken_by(dataclasses.replace(system, actions=again))

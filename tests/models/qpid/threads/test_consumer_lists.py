"""The lists of consumers: proved for any number of them, and each row of the table is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.counting import with_counts
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.qpid.pointer_queue import Subscription
from brokerproof.models.qpid.threads.consumer_lists import ConsumerLists, Listed

SCOPE = Scope({Subscription: 3}, range(-1, 5))


class NotifiesWhoHasNoRoom(ConsumerLists):
    """Notifies a consumer whether or not it is interested."""

    @action
    def notify(self, who: Subscription) -> None:
        """A consumer is notified of work."""
        require(self.is_listed(who, Listed.INTERESTED) | self.is_listed(who, Listed.NOT_INTERESTED))
        self._moves(who, Listed.NOTIFIED)


class TakesBrowsersForOthers(ConsumerLists):
    """Lists a browser that has room among the interested."""

    @action
    def want(self, who: Subscription) -> None:
        """A consumer has room."""
        require(self.is_listed(who, Listed.NOT_INTERESTED))
        self._moves(who, Listed.INTERESTED)


class KeepsWhoLeaves(ConsumerLists):
    """A consumer that leaves stays ahead of the same others."""

    @action
    def leave(self, who: Subscription) -> None:
        """A consumer goes."""
        require(~self.is_listed(who, Listed.REMOVED))
        self._counts(who, Listed.REMOVED)
        self.listed[who] = Listed.REMOVED


class CountsOnlyWhoComes(ConsumerLists):
    """A consumer without room still counts as before."""

    @action
    def want_no_more(self, who: Subscription) -> None:
        """A consumer has no room any more."""
        super().want_no_more(who)
        self.active = self.active.map(
            lambda _, old: ite(self.is_listed(who, Listed.NOT_INTERESTED), old + 1, old)
        )


def test_they_are_proved_for_any_number_of_consumers() -> None:
    proof = prove(trace(ConsumerLists))
    stated = (*proof.invariants, *proof.counters)
    assert [each.name for each in stated if each.outcome != "proved"] == []
    assert {"size-moves", "active-moves"} <= {each.name for each in stated}


def test_three_consumers_keep_all_of_it_and_are_as_many_as_is_counted() -> None:
    found = explore(with_counts(trace(ConsumerLists), SCOPE), SCOPE)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (NotifiesWhoHasNoRoom, "each-move-is-a-row-of-the-table"),
        (TakesBrowsersForOthers, "each-is-where-it-belongs"),
        (KeepsWhoLeaves, "each-list-is-in-one-order"),
        (CountsOnlyWhoComes, "active-is-the-count"),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str) -> None:
    found = explore(with_counts(trace(model), SCOPE), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert found.violation.invariant == broken

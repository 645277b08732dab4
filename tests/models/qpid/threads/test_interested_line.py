"""Fairness of notifying: none is overtaken twice, and yet a consumer may get nothing for ever."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, action, leads_to, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.qpid.threads.interested_line import IT, Consumer, InterestedLine

SCOPE = Scope({Consumer: 3}, range(1))
TWICE = "no-consumer-is-passed-by-twice"
FAIR = ("arrive", "notify", "tell_nobody", "take", "find_nothing")


class ReturnsToTheFront(InterestedLine):
    """Puts a consumer that finds no message ahead of the waiting ones."""

    def _return(self, c: Consumer) -> None:
        self.ahead = self.ahead.map(
            lambda a, b, old: old | ((a == c) & ~self.notified[b] & (b != c))
        )
        self.notified[c] = False


class NotifiesAnybody(InterestedLine):
    """Notifies any of the waiting consumers."""

    @action
    def notify(self, c: Consumer) -> None:
        """A waiting consumer is notified."""
        require(self.is_to_be_told[IT] & self.is_there[IT] & ~self.notified[c])
        self.is_to_be_told[IT] = False
        self._notify(c)


class Hopes(InterestedLine):
    """Promises more than the document does."""

    @leads_to("who-waits-is-notified", fair=FAIR)
    def is_notified(self, c: Consumer) -> tuple[Bool, Bool]:
        """A consumer that waits in the line is eventually notified."""
        return ~self.notified[c], self.notified[c]

    @leads_to("who-waits-takes", fair=FAIR)
    def takes(self, c: Consumer) -> tuple[Bool, Bool]:
        """A consumer that waits in the line eventually takes a message."""
        return ~self.notified[c], self.took[c]


class GoesBackEachTime(Hopes):
    """Goes to the back of the line also when it has taken something."""

    @action
    def take(self, c: Consumer) -> None:
        """A notified consumer takes a message, and waits again."""
        require(self.notified[c] & self.is_there[IT] & ~self.is_to_be_told[IT])
        self.is_there[IT] = False
        self.took[c] = True
        self._return(c)


def explored(model: type[Model]) -> Exploration:
    """Explore with three consumers."""
    return explore(trace(model), SCOPE)


def test_it_is_proved_for_any_number_of_consumers() -> None:
    proof = prove(trace(InterestedLine))
    assert [each.name for each in proof.invariants if each.outcome != "proved"] == []
    assert TWICE in {each.name for each in proof.invariants}


def test_three_consumers_keep_all_of_it() -> None:
    found = explored(InterestedLine)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize("model", [ReturnsToTheFront, NotifiesAnybody])
def test_the_back_of_the_line_is_needed_and_its_front(model: type[Model]) -> None:
    found = explore(trace(model), SCOPE, invariants=[TWICE])
    assert found.violation is not None


def test_who_stays_notified_may_take_everything_while_others_wait_or_come_too_late() -> None:
    two = Scope({Consumer: 2}, range(1))
    kept = {each.name: each.kept for each in check(trace(Hopes), two)}
    assert kept == {"who-waits-is-notified": False, "who-waits-takes": False}


def test_if_it_went_back_each_time_everybody_would_be_notified() -> None:
    two = Scope({Consumer: 2}, range(1))
    kept = {each.name: each.kept for each in check(trace(GoesBackEachTime), two)}
    assert kept["who-waits-is-notified"]

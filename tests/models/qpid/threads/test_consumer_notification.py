"""Consumers that pull: proved for any number of them, and each step is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.qpid.threads.consumer_notification import (
    Bringing,
    Consumer,
    ConsumerNotification,
    Listed,
    Message,
    Working,
)

WAITS = "no-consumer-waits-beside-a-message"


class LooksThenReturns(ConsumerNotification):
    """Has looked before it can be notified anew."""

    @action
    def find_nothing(self, c: Consumer) -> None:
        """There is nothing to take; it returns later."""
        super().find_nothing(c)
        self.working[c] = Working.ASKS

    @action
    def return_to_interested(self, c: Consumer) -> None:
        """It looks as one that is notified."""
        require(self.working[c] == Working.COMES)
        self.working[c] = Working.LOOKS

    @action
    def ask(self, c: Consumer) -> None:
        """It returns to the interested, and does not look again."""
        require(self.working[c] == Working.ASKS)
        self._moves(c, Listed.NOTIFIED, Listed.INTERESTED)
        self.working[c] = Working.WAITS


class HandsNothingOver(ConsumerNotification):
    """Leaves the interested without notifying another consumer."""

    @action
    def decline(self, c: Consumer) -> None:
        """It is not interested any more."""
        super().decline(c)
        self.working[c] = Working.WAITS


class AsksNothing(ConsumerNotification):
    """Has room again and waits for the next arrival."""

    @action
    def gain_room(self, c: Consumer) -> None:
        """The consumer is interested."""
        super().gain_room(c)
        self.working[c] = Working.WAITS


class TellsBeforeItIsThere(ConsumerNotification):
    """Notifies a consumer of a message before that can be taken."""

    @action
    def notify(self, m: Message, c: Consumer) -> None:
        """An interested consumer is notified."""
        require(self.bringing[m] == Bringing.ENQUEUES)
        require(self.listed[c] == Listed.INTERESTED)
        self.listed[c] = Listed.NOTIFIED
        self.told[m] = c
        self.bringing[m] = Bringing.SCHEDULES

    @action
    def schedule(self, m: Message) -> None:
        """Now it is there."""
        super().schedule(m)
        self.available[m] = True


class ForgetsToSchedule(ConsumerNotification):
    """Hands over to a consumer, but its connection does not come."""

    @action
    def schedule_other(self, c: Consumer) -> None:
        """The notified consumer's connection is left alone."""
        require(self.working[c] == Working.SCHEDULES)
        self.working[c] = Working.WAITS


class WalksOn(ConsumerNotification):
    """Goes on with its walk when it has notified a consumer."""

    @action
    def schedule(self, m: Message) -> None:
        """The notified consumer's connection will come, and others will."""
        super().schedule(m)
        self.bringing[m] = Bringing.WALKS


class TakesWithoutRoom(ConsumerNotification):
    """Takes a message whether or not it is among the interested."""

    @action
    def take(self, c: Consumer, m: Message, last: Bool) -> None:
        """It takes a message."""
        require((self.working[c] == Working.LOOKS) & self.available[m])
        self.available[m] = False
        self.working[c] = ite(last, Working.DECLINES, Working.STAYS)


def explored(model: type[Model], invariant: str, messages: int = 1) -> Exploration:
    """Explore with two consumers."""
    scope = Scope({Message: messages, Consumer: 2}, range(1), {"anybody": 0})
    return explore(trace(model), scope, invariants=[invariant], limit_states=2_000_000)


def test_it_is_proved_for_any_number_of_messages_and_consumers() -> None:
    proof = prove(trace(ConsumerNotification))
    assert [each.name for each in proof.invariants if each.outcome != "proved"] == []
    assert WAITS in {each.name for each in proof.invariants}


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (LooksThenReturns, WAITS),
        (HandsNothingOver, WAITS),
        (AsksNothing, WAITS),
        (TellsBeforeItIsThere, WAITS),
        (ForgetsToSchedule, "who-is-notified-comes"),
        (WalksOn, "an-arrival-notifies-one"),
        (TakesWithoutRoom, "who-is-not-interested-takes-nothing"),
    ],
)
def test_each_step_is_needed(model: type[Model], broken: str) -> None:
    found = explored(model, broken)
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_every_message_is_taken_in_the_end_unless_whoever_declines_keeps_quiet() -> None:
    alone = Scope({Message: 2, Consumer: 1}, range(1))
    assert all(each.kept and each.asked for each in check(trace(ConsumerNotification), alone))
    broken = {each.name for each in check(trace(AsksNothing), alone) if not each.kept}
    assert "interested-consumers-let-no-message-wait" in broken

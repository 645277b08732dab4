"""The window of a channel: proved for any number of deliveries, and each rule is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.counting import prove_counter, with_counts
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.qpid.channel_credit import (
    Channel,
    ChannelCredit,
    Consumer,
    Message,
    Taking,
)

EXACT = "what-is-left-is-exact"
RESTS = "no-consumer-rests-beside-room"

SIZES: dict[type[Term], int] = {Channel: 1, Consumer: 2, Message: 2}
"""Two consumers share a channel, with a message each."""

SCOPE = Scope(SIZES, range(-3, 4), {"size": (2, 1), "consumer": (0, 1)})
ALONE = Scope({**SIZES, Consumer: 1}, range(-2, 3), {"size": (1, 1)})
NO_BODY = Scope({**SIZES, Message: 3}, range(-3, 4), {"size": (0, 1, 1), "consumer": (0, 1, 1)})


class GivesBackTooMuch(ChannelCredit):
    """Gives back more than was taken."""

    @action
    def settle(self, m: Message, goes_back: Bool) -> None:
        """A delivery is settled."""
        super().settle(m, goes_back)
        which = self.channel_of(m)
        self.left[which] = self.left[which] + 1


class TakesNothingOfTheUnlimited(ChannelCredit):
    """Counts nothing as long as there is no limit, as Qpid 6.0 does."""

    @action
    def take_room(self, c: Consumer, m: Message) -> None:
        """An unlimited window stays unchanged."""
        super().take_room(c, m)
        which = self.channel[c]
        self.left[which] = ite(self.limit[which] == 0, self.left[which] + 1, self.left[which])


class ReturnsTwice(ChannelCredit):
    """Gives room back also for a message that is sent again in place."""

    @action
    def send_again(self, m: Message) -> None:
        """An unsettled message is sent once more."""
        super().send_again(m)
        self.left[self.channel_of(m)] = self.left[self.channel_of(m)] + 1


class KeepsWhatItMissed(ChannelCredit):
    """Gives no room back if another thread was faster."""

    @action
    def miss(self, m: Message) -> None:
        """Another thread was faster."""
        super().miss(m)
        which = self.channel_of(m)
        self.left[which] = self.left[which] - 1


class DrivesItselfOnly(ChannelCredit):
    """Announces returned room only to the consumer that had taken it."""

    @action
    def drive(self, m: Message) -> None:
        """Its consumer is driven."""
        require(self.gave_back[m])
        self.gave_back[m] = False
        self.driven[self.consumer[m]] = True


class LooksForCreditOnly(ChannelCredit):
    """Does not announce room if there was some before: QPID-1187, of bytes."""

    def is_news(self, which: Channel, had: Bool) -> Bool:
        """Whether any message may pass, and none could."""
        return self.has_credit(which) & ~had


class AsksForAByte(ChannelCredit):
    """Takes a window for full when no byte is left, though a message may have no body."""

    def has_credit(self, which: Channel) -> Bool:
        """Whether a message with a body may pass."""
        limited = self.byte_limit[which] != 0
        return self.has_messages_left(which) & (~limited | (self.bytes_left[which] > 0))


class AcquiresNothing(ChannelCredit):
    """Goes on as if there had been room, and has no message."""

    @action
    def decline(self, c: Consumer, m: Message) -> None:
        """There is no room for the first that waits for it."""
        super().decline(c, m)
        self.taking[c] = Taking.ACQUIRES


class ForgetsAfterLooking(ChannelCredit):
    """Clears its `driven` mark after its look, and so forgets changes in between."""

    @action
    def rest(self, c: Consumer) -> None:
        """It was driven for nothing."""
        super().rest(c)
        self.driven[c] = False


def explored(model: type[Model], broken: str, scope: Scope) -> Exploration:
    """Explore for one invariant."""
    return explore(trace(model), scope, invariants=[broken], limit_states=3_000_000)


def test_it_is_proved_for_any_number_of_channels_consumers_and_messages() -> None:
    system = trace(ChannelCredit)
    stated = [prove_invariant(system, each) for each in system.invariants]
    stated += [prove_counter(system, each) for each in system.ghosts]
    assert [each.name for each in stated if each.outcome != "proved"] == []
    assert {EXACT, RESTS, "unsettled_bytes-moves"} <= {each.name for each in stated}


def test_two_consumers_with_a_message_each_keep_all_of_it_and_the_counters_are_the_counts() -> None:
    found = explore(with_counts(trace(ChannelCredit), SCOPE), SCOPE, limit_states=3_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


def test_whoever_has_room_looks_in_the_end() -> None:
    small = Scope({**SIZES, Message: 1, Consumer: 1}, range(-1, 2), {"size": 1})
    assert all(each.kept and each.asked for each in check(trace(ChannelCredit), small))


@pytest.mark.each_time(4)
@pytest.mark.parametrize(
    ("model", "broken", "scope"),
    [
        (GivesBackTooMuch, EXACT, ALONE),
        (TakesNothingOfTheUnlimited, EXACT, ALONE),
        (ReturnsTwice, EXACT, ALONE),
        (KeepsWhatItMissed, EXACT, ALONE),
        (DrivesItselfOnly, RESTS, SCOPE),
        (LooksForCreditOnly, RESTS, SCOPE),
        (AsksForAByte, RESTS, NO_BODY),
        (ForgetsAfterLooking, RESTS, SCOPE),
        (AcquiresNothing, "who-has-taken-room-has-a-message", SCOPE),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, scope: Scope) -> None:
    found = explored(model, broken, scope)
    assert found.violation is not None
    assert found.violation.invariant == broken

"""Memory of the queue with a cursor: proved for any sizes, and each of its rules is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.activemq.cursor_memory import (
    ENDS,
    IN_ORDER,
    IS_ASKED,
    IS_TAKEN,
    IS_WOKEN,
    WITHIN,
    CursorMemory,
    Message,
)
from brokerproof.models.language import Bool, action, forall, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.counting import with_counts
from brokerproof.models.language.prove.prover import prove, prove_invariant

SCOPE = Scope({Message: 4}, range(16), {"limit": 4, "size": (2, 1, 5, 2)})
"""Four messages, the third larger than the limit."""

TWO_AND_ONE = Scope({Message: 3}, range(16), {"limit": 3, "size": (2, 2, 1)})
"""The second does not fit beside the first, though memory is not full then."""


class LooksAfterwards(CursorMemory):
    """Checks whether memory is full before it adds a message, not whether that fits (M-25)."""

    def fits(self, m: Message) -> Bool:
        """Whether memory is not full."""
        del m
        return self.used < self.limit


class AddsToWhatIsTooLarge(CursorMemory):
    """Adds a message larger than the limit beside others."""

    def fits(self, m: Message) -> Bool:
        """Whether the message fits, or could never."""
        return super().fits(m) | (self.size[m] > self.limit)


class NeverAddsWhatIsTooLarge(CursorMemory):
    """Adds nothing that is larger than the limit, though nothing else be there."""

    def fits(self, m: Message) -> Bool:
        """Whether the message fits beside the others."""
        return self.used + self.size[m] <= self.limit


class LetsOthersPass(CursorMemory):
    """Adds a message that fits, though others are parked."""

    @action
    def publish(self, m: Message) -> None:
        """The message fits: it is added."""
        require(~self.spent[m] & self.fits(m))
        self._comes(m)
        self._adds(m)


class TakesAnyThatFits(CursorMemory):
    """Takes any parked publish that fits."""

    @action
    def take(self, m: Message) -> None:
        """Something that is parked fits."""
        require(self.takes & self.parked[m] & self.fits(m))
        self.parked[m] = False
        self._adds(m)


class AsksOnce(CursorMemory):
    """Stops beside others, and does not ask to be woken again (AMQ-2523)."""

    @action
    def end(self) -> None:
        """The first does not fit, or nothing is parked."""
        require(self.takes)
        require(forall(Message, lambda m: ~(self.is_first(m) & self.fits(m))))
        self.takes = False


class WakesWhenItWasFull(CursorMemory):
    """Wakes the queue when memory that was full is so no more, as the releases do."""

    @action
    def leave(self, m: Message) -> None:
        """A message leaves memory."""
        require(self.loaded[m])
        was_full = self.used >= self.limit
        is_full = self.used - self.size[m] >= self.limit
        wakes = was_full & ~is_full & self.asked
        self.woken |= wakes
        self.asked &= ~wakes
        self.loaded[m] = False
        self.used -= self.size[m]


class GivesUpInSilence(CursorMemory):
    """Gives a publish up, and wakes none behind it."""

    @action
    def give_up(self, m: Message) -> None:
        """A publish is parked too long."""
        require(self.parked[m])
        self.parked[m] = False


class TakesOne(CursorMemory):
    """Takes one of those that fit, and ends as if none did."""

    @action
    def end(self) -> None:
        """The queue goes on to other things."""
        require(self.takes)
        self.asked = self.asked | self.anything_parked()
        self.takes = False


class NeverEnds(CursorMemory):
    """Takes, and goes on though there is nothing to take."""

    @action
    def end(self) -> None:
        """The first does not fit, or nothing is parked."""
        super().end()
        self.takes = True


def test_it_is_proved_for_any_sizes() -> None:
    proof = prove(trace(CursorMemory))
    assert proof.complete
    assert [each.name for each in proof.counters] == ["used-moves"]
    assert {WITHIN, IS_WOKEN, IN_ORDER} <= {each.name for each in proof.invariants}
    assert {each.name for each in proof.leads_to} == {IS_TAKEN, ENDS}


@pytest.mark.parametrize("scope", [SCOPE, TWO_AND_ONE], ids=["one too large", "two and one"])
def test_a_few_sizes_keep_all_of_it_and_the_count(scope: Scope) -> None:
    found = explore(with_counts(trace(CursorMemory), scope), scope)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())
    assert all(each.kept and each.asked for each in check(trace(CursorMemory), scope))


@pytest.mark.parametrize(
    ("model", "broken", "steps", "scope"),
    [
        (LooksAfterwards, WITHIN, 2, TWO_AND_ONE),
        (AddsToWhatIsTooLarge, WITHIN, 2, SCOPE),
        (LetsOthersPass, IN_ORDER, 3, TWO_AND_ONE),
        (TakesAnyThatFits, IN_ORDER, 6, TWO_AND_ONE),
        (AsksOnce, IS_ASKED, 6, SCOPE),
        (WakesWhenItWasFull, IS_WOKEN, 3, TWO_AND_ONE),
        (GivesUpInSilence, IS_WOKEN, 4, TWO_AND_ONE),
        (TakesOne, IS_WOKEN, 5, TWO_AND_ONE),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int, scope: Scope) -> None:
    system = trace(model)
    found = explore(system, scope, invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps
    [statement] = [each for each in system.invariants if each.name == broken]
    assert prove_invariant(system, statement).outcome == "refuted"


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("model", "broken", "scope"),
    [
        (AsksOnce, IS_TAKEN, SCOPE),
        (WakesWhenItWasFull, IS_TAKEN, TWO_AND_ONE),
        (NeverAddsWhatIsTooLarge, IS_TAKEN, SCOPE),
        (NeverEnds, ENDS, SCOPE),
    ],
)
def test_a_publish_is_parked_for_ever(model: type[Model], broken: str, scope: Scope) -> None:
    found = {each.name: each for each in check(trace(model), scope)}
    assert not found[broken].kept
    refuted = {each.name for each in prove(trace(model)).stated if each.outcome == "refuted"}
    assert refuted & {broken, IS_ASKED, IS_WOKEN}

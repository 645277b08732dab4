"""Confirms of the paging queue: proved for any number of messages, and each rule is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.models.language import Bool, SetOf, action, forall, implies, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.rabbitmq.paging_confirms import (
    ASKED,
    KNOWN,
    NEVER_BOTH,
    ON_DISK,
    SURVIVES,
    WAITING,
    WILL_BE,
    Message,
    PagingConfirms,
)

SCOPE = Scope({Message: 1}, range(1), {"persistent": 1})
"""One persistent message, confirmed or not: no rule here is about two."""


class ConfirmsTheContent(PagingConfirms):
    """Confirms when the content is synced, whether the position is or not."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        super().hear_written(which)
        self._records(lambda m: which[m] & self.unconfirmed[m])


class ConfirmsThePosition(PagingConfirms):
    """Confirms when the position is synced, whether the content is or not."""

    @action
    def sync_index(self) -> None:
        """All positions are on disk."""
        self._records(lambda m: self.is_index_news(m) & self.unconfirmed[m])
        self.index_synced = self.index_synced.map(lambda m, old: old | self.indexed[m])


class NotesWhatIsWritten(PagingConfirms):
    """Takes a position for synced as soon as it is written."""

    @action
    def publish(self, m: Message) -> None:
        """A message arrives."""
        super().publish(m)
        self.index_known[m] = self.asks[m]


class NotesWhatNobodyAskedFor(PagingConfirms):
    """Notes the sync of a message without a waiting confirm."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        super().hear_written(which)
        self.content_known = self.content_known.map(lambda m, old: old | which[m])


class LooksOnlyWhenIndexed(PagingConfirms):
    """Hears of a content, and does not look whether the position was synced before."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        require(forall(Message, lambda m: implies(which[m], self.tells_written[m])))
        self.tells_written = self.tells_written.map(lambda m, old: old & ~which[m])
        self.content_known = self.content_known.map(
            lambda m, old: old | (which[m] & self.unconfirmed[m])
        )


class KeepsWhatIsConfirmed(PagingConfirms):
    """Confirms, and goes on waiting."""

    def _records(self, is_it: Callable[[Message], Bool]) -> None:
        unconfirmed = self.unconfirmed.map(lambda _, old: old)
        super()._records(is_it)
        self.unconfirmed = unconfirmed


class TellsNobody(PagingConfirms):
    """Drops safe messages, and confirms none."""

    def _records(self, is_it: Callable[[Message], Bool]) -> None:
        to_confirm = self.to_confirm.map(lambda _, old: old)
        super()._records(is_it)
        self.to_confirm = to_confirm


class ConfirmsAnewWhatReturns(PagingConfirms):
    """Waits to confirm a returned message once more."""

    @action
    def requeue(self, m: Message) -> None:
        """It returns."""
        super().requeue(m)
        self.unconfirmed[m] = self.asks[m]


class SaysNothingOfWhatIsRemoved(PagingConfirms):
    """Lets the store forget a message removed early, without a report."""

    @action
    def settle(self, m: Message) -> None:
        """It is acknowledged or dropped."""
        super().settle(m)
        self.tells_ignored[m] = False


class IgnoresWhatIsPending(PagingConfirms):
    """Takes an acquired message for settled."""

    @action
    def fetch(self, m: Message) -> None:
        """A message is with a consumer."""
        super().fetch(m)
        self.tells_ignored[m] = self.written[m] & ~self.content_synced[m]


class SaysItTooEarly(PagingConfirms):
    """The store reports contents as on disk before they are."""

    @action
    def sync_store(self) -> None:
        """All contents that were written will be on disk."""
        self.tells_written = self.tells_written.map(
            lambda m, old: old | (self.written[m] & ~self.content_synced[m])
        )


def test_it_is_proved_for_any_number_of_messages() -> None:
    proof = prove(trace(PagingConfirms))
    assert proof.complete
    assert {SURVIVES, ON_DISK, WAITING} <= {each.name for each in proof.invariants}


def test_two_messages_keep_all_of_it() -> None:
    found = explore(trace(PagingConfirms), Scope({Message: 2}, range(1)))
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


def test_who_asks_is_told_in_the_end() -> None:
    assert [each.kept for each in check(trace(PagingConfirms), SCOPE)] == [True]
    assert [each.kept for each in check(trace(SaysNothingOfWhatIsRemoved), SCOPE)] == [False]


@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (ConfirmsTheContent, ON_DISK, 3),
        (ConfirmsTheContent, SURVIVES, 5),
        (ConfirmsThePosition, SURVIVES, 4),
        (NotesWhatIsWritten, KNOWN, 1),
        (NotesWhatIsWritten, SURVIVES, 5),
        (NotesWhatNobodyAskedFor, WAITING, 3),
        (LooksOnlyWhenIndexed, WAITING, 4),
        (KeepsWhatIsConfirmed, NEVER_BOTH, 3),
        (TellsNobody, ASKED, 3),
        (ConfirmsAnewWhatReturns, NEVER_BOTH, 6),
        (SaysNothingOfWhatIsRemoved, WILL_BE, 2),
        (IgnoresWhatIsPending, SURVIVES, 5),
        (SaysItTooEarly, KNOWN, 2),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert found.violation.invariant == broken
    assert len(found.violation.trace) - 1 == steps

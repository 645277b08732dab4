"""Syncs, confirms and crashes of the paging queue: proved, and each rule is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.models.language import Bool, SetOf, action, forall, implies, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.ranking import HELPED, STEP, prove_leads_to
from brokerproof.models.rabbitmq.paging_invariants import DELTA_BESIDE_Q3
from brokerproof.models.rabbitmq.paging_state import Message, Place, Segment
from brokerproof.models.rabbitmq.paging_syncs import (
    ASKED,
    KNOWN,
    NEVER_BOTH,
    ON_DISK,
    SURVIVES,
    WAITING,
    WILL_BE,
    PagingSyncs,
)

SCOPE = Scope({Message: 1, Segment: 1}, range(1), {"persistent": 1})
"""One persistent message, confirmed or not: no rule here is about two."""


class ConfirmsTheContent(PagingSyncs):
    """Confirms when the content is synced, whether the position is or not."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        super().hear_written(which)
        self._records(lambda m: which[m] & self.unconfirmed[m])


class ConfirmsThePosition(PagingSyncs):
    """Confirms when the position is synced, whether the content is or not."""

    @action
    def sync_index(self) -> None:
        """All positions are on disk."""
        require(~self.down)
        self._records(lambda m: self.is_index_news(m) & self.unconfirmed[m])
        self.index_synced = self.index_synced.map(lambda m, old: old | self.indexed[m])


class NotesWhatIsWritten(PagingSyncs):
    """Takes a position for synced as soon as it is written."""

    @action
    def publish(self, m: Message) -> None:
        """A message arrives."""
        super().publish(m)
        self.index_known[m] = self.asks[m]


class NotesMoreThanWasAsked(PagingSyncs):
    """Notes the sync of a message without a waiting confirm."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        super().hear_written(which)
        self.content_known = self.content_known.map(lambda m, old: old | which[m])


class LooksOnlyWhenIndexed(PagingSyncs):
    """Hears of a content, and does not look whether the position was synced before."""

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports some contents as on disk."""
        require(forall(Message, lambda m: implies(which[m], self.tells_written[m])))
        self.tells_written = self.tells_written.map(lambda m, old: old & ~which[m])
        self.content_known = self.content_known.map(
            lambda m, old: old | (which[m] & self.unconfirmed[m])
        )


class KeepsWhatIsConfirmed(PagingSyncs):
    """Confirms, and goes on waiting."""

    def _records(self, is_it: Callable[[Message], Bool]) -> None:
        unconfirmed = self.unconfirmed.map(lambda _, old: old)
        super()._records(is_it)
        self.unconfirmed = unconfirmed


class TellsNone(PagingSyncs):
    """Drops safe messages, and confirms none."""

    def _records(self, is_it: Callable[[Message], Bool]) -> None:
        to_confirm = self.to_confirm.map(lambda _, old: old)
        super()._records(is_it)
        self.to_confirm = to_confirm


class ConfirmsAnewWhatReturns(PagingSyncs):
    """Waits to confirm a returned message once more."""

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """It returns."""
        super().requeue_to_q4(m)
        self.unconfirmed[m] = self.asks[m]


class SaysNothingOfWhatIsRemoved(PagingSyncs):
    """Lets the store forget a message removed early, without a report."""

    def _tells_ignored(self, is_it: Callable[[Message], Bool]) -> None:
        """Report nothing."""


class DrainsWhenAllAreSafe(PagingSyncs):
    """Sends confirms only while no message is unconfirmed: never, if messages arrive for ever."""

    @action
    def drain_confirmed(self) -> None:
        """All messages are safe."""
        require(forall(Message, lambda m: ~self.unconfirmed[m]))
        super().drain_confirmed()


class IgnoresWhatIsPending(PagingSyncs):
    """Takes an acquired message for settled."""

    def _fetches(self, m: Message, keeps: Bool) -> None:
        self._tells_ignored(lambda n: n == m)
        super()._fetches(m, keeps)


class SaysItTooEarly(PagingSyncs):
    """The store reports contents as on disk before they are."""

    @action
    def sync_store(self) -> None:
        """All contents that were written will be on disk."""
        require(~self.down)
        self.tells_written = self.tells_written.map(
            lambda m, old: old | (self.stored[m] & ~self.content_synced[m])
        )


class StartsWithoutReading(PagingSyncs):
    """Starts and leaves all messages in delta."""

    @action
    def restart(self) -> None:
        """The node starts."""
        require(self.down)
        self._starts()


class StartsUnsynced(PagingSyncs):
    """A start does not take for synced what it has found on disk."""

    def _starts(self) -> None:
        content_synced = self.content_synced.map(lambda _, old: old)
        super()._starts()
        self.content_synced = content_synced


class LosesAnything(PagingSyncs):
    """Loses messages although their content and position are on disk."""

    @action
    def lose(self, m: Message) -> None:
        """A message is not found."""
        require(self.down & self.is_in(m, Place.DELTA))
        self.lost[m] |= self.confirmed[m]


def test_it_is_proved_for_any_number_of_messages() -> None:
    proof = prove(trace(PagingSyncs))
    assert proof.complete
    assert {SURVIVES, ON_DISK, WAITING} <= {each.name for each in proof.invariants}


def test_two_messages_keep_all_of_it() -> None:
    scope = Scope({Message: 2, Segment: 2}, range(1), {"segment": (0, 1)})
    found = explore(trace(PagingSyncs), scope)
    assert (found.violation, found.incomplete) == (None, "")
    never = {action for action, times in found.firings.items() if not times}
    assert never == {
        *("fetch_last_and_reload", "put_back_and_reload"),
        *("page_q1_to_q2", "page_q2", "requeue_to_delta"),
    }


def test_every_unconfirmed_message_is_confirmed_or_forgotten_in_the_end() -> None:
    assert [each.kept for each in check(trace(PagingSyncs), SCOPE)] == [True, True]
    assert [each.kept for each in check(trace(SaysNothingOfWhatIsRemoved), SCOPE)] == [True, False]


@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (ConfirmsTheContent, ON_DISK, 3),
        (ConfirmsTheContent, SURVIVES, 6),
        (ConfirmsThePosition, SURVIVES, 5),
        (NotesWhatIsWritten, KNOWN, 1),
        (NotesWhatIsWritten, SURVIVES, 6),
        (NotesMoreThanWasAsked, WAITING, 3),
        (LooksOnlyWhenIndexed, WAITING, 4),
        (KeepsWhatIsConfirmed, NEVER_BOTH, 3),
        (TellsNone, ASKED, 3),
        (ConfirmsAnewWhatReturns, NEVER_BOTH, 5),
        (SaysNothingOfWhatIsRemoved, WILL_BE, 2),
        (IgnoresWhatIsPending, SURVIVES, 6),
        (SaysItTooEarly, KNOWN, 2),
        (StartsWithoutReading, DELTA_BESIDE_Q3, 3),
        (LosesAnything, SURVIVES, 7),
        (StartsUnsynced, ON_DISK, 3),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert found.violation.invariant == broken
    assert len(found.violation.trace) - 1 == steps


def test_a_queue_that_waits_for_the_last_message_is_no_good_for_any_number() -> None:
    """A small scope cannot show it: there are few messages, and one is the last."""
    assert [each.kept for each in check(trace(DrainsWhenAllAreSafe), SCOPE)] == [True, True]
    outcomes = {}
    for model in (PagingSyncs, DrainsWhenAllAreSafe):
        [progress] = [e for e in trace(model).leads_to if e.name == "an-asked-confirm-is-told"]
        proof = prove_leads_to(trace(model), progress)
        outcomes[model] = [(c.of, c.action) for c in proof.conditions if c.outcome != "proved"]
    waits = [(HELPED, None), (STEP, "publish"), (STEP, "publish_delivered")]
    assert outcomes == {PagingSyncs: [], DrainsWhenAllAreSafe: waits}

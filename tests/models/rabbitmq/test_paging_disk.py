"""Writes of the paging queue: each write, and each check of what was written, is needed.

The queue itself is proved in `test_paging_places`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.models.language import Bool, action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.rabbitmq.paging_invariants import (
    CONTENT,
    FLAG,
    FORGOTTEN,
    FOUND,
    INDEXED,
    NOT_LOST,
    NOTED,
    NOTHING_LEFT,
    PREFIX,
    STORED,
)
from brokerproof.models.rabbitmq.paging_places import Message, PagingPlaces, Place, Segment

SCOPE = Scope({Message: 3, Segment: 2}, range(1), {"persistent": (0, 1, 0)})
"""Three messages, of which the second is persistent."""


class WritesNothingAtOnce(PagingPlaces):
    """Leaves the position of a persistent message in memory."""

    def _takes_position(self, m: Message) -> None:
        super()._takes_position(m)
        self.indexed[m] = False


class WritesThePositionAlone(PagingPlaces):
    """Writes the position of a persistent message before its content."""

    def _takes_position(self, m: Message) -> None:
        super()._takes_position(m)
        self.stored[m] = False


class DropsUnwritten(PagingPlaces):
    """Lets content leave memory that was never written."""

    def _leaves_memory(self, m: Message) -> None:
        self.in_ram[m] = False


class KeepsContentInQ3(PagingPlaces):
    """Writes a message that returns to q3, and keeps it in memory, as before 3.1.2."""

    @action
    def requeue_to_q3(self, head: Message, m: Message) -> None:
        """A message returns."""
        super().requeue_to_q3(head, m)
        self.in_ram[m] = True


class ReturnsWithoutContent(PagingPlaces):
    """Returns a message to q4 without reading its content."""

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """A message returns."""
        super().requeue_to_q4(m)
        self.in_ram[m] = ~self.stored[m]


class PutsBackWithoutContent(PagingPlaces):
    """Puts the last of q3 back into q4 without reading its content."""

    @action
    def put_back_into_q4(self, m: Message) -> None:
        """The last of q3 is put back."""
        super().put_back_into_q4(m)
        self.in_ram[m] = False


class KeepsPendingContent(PagingPlaces):
    """Keeps the content of an acquired message, though it can be read again."""

    def _fetches(self, m: Message, keeps: Bool) -> None:
        super()._fetches(m, keeps)
        self.in_ram[m] = keeps


class WritesNoDelivery(PagingPlaces):
    """Writes a position late, and nothing of a delivery that was before."""

    def _goes_to_delta(self, m: Message) -> None:
        noted = self.noted[m]
        super()._goes_to_delta(m)
        self.noted[m] = noted


class KeepsTheStatus(PagingPlaces):
    """Keeps in memory that a message was delivered when its position leaves for delta."""

    def _goes_to_delta(self, m: Message) -> None:
        delivered = self.delivered[m]
        super()._goes_to_delta(m)
        self.delivered[m] = delivered


class NotesNoDelivery(PagingPlaces):
    """Does not note a fetch in the index."""

    def _fetches(self, m: Message, keeps: Bool) -> None:
        noted = self.noted[m]
        super()._fetches(m, keeps)
        self.noted[m] = noted


class ForgetsTheFlag(PagingPlaces):
    """Takes a message read from delta for never delivered."""

    def _reads(self, first: Message) -> None:
        self.delivered = self.delivered.map(lambda n, old: old & ~self.is_reloaded(first, n))


class ReturnsAsNew(PagingPlaces):
    """Returns a message to q4 as if it had never been delivered."""

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """A message returns."""
        super().requeue_to_q4(m)
        self.delivered[m] = False


class PurgesUndelivered(PagingPlaces):
    """Acknowledges entries whose delivery was not noted."""

    def _forgets(self, is_it: Callable[[Message], Bool]) -> None:
        self.acked = self.acked.map(lambda n, old: old | (is_it(n) & self.indexed[n]))
        self.stored = self.stored.map(lambda n, old: old & ~is_it(n))
        self.in_ram = self.in_ram.map(lambda n, old: old & ~is_it(n))
        self.place = self.place.map(lambda n, old: ite(is_it(n), Place.GONE, old))


class LeavesContentBehind(PagingPlaces):
    """Leaves an acknowledged message in the store."""

    def _forgets(self, is_it: Callable[[Message], Bool]) -> None:
        stored = self.stored.map(lambda _, old: old)
        super()._forgets(is_it)
        self.stored = stored


class LeavesAnEntryBehind(PagingPlaces):
    """Leaves a message fetched for good in the index."""

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """The first of q4 is fetched."""
        acked = self.acked[m]
        super().fetch_from_q4(m, keeps)
        self.acked[m] = acked


class DeltaWithoutPosition(PagingPlaces):
    """Lets the position leave memory without writing it."""

    def _goes_to_delta(self, m: Message) -> None:
        indexed, noted = self.indexed[m], self.noted[m]
        super()._goes_to_delta(m)
        self.indexed[m] = indexed
        self.noted[m] = noted


class LimitsAcksUnwritten(PagingPlaces):
    """Lets the content of a pending message leave memory, even if it was not written."""

    @action
    def limit_ram_acks(self, m: Message) -> None:
        """The content leaves memory."""
        require(self.is_in(m, Place.PENDING) & self.in_ram[m])
        self.in_ram[m] = False


@pytest.mark.each_time(6)
@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (WritesNothingAtOnce, INDEXED, 1),
        (WritesThePositionAlone, STORED, 1),
        (DropsUnwritten, NOT_LOST, 2),
        (KeepsContentInQ3, CONTENT, 5),
        (ReturnsWithoutContent, CONTENT, 2),
        (PutsBackWithoutContent, CONTENT, 4),
        (KeepsPendingContent, CONTENT, 2),
        (WritesNoDelivery, FLAG, 6),
        (KeepsTheStatus, FORGOTTEN, 6),
        (NotesNoDelivery, NOTED, 2),
        (ForgetsTheFlag, FLAG, 7),
        (ReturnsAsNew, FLAG, 2),
        (PurgesUndelivered, PREFIX, 2),
        (LeavesContentBehind, NOTHING_LEFT, 2),
        (LeavesAnEntryBehind, NOTHING_LEFT, 2),
        (DeltaWithoutPosition, FOUND, 5),
        (LimitsAcksUnwritten, NOT_LOST, 2),
    ],
)
def test_each_write_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken], limit_states=1_000_000)
    assert found.violation is not None
    assert found.violation.invariant == broken
    assert len(found.violation.trace) - 1 == steps

"""The places of the paging queue: proved for any number of messages, and each move is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.rabbitmq.paging_invariants import (
    BOUNDS,
    DELTA_BESIDE_Q3,
    EMPTY,
    FOUND,
    IN_ORDER,
    IN_TURN,
    Q1_BESIDE_Q3,
    Q2_BESIDE_DELTA,
    RUNS_OUT,
)
from brokerproof.models.rabbitmq.paging_places import (
    IS_FETCHED,
    Message,
    PagingPlaces,
    Place,
    Segment,
)

FOUR = Scope({Message: 4, Segment: 3}, range(1), {"persistent": (1, 0, 0, 1)})
"""Four messages, of which the first and the last are persistent."""


class PublishesToQ4(PagingPlaces):
    """Appends arrivals to q4, whatever is in q3."""

    @action
    def publish(self, m: Message) -> None:
        """A message arrives."""
        super().publish(m)
        self.place[m] = Place.Q4


class PublishesToQ1(PagingPlaces):
    """Appends arrivals to q1, though q3 is empty."""

    @action
    def publish(self, m: Message) -> None:
        """A message arrives."""
        super().publish(m)
        self.place[m] = Place.Q1


class DeliversPastOthers(PagingPlaces):
    """Gives a message that arrives to a consumer although others are ready."""

    @action
    def publish_delivered(self, m: Message) -> None:
        """A message arrives."""
        require(~self.used[m])
        self._takes_position(m)
        self.place[m] = Place.PENDING
        self.in_ram[m] = ~self.persistent[m]
        self.delivered[m] = True
        self.noted[m] = self.persistent[m]
        self.was_fetched[m] = True


class PagesQ1ToQ2(PagingPlaces):
    """Pages q1 to q2, though delta be blank."""

    @action
    def page_q1_to_q2(self, m: Message) -> None:
        """The content of the first of q1 leaves memory."""
        require(self.is_first_of(Place.Q1, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q2


class PagesQ1PastDelta(PagingPlaces):
    """Pages q1 to q3, though something be in delta."""

    @action
    def page_q1_to_q3(self, m: Message) -> None:
        """The content of the first of q1 leaves memory."""
        require(self.is_first_of(Place.Q1, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q3


class PagesTheLastOfQ1(PagingPlaces):
    """Pages q1 from its end."""

    @action
    def page_q1_to_q3(self, m: Message) -> None:
        """The content of the last of q1 leaves memory."""
        require(self.is_last_of(Place.Q1, m) & self.has_none(Place.DELTA))
        self._leaves_memory(m)
        self.place[m] = Place.Q3


class PagesTheFirstOfQ4(PagingPlaces):
    """Pages q4 from its front."""

    @action
    def page_q4(self, m: Message) -> None:
        """The content of the first of q4 leaves memory."""
        require(self.is_first_of(Place.Q4, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q3


class PagesAllOfQ3(PagingPlaces):
    """Pages q3 to delta without a limit, and so its first, too."""

    @action
    def page_q3(self, head: Message, m: Message) -> None:
        """The position of the last of q3 leaves memory."""
        require(self.is_first_of(Place.Q3, head) & self.is_last_of(Place.Q3, m))
        self._goes_to_delta(m)


class KeepsQ1(PagingPlaces):
    """Leaves q1 unchanged when the last of q3 leaves."""

    def _q1_becomes_q4(self) -> None:
        pass


class LeavesQ2(PagingPlaces):
    """Reads the rest of delta, and leaves q2 unchanged."""

    def _reloads_all(self, first: Message) -> None:
        self._reads(first)
        self.place = self.place.map(lambda n, old: ite(self.is_reloaded(first, n), Place.Q3, old))
        self.from_start.fill(False)
        self.before_end.fill(False)


class JoinsQ2TooEarly(PagingPlaces):
    """Lets q2 join q3 although something is left in delta."""

    def _reloads(self, first: Message) -> None:
        super()._reloads(first)
        self.place = self.place.map(lambda _, old: ite(old == Place.Q2, Place.Q3, old))


class StartsWhereItWas(PagingPlaces):
    """Reads a segment, and lets delta start where it did."""

    def _reloads(self, first: Message) -> None:
        self._reads(first)
        self.place = self.place.map(lambda n, old: ite(self.is_reloaded(first, n), Place.Q3, old))


class ReadsPastTheEnd(PagingPlaces):
    """Reads to the end of the segment, though delta end before."""

    def is_found(self, m: Message) -> Bool:
        """Whether a reload finds the message."""
        return self.from_start[m] & self.is_live(m) & ~self.is_in(m, Place.PENDING)


class ReadsWhatIsPending(PagingPlaces):
    """Reads acquired messages, too."""

    def is_found(self, m: Message) -> Bool:
        """Whether a reload finds the message."""
        return self.from_start[m] & self.before_end[m] & self.is_live(m)


class FetchesQ3First(PagingPlaces):
    """Fetches from q3, though something be in q4."""

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """The first of q3 is fetched."""
        require(self.is_first_of(Place.Q3, m) & ~self.is_only_one_of(Place.Q3, m))
        self._fetches(m, keeps)


class FetchesTheLastOfQ4(PagingPlaces):
    """Fetches from the end of q4."""

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """The last of q4 is fetched."""
        require(self.is_last_of(Place.Q4, m))
        self._fetches(m, keeps)


class RequeuesIntoBlankDelta(PagingPlaces):
    """Returns a message to delta where that is blank, as if it began everywhere."""

    @action
    def requeue_to_delta(self, head: Message, m: Message) -> None:
        """A message returns."""
        del head
        require(self.is_in(m, Place.PENDING))
        require(self.has_none(Place.DELTA) & self.has_none(Place.Q3))
        self._goes_to_delta(m)


class RequeuesToQ3(PagingPlaces):
    """Returns a message to q3, though delta start before it."""

    @action
    def requeue_to_q3(self, head: Message, m: Message) -> None:
        """A message returns."""
        require(self.is_in(m, Place.PENDING))
        require(self.is_first_of(Place.Q3, head) & self.before(head, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q3


class RequeuesToQ4(PagingPlaces):
    """Returns a message to q4, though the first of q3 be before it."""

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """A message returns."""
        require(self.is_in(m, Place.PENDING))
        self.place[m] = Place.Q4
        self.in_ram[m] = True


class PurgesNoBounds(PagingPlaces):
    """Drops all that is ready, and leaves delta its bounds."""

    @action
    def purge(self) -> None:
        """All that is ready is dropped."""
        self._forgets(self.is_ready)


class LeavesTheLastOfQ3(PagingPlaces):
    """Fetches the last message of q3 only if one of q1 follows it."""

    @action
    def fetch_last(self, m: Message, keeps: Bool) -> None:
        """The last message of q3 is fetched."""
        require(self.has_any(Place.Q1))
        super().fetch_last(m, keeps)


def explored(model: type[Model], scope: Scope, *invariants: str) -> Exploration:
    """Explore; all invariants, or those named."""
    return explore(trace(model), scope, invariants=invariants or None, limit_states=1_000_000)


def test_it_is_proved_for_any_number_of_messages_and_any_segments() -> None:
    proof = prove(trace(PagingPlaces))
    assert proof.complete
    assert {EMPTY, RUNS_OUT, IN_ORDER, FOUND} <= {each.name for each in proof.invariants}
    assert not any(each.assumptions for each in proof.invariants)


def test_four_messages_in_three_segments_keep_all_of_it() -> None:
    found = explored(PagingPlaces, FOUR)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


def test_a_way_to_fetch_that_is_left_out_leaves_a_message_for_ever() -> None:
    small = Scope({Message: 2, Segment: 2}, range(1))
    for model, kept in ((PagingPlaces, True), (LeavesTheLastOfQ3, False)):
        [found] = check(trace(model), small)
        assert (found.name, found.kept, found.asked) == (IS_FETCHED, kept, True)


@pytest.mark.each_time(8)
@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (PublishesToQ4, IN_ORDER, 3),
        (PublishesToQ1, Q1_BESIDE_Q3, 1),
        (DeliversPastOthers, "what-is-pending-is-before-q1-and-q2", 4),
        (PagesQ1ToQ2, Q2_BESIDE_DELTA, 4),
        (PagesQ1PastDelta, IN_ORDER, 7),
        (PagesTheLastOfQ1, IN_ORDER, 5),
        (PagesTheFirstOfQ4, IN_ORDER, 3),
        (PagesAllOfQ3, DELTA_BESIDE_Q3, 3),
        (KeepsQ1, Q1_BESIDE_Q3, 4),
        (KeepsQ1, EMPTY, 4),
        (LeavesQ2, Q2_BESIDE_DELTA, 8),
        (LeavesQ2, RUNS_OUT, 8),
        (JoinsQ2TooEarly, IN_ORDER, 11),
        (StartsWhereItWas, BOUNDS, 9),
        (ReadsPastTheEnd, FOUND, 6),
        (ReadsWhatIsPending, FOUND, 14),
        (FetchesQ3First, IN_TURN, 6),
        (FetchesTheLastOfQ4, IN_TURN, 3),
        (RequeuesIntoBlankDelta, DELTA_BESIDE_Q3, 2),
        (RequeuesToQ3, BOUNDS, 8),
        (RequeuesToQ4, IN_ORDER, 5),
        (PurgesNoBounds, BOUNDS, 6),
    ],
)
def test_each_move_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explored(model, FOUR, broken)
    assert found.violation is not None
    assert found.violation.invariant == broken
    assert len(found.violation.trace) - 1 == steps

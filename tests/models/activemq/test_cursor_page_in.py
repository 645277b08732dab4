"""The queue with a cursor: proved for any number of messages, and each of its rules is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.activemq.cursor_defects import (
    CallsOldDuplicate,
    ClearsWhenTheLastLeaves,
    DropsAndGoesOn,
    DropsAndRemembers,
    ForgetsItsSize,
    GivesTheNewPage,
    GivesToConsumersThatLeft,
    LeavesThePosition,
    LooksForRoomAfterwards,
    NeverClears,
    PassesWithoutRoom,
    Restarted,
    ReturnsBehindAll,
    StandsTooFar,
    TrustsTheAudit,
    of,
)
from brokerproof.models.activemq.cursor_invariants import (
    APART,
    CACHED,
    FIRST_TIME,
    FRESH,
    IN_ORDER,
    IN_TURN,
    ONCE,
    OWNED,
    PLACED,
    QUEUED,
    STANDS,
)
from brokerproof.models.activemq.cursor_page_in import Channel, Consumer, CursorPageIn, Message
from brokerproof.models.activemq.cursor_room import WITHIN, CursorRoom, window
from brokerproof.models.language import action, forall, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.prove.counting import with_counts
from brokerproof.models.language.prove.prover import prove, prove_invariant

THREE = Scope({Message: 3, Consumer: 2, Channel: 2}, range(1), {"channel": (0, 1)})
"""Three messages, and two consumers that leave alone; any window."""


def with_room(
    messages: int = 4, *, capacity: int = 2, words: int = 1, backlog: int | None = None
) -> Scope:
    """Return room for a few messages, one consumer, and an audit of words of two bits."""
    fixed: dict[str, int | tuple[int, ...]] = {
        "capacity": capacity,
        "slides": window(messages, words=words, bits=2),
    }
    if backlog is not None:
        fixed["backlog"] = backlog
    return Scope({Message: messages, Consumer: 1, Channel: 1}, range(-8, 9), fixed)


class ForgetsNoPosition(CursorPageIn):
    """Removes the entry that it stands at, and goes on from there."""

    @action
    def acknowledge(self, consumer: Consumer, m: Message) -> None:
        """A consumer is done with a message."""
        require(self.holds[consumer, m])
        self._leaves_the_order(m)
        self.stored[m] = False
        self.paged[m] = False
        self.holds[consumer, m] = False


class CachesAgainTooSoon(CursorPageIn):
    """Caches again where the batch is empty, though something is still to be read."""

    @action
    def cache_again(self) -> None:
        """Nothing is in the batch."""
        require(forall(Message, lambda m: ~self.batch[m]))
        self.caches = True


class PagesInTheLast(CursorPageIn):
    """Pages in from the end of the batch."""

    @action
    def page_in(self, m: Message) -> None:
        """Something of the batch is paged in."""
        require(self.batch[m])
        self.batch[m] = False
        self.paged[m] = True
        self.waiting[m] = True


class LosesWhatTheChannelHeld(CursorPageIn):
    """Returns nothing when a channel closes."""

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave."""
        self._leave(which)


class ReturnsInNoOrder(CursorPageIn):
    """Returns a message, and does not say behind which others."""

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        require(self.holds[consumer, m])
        self._leaves_the_order(m)
        self.returned[m] = True
        self.holds[consumer, m] = False


class ReturnsWhatOthersHold(CursorPageIn):
    """Returns a message that another consumer has."""

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        require(self.is_held(m))
        self._return(lambda n: n == m)
        self.holds[consumer, m] = False


def test_it_is_proved_for_any_number_of_messages_and_any_window() -> None:
    proof = prove(trace(CursorPageIn))
    assert proof.complete
    assert {PLACED, FRESH, IN_TURN, FIRST_TIME} <= {each.name for each in proof.invariants}
    assert not any(each.assumptions for each in proof.invariants)


def test_three_messages_and_two_consumers_keep_all_of_it() -> None:
    found = explore(trace(CursorPageIn), THREE, limit_states=1_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.thorough
def test_with_its_room_counted_it_is_proved_as_well() -> None:
    proof = prove(trace(CursorRoom))
    assert proof.complete
    assert {each.name for each in proof.counters} == {
        "in_batch-moves",
        "in_pages-moves",
        "pending-moves",
    }
    [within] = [each for each in proof.invariants if each.name == WITHIN]
    assert any("not_negative" in each for each in within.assumptions)


def test_four_messages_with_room_for_two_keep_all_of_it_and_the_counts() -> None:
    found = explore(with_counts(trace(CursorRoom), with_room()), with_room())
    assert (found.violation, found.incomplete) == (None, "")
    # The last that was cached is gone beside two that fill the room only where there is no room.
    assert set(found.never_taken) == {"send_past_nothing"}


@pytest.mark.each_time(6)
@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (PassesWithoutRoom, PLACED, 4),
        (PassesWithoutRoom, IN_TURN, 14),
        (CallsOldDuplicate, FRESH, 3),
        (CallsOldDuplicate, IN_TURN, 8),
        (GivesToConsumersThatLeft, OWNED, 5),
        (TrustsTheAudit, APART, 5),
        (TrustsTheAudit, ONCE, 8),
        (StandsTooFar, PLACED, 3),
        (DropsAndRemembers, FRESH, 2),
        (DropsAndGoesOn, PLACED, 3),
        (LooksForRoomAfterwards, WITHIN, 3),
        (GivesTheNewPage, IN_TURN, 6),
        (ReturnsBehindAll, IN_TURN, 8),
    ],
)
def test_each_fault_is_found_in_the_fewest_steps(
    model: type[Model], broken: str, steps: int
) -> None:
    found = explore(trace(model), with_room(), invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps


@pytest.mark.each_time(4)
@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (PassesWithoutRoom, PLACED),
        (CallsOldDuplicate, FRESH),
        (GivesToConsumersThatLeft, OWNED),
        (TrustsTheAudit, APART),
        (StandsTooFar, PLACED),
        (DropsAndRemembers, FRESH),
        (DropsAndGoesOn, PLACED),
        (LooksForRoomAfterwards, WITHIN),
        (GivesTheNewPage, IN_TURN),
        (ReturnsBehindAll, IN_TURN),
    ],
)
def test_the_proof_loses_what_a_fault_breaks(model: type[Model], broken: str) -> None:
    system = trace(model)
    [statement] = [each for each in system.invariants if each.name == broken]
    assert prove_invariant(system, statement).outcome == "refuted"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "lost"),
    [
        (PassesWithoutRoom, {PLACED}),
        (CallsOldDuplicate, {FRESH}),
        (GivesToConsumersThatLeft, {OWNED}),
        (ForgetsItsSize, {"pending-moves"}),
        (TrustsTheAudit, {APART, IN_ORDER, "in_batch-moves"}),
        (StandsTooFar, {PLACED}),
        (DropsAndRemembers, {FRESH}),
        (DropsAndGoesOn, {PLACED}),
        (LooksForRoomAfterwards, {WITHIN}),
        (GivesTheNewPage, {FIRST_TIME, IN_TURN}),
        (ReturnsBehindAll, {IN_TURN}),
    ],
)
def test_a_fault_is_a_fault_against_few_invariants(model: type[Model], lost: set[str]) -> None:
    """All other invariants are proved to hold, since each is proved where all of them hold."""
    proof = prove(trace(model))
    stated = (*proof.invariants, *proof.counters)
    assert {each.name for each in stated if each.outcome != "proved"} == lost


@pytest.mark.thorough
@pytest.mark.parametrize("model", [ClearsWhenTheLastLeaves, LeavesThePosition])
def test_what_costs_a_second_reading_alone_is_proved_to_break_nothing(model: type[Model]) -> None:
    """Where an entry is looked up before it is read, whence the reading starts is no matter."""
    proof = prove(trace(model))
    assert all(each.outcome == "proved" for each in (*proof.invariants, *proof.counters))


def test_a_size_that_is_forgotten_is_not_the_number_of_what_is_to_come() -> None:
    found = explore(with_counts(trace(ForgetsItsSize), with_room()), with_room())
    assert found.violation is not None
    assert found.violation.invariant.startswith("pending")
    assert [step.action for step in found.violation.trace[1:]] == ["send_cached", "clear"]


@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (ForgetsNoPosition, STANDS, 6),
        (CachesAgainTooSoon, CACHED, 2),
        (CachesAgainTooSoon, FIRST_TIME, 6),
        (PagesInTheLast, IN_ORDER, 3),
        (LosesWhatTheChannelHeld, OWNED, 5),
        (ReturnsInNoOrder, QUEUED, 9),
        (ReturnsWhatOthersHold, ONCE, 5),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), THREE, invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps


# The smallest losses that later notes have: there a call pages in, here each entry is a step.


def steps_of(exploration: Exploration) -> list[str]:
    """Return the steps of a violation, a message by its id."""
    assert exploration.violation is not None
    return [
        " ".join([step.action, *(str(v)[-1] for k, v in step.arguments.items() if k == "m")])
        for step in exploration.violation.trace[1:]
    ]


def test_a_message_that_finds_no_room_is_lost_once_the_window_has_passed_it() -> None:
    """Four calls there; here two reads, a third without room, 1 that gives its room up, and 4."""
    faults = (NeverClears, Restarted, CallsOldDuplicate)
    scope = with_room(4, backlog=4)
    found = explore(trace(of(PassesWithoutRoom, *faults)), scope, invariants=[FRESH])
    assert steps_of(found) == [
        *("read 0", "read 1", "pass_without_room 2"),
        *("page_in 0", "unload 0", "read 3"),
    ]
    for broken in (FRESH, PLACED):
        mended = explore(trace(of(*faults)), scope, invariants=[broken])
        assert (mended.violation, mended.incomplete) == (None, "")


def test_a_cache_that_is_dropped_loses_what_the_window_has_passed() -> None:
    """Four messages sent, one consumer gone: the same steps, and the one that looks at them."""
    model = of(ClearsWhenTheLastLeaves, CallsOldDuplicate)
    scope = with_room(4, capacity=4, words=2)
    found = explore(trace(model), scope, invariants=[FRESH])
    assert steps_of(found) == ["attach", "send_cached 0", "send_cached 3", "close"]

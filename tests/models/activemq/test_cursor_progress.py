"""Passes of the queue with a cursor: all is given in the end, and each wake-up is needed."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.activemq.cursor_defects import (
    CallsOldDuplicate,
    CountsDuplicates,
    ForgetsItsSize,
    GivesToConsumersThatLeft,
    PassesWithoutRoom,
    SchedulesNoOther,
    of,
)
from brokerproof.models.activemq.cursor_progress import (
    IS_GIVEN,
    IS_READ,
    IS_WOKEN,
    NOTHING_LEFT,
    READ_ON,
    Channel,
    Consumer,
    CursorProgress,
    Message,
)
from brokerproof.models.activemq.cursor_room import window
from brokerproof.models.language import Bool, action, exists, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import Kept, check
from brokerproof.models.language.prove.counting import with_counts
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.language.prove.ranking import HELPED, STEP, prove_leads_to


def scope(messages: int = 3, *, capacity: int = 2, page: int = 1, consumers: int = 1) -> Scope:
    """Return room for a few messages, and passes that read so many of them at most."""
    fixed: dict[str, int | tuple[int, ...]] = {
        "capacity": capacity,
        "page": page,
        "slides": window(messages, words=1, bits=2),
        "channel": tuple(range(consumers)),
    }
    return Scope({Message: messages, Consumer: consumers, Channel: consumers}, range(-8, 9), fixed)


class WakesAtNoArrival(CursorProgress):
    """An arriving message does not wake the queue."""

    def _arrives(self, m: Message) -> None:
        woken = self.woken
        super()._arrives(m)
        self.woken = woken


class WakesAtNoConsumer(CursorProgress):
    """A new consumer does not wake the queue."""

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer comes."""
        woken = self.woken
        super().attach(consumer)
        self.woken = woken


class WakesAtNoReturn(CursorProgress):
    """A returned message does not wake the queue (AMQ-2483)."""

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        woken = self.woken
        super().release(consumer, m)
        self.woken = woken


class WakesAtNoMemory(CursorProgress):
    """Memory that is given back does not wake the queue."""

    @action
    def unload(self, m: Message) -> None:
        """Memory is given back."""
        woken = self.woken
        super().unload(m)
        self.woken = woken


class UnloadsForAMessage(CursorProgress):
    """Lets a content leave memory only while a consumer holds a message."""

    @action
    def unload(self, m: Message) -> None:
        """A message is held."""
        require(exists(Message, self.is_held))
        super().unload(m)


class DropsInSilence(CursorProgress):
    """A dropped batch does not wake the queue: messages ahead wait for the next wake-up."""

    @action
    def clear(self) -> None:
        """Memory is short: the batch is dropped."""
        woken = self.woken
        super().clear()
        self.woken = woken


class ForgetsAWakeUp(CursorProgress):
    """A wake-up during a pass is forgotten at its end (AMQ-2483, M-43)."""

    @action
    def end(self) -> None:
        """The pass is over."""
        super().end()
        self.woken = False


class LooksAtTheEndAlone(CursorProgress):
    """Ends its pass beside a message that a consumer takes."""

    def has_something_to_give(self) -> Bool:
        """Whether a message was returned, and a consumer takes it."""
        returned = exists(Message, lambda m: self.returned[m])
        return returned & exists(Consumer, lambda c: self.takes[c])


class GivesOneAtATime(CursorProgress):
    """Gives nothing while any consumer holds a message."""

    def may_be_given(self, consumer: Consumer) -> Bool:
        """No message is held."""
        return super().may_be_given(consumer) & ~exists(Message, self.is_held)


class StopsAtDuplicates(CursorProgress):
    """Stops at whatever it finds no room for, as the analysis has it: at a duplicate, too."""

    def finds_more(self) -> Bool:
        """Whether there is an entry, and there is room."""
        anything = exists(Message, self.is_next)
        return ~self.is_empty() & anything & self.has_room()


def broken(model: type[Model], chosen: Scope) -> dict[str, Kept]:
    """Return the promises that are not kept, each with a run that breaks it."""
    found = check(trace(model), chosen, states_max=300_000)
    assert all(each.asked for each in found)
    return {each.name: each for each in found if not each.kept}


def test_that_no_wake_up_is_lost_is_proved_for_any_number_of_messages() -> None:
    proof = prove(trace(CursorProgress))
    assert proof.complete
    assert {NOTHING_LEFT, READ_ON} <= {each.name for each in proof.invariants}


def test_three_messages_keep_all_of_it_and_the_counts() -> None:
    chosen = scope(page=2)
    found = explore(with_counts(trace(CursorProgress), chosen), chosen)
    assert (found.violation, found.incomplete) == (None, "")
    assert set(found.never_taken) == {"send_past_nothing"}


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    "chosen",
    [
        scope(page=1),
        scope(page=2),
        scope(2, capacity=1),
        scope(2, consumers=2),
    ],
    ids=["pages of one", "pages of two", "room for one", "two consumers"],
)
def test_all_is_given_in_the_end(chosen: Scope) -> None:
    assert broken(CursorProgress, chosen) == {}


def test_so_it_is_where_duplicates_without_room_end_a_pass() -> None:
    """The analysis's fix may reach the messages behind duplicates later, but does reach them."""
    assert broken(StopsAtDuplicates, scope(2)) == {}
    assert broken(StopsAtDuplicates, scope(2, capacity=1)) == {}


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("model", "promise", "chosen"),
    [
        (of(PassesWithoutRoom, among=CursorProgress), IS_GIVEN, scope(2, capacity=1)),
        (of(CallsOldDuplicate, among=CursorProgress), IS_GIVEN, scope(2)),
        (of(GivesToConsumersThatLeft, among=CursorProgress), IS_GIVEN, scope(2, consumers=2)),
        (of(ForgetsItsSize, among=CursorProgress), IS_GIVEN, scope(2)),
        (SchedulesNoOther, IS_READ, scope(2)),
        (CountsDuplicates, IS_GIVEN, scope(2)),
        (WakesAtNoArrival, IS_GIVEN, scope(2)),
        (WakesAtNoConsumer, IS_GIVEN, scope(2)),
        (WakesAtNoMemory, IS_GIVEN, scope(2, capacity=1)),
        (ForgetsAWakeUp, IS_GIVEN, scope(2)),
        (ForgetsAWakeUp, IS_WOKEN, scope(2)),
        (LooksAtTheEndAlone, IS_GIVEN, scope(2)),
    ],
)
def test_what_is_wrong_leaves_a_message_for_ever(
    model: type[Model], promise: str, chosen: Scope
) -> None:
    assert promise in broken(model, chosen)


def test_a_batch_of_duplicates_never_gets_past_them() -> None:
    """Each reading that starts over ends at the messages in memory, and another pass starts over.

    One message is held, the other stored behind it: five steps, again and again.
    """
    lasso = broken(of(CountsDuplicates, SchedulesNoOther), scope(2))[IS_GIVEN]
    assert lasso.arguments == {"m": "message1"}
    assert [step.action for step in lasso.loop] == [
        *("begin", "pass_over", "end_reading", "end", "clear")
    ]


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "lost"),
    [
        (SchedulesNoOther, READ_ON),
        (WakesAtNoArrival, NOTHING_LEFT),
        (WakesAtNoConsumer, NOTHING_LEFT),
        (WakesAtNoReturn, NOTHING_LEFT),
        (WakesAtNoMemory, READ_ON),
        (DropsInSilence, READ_ON),
        (ForgetsAWakeUp, READ_ON),
        (LooksAtTheEndAlone, NOTHING_LEFT),
    ],
)
def test_the_proof_loses_what_a_lost_wake_up_breaks(model: type[Model], lost: str) -> None:
    system = trace(model)
    [statement] = [each for each in system.invariants if each.name == lost]
    assert prove_invariant(system, statement).outcome == "refuted"
    found = explore(system, scope(), invariants=[lost])
    assert found.violation is not None


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "promise", "failing"),
    [
        (CursorProgress, IS_GIVEN, set()),
        (CursorProgress, IS_READ, set()),
        (CursorProgress, IS_WOKEN, set()),
        (GivesOneAtATime, IS_READ, {(HELPED, None)}),
        (CountsDuplicates, IS_READ, {(STEP, "pass_over")}),
        (UnloadsForAMessage, IS_GIVEN, {(HELPED, None), (STEP, "acknowledge")}),
        (ForgetsAWakeUp, IS_WOKEN, {(STEP, "end")}),
    ],
)
def test_any_number_of_messages_is_given(
    model: type[Model], promise: str, failing: set[tuple[str, str | None]]
) -> None:
    [progress] = [each for each in trace(model).leads_to if each.name == promise]
    conditions = prove_leads_to(trace(model), progress).conditions
    assert {(c.of, c.action) for c in conditions if c.outcome != "proved"} == failing


def test_a_pass_need_not_end_while_messages_are_sent_into_it() -> None:
    [progress] = [each for each in trace(CursorProgress).leads_to if each.name == IS_WOKEN]
    for_ever = prove_leads_to(trace(CursorProgress), dataclasses.replace(progress, finitely={}))
    assert [c.action for c in for_ever.conditions if c.outcome != "proved"] == ["send_cached"]

"""The queue with a cursor keeps the whole contract, for any number of messages; twins do not.

So clients cannot see which messages are in memory: to read, to page in and to drop the batch are
stutters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from brokerproof.models.activemq.cursor_page_in import CursorPageIn
from brokerproof.models.activemq.cursor_queue import Channel, Consumer, CursorQueue, Message
from brokerproof.models.activemq.cursor_queue_refines_contract import (
    CURSOR_QUEUE_REFINES_CONTRACT,
    MEMORY,
)
from brokerproof.models.activemq.cursor_queue_refines_contract import (
    RememberingCursorQueue as Remembering,
)
from brokerproof.models.activemq.cursor_store import ON_DISK
from brokerproof.models.catalogue import CATALOGUE, SYSTEMS
from brokerproof.models.contract import core_state
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language import Bool, action, forall, implies, invariant, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.language.prove.refinement import Refinement, Witness, does, stutters
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.refinements import REFINEMENTS

GOOD = CURSOR_QUEUE_REFINES_CONTRACT


class RestsBeforeTheEnd(CursorQueue):
    """Announces rest when no message waits in memory, though the store has more."""

    def has_nothing_to_give(self) -> Bool:
        """Whether nothing waits in memory."""
        return forall(Message, lambda m: ~(self.returned[m] | self.waiting[m] | self.batch[m]))


class RestingRemembering(RestsBeforeTheEnd, Remembering):
    """The same with all that the contract remembers of it."""


class GivesNewOnesFirst(CursorQueue):
    """Delivers waiting messages before returned ones."""

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is next."""
        nothing_waits = forall(Message, lambda n: ~self.waiting[n])
        return self.is_first_waiting(m) | (nothing_waits & self.is_first_returned(m))


class GivingRemembering(GivesNewOnesFirst, Remembering):
    """The same with all that the contract remembers of it."""


class ReturnsAtTheFront(CursorQueue):
    """Returns a message before those that were returned earlier."""

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        require(self.holds[consumer, m])
        self._leaves_the_order(m)
        self.sooner = self.sooner.map(lambda n, k, old: old | ((n == m) & self.returned[k]))
        self.returned[m] = True
        self.holds[consumer, m] = False


class ReturningRemembering(ReturnsAtTheFront, Remembering):
    """The same with all that the contract remembers of it."""


class LosesWhatTheChannelHeld(CursorQueue):
    """Drops the messages of a closing channel, instead of returning them."""

    @action
    def return_at_close(self, consumer: Consumer, m: Message) -> None:
        """A message is dropped."""
        require(self.holds[consumer, m])
        self._ends(m)


class LosingRemembering(LosesWhatTheChannelHeld, Remembering):
    """The same with all that the contract remembers of it."""


class ClosesTooSoon(CursorQueue):
    """Closes a channel though not all that it has was returned."""

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave, and all that they hold is returned at once."""
        CursorPageIn.close(self, which)


class SoonRemembering(ClosesTooSoon, Remembering):
    """The same with all that the contract remembers of it."""


class ClosesAfterOne(ClosesTooSoon):
    """Closes at once, or returns the first message that a channel has, and closes at once then."""

    @action
    def close_after_one(self, consumer: Consumer, m: Message) -> None:
        """A channel returns the message that was delivered first, and then all others at once."""
        self.return_at_close(consumer, m)
        self.close(self.channel[consumer])


class ClosesAfterAny(ClosesAfterOne):
    """The same, but the first returned message is any of the channel's."""

    def is_first_to_go_back(self, which: Channel, m: Message) -> Bool:
        """Whether the channel returns the message, whichever was delivered first."""
        return self.goes_back(which, m)


class AnswersBeforeTheSync(CursorQueue):
    """Takes a message before the record of its addition is on disk."""

    def _arrives(self, m: Message) -> None:
        require(~self.down)
        CursorPageIn._arrives(self, m)

    @action
    def sync(self, m: Message) -> None:
        """The record reaches the disk."""
        require(self.stored[m])
        self.added[m] = True

    @invariant(ON_DISK)
    def store_has_what_is_kept(self, m: Message) -> Bool:
        """Each message on disk is stored; some stored messages are not on disk."""
        return (
            implies(~self.down & self.is_kept(m), self.stored[m])
            & implies(self.down, ~self.stored[m] & ~self.behind[m] & ~self.recorded[m])
            & implies(self.down, ~self.given[m])
            & implies(self.added[m], self.spent[m])
        )


class AnsweringRemembering(AnswersBeforeTheSync, Remembering):
    """The same with all that the contract remembers of it."""


class SettlesBeforeTheSync(CursorQueue):
    """Lets go of a settled message before the record of its removal is on disk."""

    def _ends(self, m: Message) -> None:
        CursorPageIn._ends(self, m)

    @invariant(ON_DISK)
    def store_has_what_is_kept(self, m: Message) -> Bool:
        """Each stored message is on disk; some messages on disk are not stored."""
        return implies(self.stored[m], self.is_kept(m) & ~self.down) & implies(
            self.added[m], self.spent[m]
        )


class SettlingRemembering(SettlesBeforeTheSync, Remembering):
    """The same with all that the contract remembers of it."""


class ForgetsAMessage(CursorQueue):
    """Starts without the message that was added last."""

    @action
    def restart(self) -> None:
        """The broker starts."""
        super().restart()
        self.stored = self.stored.map(lambda m, old: old & ~self.is_latest(m))


class ForgettingRemembering(ForgetsAMessage, Remembering):
    """The same with all that the contract remembers of it."""


class ReadsAdditionsAlone(CursorQueue):
    """Starts with every message that was added, whether it was removed or not."""

    @action
    def restart(self) -> None:
        """The broker starts."""
        super().restart()
        self.stored = self.stored.map(lambda m, _: self.added[m])


class ReadingRemembering(ReadsAdditionsAlone, Remembering):
    """The same with all that the contract remembers of it."""


class KeepsTheAudit(CursorQueue):
    """Starts with an audit that knows the stored messages."""

    @action
    def restart(self) -> None:
        """The broker starts."""
        super().restart()
        self.recorded = self.recorded.map(lambda m, _: self.stored[m])


class KeepsThePosition(CursorQueue):
    """Starts with the position at the last message."""

    @action
    def restart(self) -> None:
        """The broker starts."""
        super().restart()
        self.behind = self.behind.map(lambda m, _: self.stored[m])


class AnswersWhileDown(CursorQueue):
    """Tells a client that there is nothing while the broker is down."""

    def has_nothing_to_give(self) -> Bool:
        """Whether nothing is in memory or unread."""
        return forall(Message, lambda m: ~self.stored[m])


class DownRemembering(AnswersWhileDown, Remembering):
    """The same with all that the contract remembers of it."""


class GivesToAnybody(CursorQueue):
    """Gives to consumers that have left."""

    def is_served(self, consumer: Consumer) -> Bool:
        """Whether the consumer may be given something."""
        return ~self.paused[consumer]

    def may_be_given(self, consumer: Consumer) -> Bool:
        """Whether the queue gives to the consumer: to any."""
        return self.is_served(consumer)


class AnybodyRemembering(GivesToAnybody, Remembering):
    """The same with all that the contract remembers of it."""


def unproved(refinement: Refinement, *only: str) -> dict[tuple[str, str], str]:
    """Return the obligations of these actions that are not proved, and their outcomes."""
    proof = bind(refinement).proof(only)
    assert len(proof.answers) > 5 * len(only)
    return {(a.action, a.name): a.outcome for a in proof.answers if a.outcome != "proved"}


def silent(_queue: Remembering, *_: object) -> Witness:
    """Take the step for a stutter."""
    return stutters()


def of(concrete: type[CursorQueue], remembering: type[Remembering]) -> Refinement:
    """Return the same refinement of a queue that is written otherwise."""
    witnesses = {**GOOD.witnesses, "sync": silent}
    return dataclasses.replace(
        GOOD, concrete=concrete, remembering=remembering, witnesses=witnesses
    )


@pytest.mark.thorough
def test_it_is_proved_among_its_clients() -> None:
    proof = prove(trace(CursorQueue))
    assert proof.complete


@pytest.mark.thorough
def test_each_kind_of_step_is_one_of_the_contract_or_none() -> None:
    """All of them together take four times as long: they are the next test."""
    kinds = "send_past_cache", "read", "give", "come_to_rest", "purge"
    assert unproved(GOOD, *kinds) == {}


@pytest.mark.thorough
def test_the_queue_refines_the_whole_contract() -> None:
    proof = bind(GOOD).proof()
    assert proof.complete
    assert len(proof.answers) > 900
    assert proof.assumptions == ("what a consumer has not settled is a count, so not below 0",)
    assert proof.left_out == ()
    assert {proof.witnesses[each] for each in MEMORY} == {"a stutter"}
    assert {"to_head is true", "returns_to_place is false"} <= set(proof.fixed)


def test_what_is_not_the_contract_is_refuted() -> None:
    resting = unproved(of(RestsBeforeTheEnd, RestingRemembering), "come_to_rest")
    assert set(resting) == {("come_to_rest", "quiescence")}
    losing = unproved(of(LosesWhatTheChannelHeld, LosingRemembering), "return_at_close")
    assert set(losing) == {("return_at_close", "status")}


@pytest.mark.parametrize(
    ("concrete", "remembering", "step", "name"),
    [
        (AnswersBeforeTheSync, AnsweringRemembering, "crash", "status"),
        (SettlesBeforeTheSync, SettlingRemembering, "crash", "status"),
        (ForgetsAMessage, ForgettingRemembering, "restart", "status stays"),
        (ReadsAdditionsAlone, ReadingRemembering, "restart", "status stays"),
    ],
)
def test_a_crash_that_loses_or_brings_back_what_it_must_not_is_refuted(
    concrete: type[CursorQueue], remembering: type[Remembering], step: str, name: str
) -> None:
    assert unproved(of(concrete, remembering), step) == {(step, name): "refuted"}


def test_a_start_that_keeps_the_audit_or_the_position_leaves_messages_unread() -> None:
    for wrong, lost in (
        (KeepsTheAudit, "the-audit-knows-nothing-that-is-still-to-be-read"),
        (KeepsThePosition, "what-is-stored-is-in-memory-or-ahead-of-the-position"),
    ):
        system = trace(wrong)
        [statement] = [each for each in system.invariants if each.name == lost]
        assert [
            c.action for c in prove_invariant(system, statement).conditions if c.outcome != "proved"
        ] == ["restart"]


@pytest.mark.thorough
def test_nor_is_more_that_is_not_the_contract() -> None:
    asking = unproved(of(RestsBeforeTheEnd, RestingRemembering), "find_nothing", "final_drain")
    assert {("find_nothing", "get-finds"), ("final_drain", "nothing-lost")} <= set(asking)
    assert ("final_drain", "survives-restart") in asking
    giving = unproved(of(GivesNewOnesFirst, GivingRemembering), "give")
    assert ("give", "returns-where-claimed") in giving
    down = unproved(of(AnswersWhileDown, DownRemembering), "find_nothing", "final_drain")
    assert {("find_nothing", "get-finds"), ("final_drain", "survives-restart")} <= set(down)
    anybody = unproved(of(GivesToAnybody, AnybodyRemembering), "give")
    assert set(anybody) == {("give", "only-to-subscribers")}


@pytest.mark.parametrize(
    ("refinement", "outcome"),
    [(GOOD, "proved"), (of(ReturnsAtTheFront, ReturningRemembering), "refuted")],
    ids=["behind", "at the front"],
)
def test_what_is_released_goes_behind_what_was_released_before(
    refinement: Refinement, outcome: str
) -> None:
    system = bind(refinement).system
    stamps = "what-was-returned-is-in-the-order-of-its-stamps"
    [statement] = [each for each in system.invariants if each.name == stamps]
    assert prove_invariant(system, statement).outcome == outcome


def test_a_wrong_witness_is_refuted() -> None:
    wrong = dataclasses.replace(GOOD, witnesses={**GOOD.witnesses, "send_cached": silent})
    assert ("send_cached", "status stays") in unproved(wrong, "send_cached")


def closing_after_one(concrete: type[ClosesAfterOne]) -> Refinement:
    """Return that to return one message and to close at once is to close at once."""

    def the_same(name: str) -> Callable[..., Witness]:
        return lambda _queue, *arguments: does(name, *arguments)

    same = {each.name: the_same(each.name) for each in trace(ClosesTooSoon).actions}
    return Refinement(
        name="close after one",
        concrete=concrete,
        abstract=ClosesTooSoon,
        remembering=concrete,
        families={},
        abstraction={},
        witnesses=same
        | {"close_after_one": lambda queue, consumer, _m: does("close", queue.channel[consumer])},
    )


def test_what_a_channel_returns_one_by_one_it_returns_as_if_at_once() -> None:
    """So the steps of a channel that closes are together the one step of `cursor_page_in`."""
    assert unproved(closing_after_one(ClosesAfterOne), "close_after_one") == {}
    assert unproved(closing_after_one(ClosesAfterAny), "close_after_one") == {
        ("close_after_one", "sooner"): "refuted"
    }


def test_what_returns_at_once_is_in_another_order_than_the_contract_has() -> None:
    """A closed channel leaves the contract's stamps as they were: so it is no one step of it."""
    system = bind(of(ClosesTooSoon, SoonRemembering)).system
    stamps = "what-was-returned-is-in-the-order-of-its-stamps"
    [statement] = [each for each in system.invariants if each.name == stamps]
    proof = prove_invariant(system, statement)
    assert {each.action for each in proof.conditions if each.outcome != "proved"} == {"close"}


def test_all_models_of_the_cursor_are_activemqs_and_one_is_proved_to_keep_the_contract() -> None:
    cursor = {name for name in CATALOGUE if name.startswith("cursor-")}
    assert set(SYSTEMS["activemq-cursor"]) == cursor
    assert {name for name in cursor if name in REFINEMENTS} == {"cursor-page-in"}
    assert REFINEMENTS["cursor-page-in"] is GOOD


def test_two_messages_and_two_consumers_keep_all_of_it() -> None:
    scope = Scope(
        {Message: 2, Consumer: 2, Channel: 2},
        range(1),
        {"acknowledges": (1, 0), "channel": (0, 1)},
    )
    found = explore(trace(CursorQueue), scope, limit_states=1_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


TWO_CHANNELS = Scope(
    {core_state.Queue: 1, Channel: 2, Consumer: 2, core_state.Entry: 2},
    range(9),
    {
        **dict.fromkeys(("level", "rank", "not_before", "horizon", "size", "replaces", "home"), 0),
        **dict.fromkeys(("to_tail", "returns_to_place", "when_idle", "exclusive"), 0),
        **dict.fromkeys(("is_sorted_by_key", "closes_itself", "deletes_itself", "mode"), 0),
        **dict.fromkeys(("fifo", "expires", "to_head", "ties", "concerned", "subscribed"), 1),
        **dict.fromkeys(("wants", "survives"), 1),
        "channel": (0, 1),
    },
)
"""The whole contract of a queue that returns to its head, and two consumers that leave alone."""

TAKES_FIRST = (("consume", 0), ("set_credit", 0, 0, 0, 0, 0), ("deliver", 0, 0, 0))
TAKES_NEXT = (("consume", 1), ("set_credit", 1, 0, 0, 0, 0))
Steps = tuple[tuple[str | int, ...], ...]


@pytest.mark.parametrize(
    ("steps", "closes", "queue_gives"),
    [
        (
            (*TAKES_FIRST, ("release", 0), ("deliver", 0, 0, 1), ("deliver", 0, 1, 0)),
            ((0, (0, 1)),),
            0,
        ),
        (
            (*TAKES_FIRST, *TAKES_NEXT, ("deliver", 1, 1, 0)),
            ((1, (1,)), (0, (0,))),
            1,
        ),
    ],
    ids=["one consumer, which had released", "two consumers, of which the second closes first"],
)
def test_the_contract_wants_what_the_queue_gives_where_each_return_is_told(
    steps: Steps, closes: tuple[tuple[int, tuple[int, ...]], ...], queue_gives: int
) -> None:
    """Without these steps a closed channel returns in the order in which its messages had come."""
    one_by_one = [
        step
        for channel, held in closes
        for step in (*(("release_at_close", m) for m in held), ("close_channel", channel))
    ]
    at_once = [("close_channel", channel) for channel, _ in closes]
    first, other = queue_gives, 1 - queue_gives
    out_of_order = {"returns-where-claimed", "fifo-order"}
    for closing, wanted, refused in ((one_by_one, first, other), (at_once, other, first)):
        reading = PlainReading(trace(WholeContract), TWO_CHANNELS)
        state = next(reading.initial_states())
        for action_, *arguments in (("publish", 0), ("publish", 1), *steps, *closing, *TAKES_NEXT):
            name, given = str(action_), [int(each) for each in arguments]
            assert reading.failing(name, state, given) == []
            state = reading.step(name, state, given)
        assert reading.failing("deliver", state, (1, wanted, 1)) == []
        assert set(reading.failing("deliver", state, (1, refused, 1))) == out_of_order

"""The queue with a cursor keeps the whole contract, for any number of messages; what is wrong not.

That it does says that nobody sees what of the store is in memory: to read, to page in and to drop
the batch are no steps.
"""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models import contract_words
from brokerproof.models.catalogue import CATALOGUE, SYSTEMS
from brokerproof.models.contract import Origin
from brokerproof.models.cursor_queue import Channel, Consumer, CursorQueue, Message
from brokerproof.models.cursor_queue_refines_contract import (
    CURSOR_QUEUE_REFINES_CONTRACT,
    MEMORY,
)
from brokerproof.models.cursor_queue_refines_contract import RememberingCursorQueue as Remembering
from brokerproof.models.language import Bool, action, forall, require
from brokerproof.models.language.explorer import explore
from brokerproof.models.language.model import trace
from brokerproof.models.language.plain import PlainReading
from brokerproof.models.language.prover import prove, prove_invariant
from brokerproof.models.language.refinement import LeftOut, Refinement, Witness, stutters
from brokerproof.models.language.refining import Bound, prove_refinement
from brokerproof.models.language.scope import Scope
from brokerproof.models.refinements import REFINEMENTS
from brokerproof.models.whole_contract import WholeContract

GOOD = CURSOR_QUEUE_REFINES_CONTRACT


class RestsBeforeTheEnd(CursorQueue):
    """Says that it is at rest where nothing waits in memory, though the store go on."""

    def has_nothing_to_give(self) -> Bool:
        """Whether nothing waits in memory."""
        return forall(Message, lambda m: ~(self.returned[m] | self.waiting[m] | self.batch[m]))


class RestingRemembering(RestsBeforeTheEnd, Remembering):
    """The same with all that the contract remembers of it."""


class GivesNewOnesFirst(CursorQueue):
    """Gives what waits before what was returned."""

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is next."""
        nothing_waits = forall(Message, lambda n: ~self.waiting[n])
        return self.is_first_waiting(m) | (nothing_waits & self.is_first_returned(m))


class GivingRemembering(GivesNewOnesFirst, Remembering):
    """The same with all that the contract remembers of it."""


class ReturnsAtTheFront(CursorQueue):
    """Returns a message before those that were returned earlier."""

    @action
    def release(self, who: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        require(self.holds[who, m])
        self._leaves_the_order(m)
        self.sooner = self.sooner.map(lambda n, k, old: old | ((n == m) & self.returned[k]))
        self.returned[m] = True
        self.holds[who, m] = False


class ReturningRemembering(ReturnsAtTheFront, Remembering):
    """The same with all that the contract remembers of it."""


class LosesWhatTheChannelHeld(CursorQueue):
    """Drops what a closed channel held, instead of returning it."""

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave."""
        self.stored = self.stored.map(lambda m, old: old & ~self.goes_back(which, m))
        self.paged = self.paged.map(lambda m, old: old & ~self.goes_back(which, m))
        self._leave(which)


class LosingRemembering(LosesWhatTheChannelHeld, Remembering):
    """The same with all that the contract remembers of it."""


class GivesToAnybody(CursorQueue):
    """Gives to consumers that have left."""

    def is_served(self, who: Consumer) -> Bool:
        """Whether the consumer may be given something."""
        return ~self.paused[who]

    def may_be_given(self, who: Consumer) -> Bool:
        """Whether the queue gives to the consumer: to any."""
        return self.is_served(who)


class AnybodyRemembering(GivesToAnybody, Remembering):
    """The same with all that the contract remembers of it."""


def unproved(refinement: Refinement, *only: str) -> dict[tuple[str, str], str]:
    """Return what is not proved of these actions, and how it came out."""
    proof = prove_refinement(refinement, only)
    assert len(proof.answers) > 5 * len(only)
    return {(a.action, a.name): a.outcome for a in proof.answers if a.outcome != "proved"}


def of(concrete: type[CursorQueue], remembering: type[Remembering]) -> Refinement:
    """Return the same refinement of a queue that is written otherwise."""
    return dataclasses.replace(GOOD, concrete=concrete, remembering=remembering)


def silent(_queue: Remembering, *_: object) -> Witness:
    """Nothing is said of it."""
    return stutters()


@pytest.mark.thorough
def test_it_is_proved_among_its_clients() -> None:
    proof = prove(trace(CursorQueue))
    assert proof.complete


@pytest.mark.slow
def test_each_kind_of_step_is_one_of_the_contract_or_none() -> None:
    """All of them together take four times as long: they are the next test."""
    kinds = "send_past_cache", "read", "give", "come_to_rest", "purge"
    assert unproved(GOOD, *kinds) == {}


@pytest.mark.thorough
def test_the_queue_refines_the_whole_contract() -> None:
    proof = prove_refinement(GOOD)
    assert proof.complete
    assert len(proof.answers) > 900
    assert proof.assumptions == ("what a consumer has not settled is a count, so not below 0",)
    assert {label for label, _ in proof.left_out} == {"returns-where-claimed", "fifo-order"}
    assert {proof.witnesses[each] for each in MEMORY} == {"a stutter"}
    assert {"to_head is true", "returns_to_place is false"} <= set(proof.fixed)


@pytest.mark.slow
def test_what_is_not_the_contract_is_refuted() -> None:
    resting = unproved(of(RestsBeforeTheEnd, RestingRemembering), "come_to_rest")
    assert set(resting) == {("come_to_rest", "quiescence")}
    losing = unproved(of(LosesWhatTheChannelHeld, LosingRemembering), "close")
    assert set(losing) == {("close", "status")}


@pytest.mark.thorough
def test_nor_is_more_that_is_not_the_contract() -> None:
    asking = unproved(of(RestsBeforeTheEnd, RestingRemembering), "find_nothing")
    assert set(asking) == {("find_nothing", "get-finds")}
    giving = unproved(of(GivesNewOnesFirst, GivingRemembering), "give")
    assert ("give", "returns-where-claimed") in giving
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
    system = Bound(refinement).system
    stamps = "what-was-released-is-in-the-order-of-its-stamps"
    [statement] = [each for each in system.invariants if each.name == stamps]
    assert prove_invariant(system, statement).outcome == outcome


@pytest.mark.slow
def test_a_wrong_witness_is_refuted() -> None:
    wrong = dataclasses.replace(GOOD, witnesses={**GOOD.witnesses, "send_cached": silent})
    assert ("send_cached", "status stays") in unproved(wrong, "send_cached")


@pytest.mark.slow
def test_what_a_closed_channel_returned_is_left_out_and_nothing_more() -> None:
    """Where clients release alone the contract's order is kept; with closed channels it is not."""
    whole = dataclasses.replace(GOOD, left_out=())
    found = unproved(whole, "give")
    assert found == {
        ("give", "returns-where-claimed"): "refuted",
        ("give", "fifo-order"): "refuted",
    }

    def comes_after_a_release(queue: Remembering, _who: Consumer, m: Message, _flag: Bool) -> Bool:
        return queue.origin[m] == Origin.RELEASED

    less = tuple(
        LeftOut(label, comes_after_a_release, "it is not this")
        for label in ("returns-where-claimed", "fifo-order")
    )
    assert set(unproved(dataclasses.replace(GOOD, left_out=less), "give")) == set(found)


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
    {contract_words.Queue: 1, Channel: 2, Consumer: 2, contract_words.Entry: 2},
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


@pytest.mark.parametrize(
    ("steps", "queue_gives"),
    [
        (
            (
                *TAKES_FIRST,
                *(("release", 0), ("deliver", 0, 0, 1), ("deliver", 0, 1, 0)),
                *(("close_channel", 0), *TAKES_NEXT),
            ),
            0,
        ),
        (
            (
                *(*TAKES_FIRST, *TAKES_NEXT, ("deliver", 1, 1, 0)),
                *(("close_channel", 1), ("close_channel", 0), *TAKES_NEXT),
            ),
            1,
        ),
    ],
    ids=["one consumer, which had released", "two consumers, of which the second closes first"],
)
def test_closed_channels_return_in_another_order_than_the_contract_has(
    steps: tuple[tuple[str | int, ...], ...], queue_gives: int
) -> None:
    """What was delivered first, or returned first, is not what the contract takes for first."""
    reading = PlainReading(trace(WholeContract), TWO_CHANNELS)
    state = next(reading.initial_states())
    for action_, *arguments in (("publish", 0), ("publish", 1), *steps):
        name, given = str(action_), [int(each) for each in arguments]
        assert reading.failing(name, state, given) == []
        state = reading.step(name, state, given)
    left_out = {each.label for each in GOOD.left_out}
    assert set(reading.failing("deliver", state, (1, queue_gives, 1))) == left_out
    assert reading.failing("deliver", state, (1, 1 - queue_gives, 1)) == []

"""Chains: what a step touches, and which chains are new."""

from __future__ import annotations

import pytest

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.chains import Chains, Past, Thing, touch_of
from brokerproof.checks.trace.moves import Move, Settle, operation_of
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Drain,
    Publish,
)
from examples.whole_broker import WholeBroker

BEGIN: tuple[Move, ...] = (
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Consume(channel="ch0", queue="q0", consumer="c0"),
    Drain(),
)


def bindings_after(*moves: Move) -> Oracle:
    """Return the oracle after these moves on the whole broker."""
    broker = WholeBroker()
    oracle = Oracle(broker.hello().capabilities)
    for move in moves:
        operation = operation_of(move, oracle.bindings)
        assert operation is not None
        assert oracle.observe(operation, broker.handle(operation)) == []
    return oracle


HELD: tuple[Thing, ...] = (
    ("message", "m0"),
    ("consumer", "c0"),
    ("channel", "ch0"),
    ("queue", "q0"),
)


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(Settle(how="release", message="m0"), id="release"),
        pytest.param(Cancel(consumer="c0"), id="cancel"),
        pytest.param(CloseChannel(channel="ch0"), id="close"),
    ],
)
def test_a_step_touches_what_is_held_and_all_around_it(move: Move) -> None:
    bindings = bindings_after(*BEGIN).bindings
    assert touch_of(move, bindings).things == HELD


def test_steps_of_a_kind_differ_in_names_alone() -> None:
    bindings = bindings_after(*BEGIN).bindings
    kinds = {
        touch_of(Publish(queue=queue, message=Message(id=name, priority=priority)), bindings).kind
        for queue, name, priority in (("q0", "m1", 4), ("q1", "m2", 4), ("q0", "m1", 5))
    }
    assert len(kinds) == 2


def test_a_chain_is_new_once() -> None:
    bindings, chains, past = bindings_after(*BEGIN).bindings, Chains(), Past()
    touch = touch_of(Settle(how="release", message="m0"), bindings)
    for new in (4, 4, 4, 0):
        # Alone, after one before it, after two; then the same two are before it once more.
        assert chains.new(past, touch) == new
        chains.add(past, touch)


def test_what_was_not_tried_comes_first_and_then_what_adds_most_chains() -> None:
    bindings, chains, past = bindings_after(*BEGIN).bindings, Chains(), Past()
    moves = (Drain(), Publish(queue="q0", message=Message(id="m1")), Cancel(consumer="c0"))
    touches = [touch_of(move, bindings) for move in moves]
    assert chains.most_new(past, touches, ()) == 2
    assert chains.most_new(past, touches, (2,)) == 1
    assert chains.most_new(past, touches, (1, 2)) == 0
    assert chains.most_new(past, touches, (0, 1, 2)) == 2
    assert chains.most_new(past, touches[:1], (0,)) is None
    chains.add(past, touches[2])
    assert len(chains.seen) == 6, "the two of the publish, and the four of the cancellation"
    assert len(chains.seen - chains.covered) == 2, "the publish was one step away, and not made"


def test_deliveries_are_part_of_chains() -> None:
    bindings, chains, past = bindings_after(*BEGIN).bindings, Chains(), Past()
    touch = touch_of(Settle(how="release", message="m0"), bindings)
    chains.add(past, touch)
    again = Delivered(delivery="d1", consumer="c0", queue="q0", message="m0")
    chains.add_deliveries(past, Answer((again,)))
    assert past["message", "m0"] == (touch.kind, "delivered")
    assert past["channel", "ch0"] == (touch.kind,)


def test_a_crash_touches_everything_so_far_and_counts_once() -> None:
    bindings, chains, past = bindings_after(*BEGIN).bindings, Chains(), Past()
    chains.add(past, touch_of(Cancel(consumer="c0"), bindings))
    crash = touch_of(Crash(), bindings)
    assert chains.new(past, crash) == 1
    chains.add(past, crash)
    assert {kinds[-1] for kinds in past.values()} == {crash.kind}
    assert len(past) == 4

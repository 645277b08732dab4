"""The clock: delayed messages, expiry, and the housekeeping for both."""

from __future__ import annotations

import pytest

from brokerproof.reference.qpid.push.entries import HELD, LEGAL_MOVES, Phase
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.spec.messages import Fifo, Message, Order, Priority
from brokerproof.spec.protocol.operations import Advance, Declare, Delete, Inspect, Publish
from brokerproof.spec.qpid.view import PointerQueueView
from tests.reference.front.reference_bench import Bench, queue_in

every_variant = pytest.mark.parametrize(
    "address",
    [
        "qpid-push",
        "qpid-push?pointer=inclusive",
        "qpid-push?pointer=published",
        "qpid-push?runner=drain",
    ],
)


class Timed(Bench):
    """A bench with a clock."""

    def publish_at(
        self,
        message: str,
        due: int | None = None,
        over: int | None = None,
        *,
        priority: int = 4,
        size: int = 1,
    ) -> list[str]:
        """Publish a message that has to wait, or expires."""
        made = Message(id=message, priority=priority, size=size)
        return self.ok(Publish(queue="q", message=made, not_before_s=due, expires_s=over))

    def advance(self, seconds: int = 1) -> list[str]:
        """Let time go by, and everything happen that can."""
        return self.ok(Advance(seconds=seconds)) + self.drain()


@every_variant
def test_what_has_to_wait_is_given_when_its_time_has_come(address: str) -> None:
    bench = Timed(address)
    bench.consume("c0")
    assert bench.publish_at("a", 2) + bench.drain() == []
    assert bench.publish("b") + bench.drain() == ["c0:b"]
    assert bench.get() == []
    assert bench.advance() == []
    assert bench.advance() == ["c0:a"]


@every_variant
@pytest.mark.parametrize("order", [Fifo(), Priority(10)], ids=str)
def test_what_becomes_due_is_in_its_place(address: str, order: Order) -> None:
    bench = Timed(address, order)
    bench.publish_at("a", 1)
    bench.publish("b", "c")
    assert bench.consume("c0", 1) + bench.drain() == ["c0:b"]
    assert bench.advance() == []
    assert bench.acknowledge("b") + bench.drain() == ["c0:a"]
    assert bench.acknowledge("a") + bench.drain() == ["c0:c"]


@every_variant
def test_what_had_no_time_to_wait_for_is_given_at_once(address: str) -> None:
    bench = Timed(address)
    bench.consume("c0")
    assert bench.drain() == []
    assert bench.publish_at("a", 0) == ["c0:a"]


@every_variant
def test_an_expired_message_is_not_given(address: str) -> None:
    bench = Timed(address)
    bench.publish_at("a", None, 1)
    bench.publish("b")
    bench.ok(Advance(seconds=1))
    assert bench.get() == ["b"]
    bench.drain()
    assert list(queue_in(bench.broker).entries.iterator()) != []
    bench.acknowledge("b")
    assert list(queue_in(bench.broker).entries.iterator()) == []
    bench.consume("c0")
    assert bench.drain() == []
    assert bench.publish_at("c", None, 0) + bench.drain() == []


@every_variant
def test_what_expires_while_it_waits_never_becomes_due(address: str) -> None:
    bench = Timed(address)
    bench.consume("c0")
    bench.publish_at("a", 2, 1)
    bench.publish_at("b", 1, 1)
    assert bench.advance() + bench.advance() == []
    assert list(queue_in(bench.broker).entries.iterator()) == []


@every_variant
def test_the_holder_of_an_expired_message_may_settle_it_and_a_release_drops_it(
    address: str,
) -> None:
    bench = Timed(address)
    bench.consume("c0")
    bench.drain()
    assert bench.publish_at("a", None, 1) + bench.publish_at("b", None, 1) == ["c0:a", "c0:b"]
    assert bench.advance() == []
    assert bench.acknowledge("a") + bench.drain() == []
    assert bench.release("b") + bench.drain() == []
    assert bench.get() == []


@every_variant
def test_a_consumer_that_waits_at_a_message_goes_on_when_it_expires(address: str) -> None:
    bench = Timed(address)
    bench.consume("c0", size=3)
    bench.publish("a", size=2)
    bench.publish_at("large", None, 1, size=2)
    bench.publish("small")
    bench.drain()
    assert bench.advance() == ["c0:small"]
    assert queue_in(bench.broker).waiting.get() == 0


def test_a_consumer_that_waits_at_an_expired_message_stays_there_without_housekeeping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Queue, "housekeep", lambda _: None)
    bench = Timed()
    bench.consume("c0", size=3)
    bench.publish("a", size=2)
    bench.publish_at("large", None, 1, size=2)
    bench.publish("small")
    assert bench.advance() == []


@every_variant
def test_a_consumer_that_closes_itself_does_not_wait_for_messages_not_due_or_expired(
    address: str,
) -> None:
    bench = Timed(address)
    bench.publish_at("a", 1)
    bench.publish_at("b", None, 1)
    bench.ok(Advance(seconds=0))
    bench.consume("c0", 0, auto_close=True)
    bench.drain()
    assert bench.closed == []
    bench.broker.executor.clock.advance(1)
    bench.credit("c0", 1)
    bench.drain()
    assert bench.closed == ["c0"]


@every_variant
def test_a_purge_leaves_what_is_not_due_and_a_deletion_does_not(address: str) -> None:
    bench = Timed(address)
    bench.publish_at("a", 1)
    bench.publish("b")
    bench.purge()
    assert bench.advance() + bench.get() == ["a"]
    bench.publish_at("c", 1)
    bench.ok(Delete(queue="q"))
    bench.ok(Declare(queue="q", order=Fifo()))
    assert bench.advance() + bench.get() == []


@every_variant
def test_a_browser_goes_past_what_is_not_due_and_is_not_taken_back(address: str) -> None:
    bench = Timed(address)
    bench.publish("x")
    bench.publish_at("a", 1)
    bench.publish("b")
    bench.publish_at("z", 9)
    assert bench.consume("b0", mode="browse") + bench.drain() == ["b0:x", "b0:b"]
    assert bench.advance() == []
    assert bench.get() + bench.get() == ["x", "a"]


def test_times_are_shown_and_told_apart() -> None:
    def name(due: int | None, over: int | None, seconds: int = 0) -> object:
        bench = Timed()
        bench.publish_at("a", due, over)
        bench.advance(seconds)
        return bench.broker.fingerprint()

    assert name(2, 4, 1) == name(1, 3)
    assert len({name(1, None), name(2, None), name(None, 1), name(None, 2), name(None, None)}) == 5
    bench = Timed()
    bench.publish_at("a", 1)
    bench.publish_at("b", None, 1)
    view = bench.broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, PointerQueueView)
    assert [(each.state, each.expires) for each in view.entries] == [
        ("held", False),
        ("available", True),
    ]


def test_time_that_goes_back_is_refused() -> None:
    bench = Timed()
    for operation in (
        Advance(seconds=-1),
        Publish(queue="q", message=Message(id="a"), not_before_s=-1),
        Publish(queue="q", message=Message(id="a"), expires_s=-1),
    ):
        answer = bench.do(operation)
        assert answer.error is not None
        assert answer.error.code == "refused"


def test_a_copy_has_a_clock_of_its_own() -> None:
    bench = Timed()
    bench.publish_at("a", 3)
    bench.advance()
    copy = bench.broker.fork()
    assert copy.fingerprint() == bench.broker.fingerprint()
    copy.executor.clock.advance(1)
    assert bench.broker.executor.clock.now() == 1
    assert copy.fingerprint() != bench.broker.fingerprint()
    bench.broker.executor.clock.advance(1)
    assert copy.fingerprint() == bench.broker.fingerprint()


def test_what_is_held_moves_as_it_may() -> None:
    assert {after for before, after in LEGAL_MOVES if before is Phase.HELD} == {
        Phase.AVAILABLE,
        Phase.ACQUIRED,
    }
    bench = Timed()
    bench.publish_at("a", 1)
    [entry] = queue_in(bench.broker).entries.iterator()
    assert entry.state.get() is HELD
    assert not entry.is_available()
    assert not entry.is_acquired()
    assert entry.let_go()
    assert not entry.let_go()

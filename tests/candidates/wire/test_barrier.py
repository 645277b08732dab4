"""Barriers: how often requests are made, and how long a silence must be."""

from __future__ import annotations

import pytest

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import barrier
from brokerproof.candidates.wire.barrier import measured, sweeps
from brokerproof.candidates.wire.errors import refused
from brokerproof.candidates.wire.example import Example, Queue
from brokerproof.candidates.wire.profile import RoundTrips, Silence
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import Consume, Declare, Operation, Publish


class SlowBroker:
    """A broker on a virtual clock; delivery number n takes `seconds[n]`, or 1 ms."""

    def __init__(self, seconds: dict[int, float], error: Answer | None = None) -> None:
        self.now = 0.0
        self._seconds = seconds
        self._error = error
        self._published = 0
        self._due = float("inf")

    def handle(self, operation: Operation) -> Answer:
        """Answer at once; a publish makes one delivery due."""
        if isinstance(operation, Publish):
            self._due = self.now + self._seconds.get(self._published, 0.001)
            self._published += 1
        is_declare = isinstance(operation, Declare)
        return self._error if self._error is not None and is_declare else Answer()

    def hear(self, seconds: float) -> tuple[Delivered, ...]:
        """Let time pass, and return the delivery once it is due."""
        self.now += seconds
        if self.now < self._due:
            return ()
        self._due = float("inf")
        return (Delivered(delivery="d", consumer="c", queue="q", message="m", redelivered=False),)


def silence_of(
    broker: SlowBroker, monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> tuple[float, str]:
    monkeypatch.setattr("time.monotonic", lambda: broker.now)
    return measured(broker, silence)


def test_the_slowest_delivery_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SlowBroker({barrier.WARM_UP_DELIVERIES + 7: 0.040})
    length, notice = silence_of(broker, monkeypatch, Silence(floor_s=0.05, factor=4))
    assert length == pytest.approx(0.160, abs=0.01)
    assert "the slowest of 200 took 40" in notice


def test_slow_deliveries_while_the_broker_warms_up_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = SlowBroker({0: 1.0, barrier.WARM_UP_DELIVERIES - 1: 1.0})
    length, notice = silence_of(broker, monkeypatch, Silence(floor_s=0.05, factor=4))
    assert length == 0.05
    assert notice.startswith("a delivery that is owed is awaited for 1000 ms")


def test_a_broker_that_delivers_too_late_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CandidateUnavailable, match="got nothing within 2 s"):
        silence_of(SlowBroker({0: 3.0}), monkeypatch, Silence())


def test_a_broker_that_refuses_a_queue_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SlowBroker({}, Answer(error=refused("no queues for you")))
    with pytest.raises(CandidateUnavailable, match="no queues for you"):
        silence_of(broker, monkeypatch, Silence())


@pytest.mark.parametrize(
    ("times", "chains", "expected"),
    [
        (1, False, ["A", "B"]),
        (2, False, ["A", "A", "B", "B"]),
        # One sweep, and one more for each of three consumers.
        (1, True, ["A", "B"] * 4),
    ],
)
def test_each_channel_with_a_consumer_is_swept(
    *, times: int, chains: bool, expected: list[str]
) -> None:
    now: Example[str, None] = Example()
    now.queues["q"] = Queue("x", Declare(queue="q", order=Fifo()))
    now.channels = {"a": "A", "b": "B", "idle": "I"}
    for channel, consumer in (("b", "c0"), ("a", "c1"), ("a", "c2")):
        now.note_consumer(Consume(channel=channel, queue="q", consumer=consumer), None)
    asked = RoundTrips(request="any", times=times, chains=chains)
    assert list(sweeps(asked, now)) == expected

"""The generic profile on a RabbitMQ that runs: without a barrier, silence is measured."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.amqp091.candidate import Amqp091Candidate
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import barrier
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Declare,
    Delete,
    Drain,
    Operation,
    Publish,
    Reset,
)

if TYPE_CHECKING:
    from pathlib import Path

    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ

pytestmark = pytest.mark.rabbitmq


def told(candidate: Amqp091Candidate, *operations: Operation) -> list[str]:
    """Carry out what must succeed and return the messages delivered."""
    found = []
    for operation in operations:
        answer = candidate.handle(operation)
        assert answer.ok, (operation, answer.error)
        found += [event.message for event in answer.events if isinstance(event, Delivered)]
    return found


def test_a_silence_brings_all_deliveries_of_a_broker_without_a_barrier(
    rabbitmq: PrivateRabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier, "MEASURED_DELIVERIES", 20)
    with closing(Amqp091Candidate(f"{rabbitmq.url}?profile=generic-amqp091")) as candidate:
        [notice] = candidate.notices
        assert "ms: the slowest of 20 took" in notice
        told(candidate, Reset(), Declare(queue="q", order=Fifo()))
        for consumer in ("c0", "c1"):
            window = Consume(channel="ch", queue="q", consumer=consumer, credit=Credit(1))
            told(candidate, window)
        told(candidate, *(Publish(queue="q", message=Message(id=f"m{n}")) for n in range(3)))
        assert candidate._now.unsettled.keys() <= {"d1", "d2"}
        told(candidate, Drain())
        # Each consumer has a window of its own, on one channel of ours. What came with the answer
        # to an acknowledgement has been read from the socket, and is told all the same.
        assert sorted(candidate._now.unsettled) == ["d1", "d2"]
        assert told(candidate, Acknowledge(delivery="d1"), Drain()) == ["m2"]
        told(candidate, Consume(channel="a", queue="q", consumer="c2"), Drain(), Drain())
        # What a closed channel returns comes after the silence before the closing.
        # The consumers' channels close one by one, hence in any order.
        returned = told(candidate, CloseChannel(channel="ch"), Drain())
        assert sorted(returned) == ["m1", "m2"]
        assert told(candidate, Delete(queue="q")) == []
        # No broker of the specification tells that; ours forgets the consumer.
        assert not candidate._now.consumers


def test_a_broker_that_delivers_nothing_cannot_be_measured(
    rabbitmq: PrivateRabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier, "DELIVERY_S_MAX", 0.0)
    monkeypatch.setattr(barrier, "STEP_S", 0.0)
    monkeypatch.setattr(Amqp091Candidate, "hear", lambda *_: ())
    with pytest.raises(CandidateUnavailable, match="measuring the silence: a waiting consumer"):
        Amqp091Candidate(f"{rabbitmq.url}?profile=generic-amqp091")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('kind = "silence"', 'kind = "round_trips"\nrequest = "pray"', "no request pray"),
        ("get = true", "get = true\nselectors = true", "its claims need selector_argument"),
    ],
)
def test_a_profile_that_cannot_be_carried_out_is_refused(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path, before: str, after: str, complaint: str
) -> None:
    text = GENERIC.replace(before, after).replace("floor_s = 0.05\nfactor = 20\n", "")
    file = tmp_path / "mine.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(CandidateUnavailable, match=complaint):
        Amqp091Candidate(f"{rabbitmq.url}?profile={file}")


GENERIC = """
name = "mine"
protocol = "amqp091"
[claims]
get = true
[barrier]
kind = "silence"
floor_s = 0.05
factor = 20
"""

"""Names and properties that no disk can take are refused, and nothing of them has happened."""

from __future__ import annotations

import pytest

from brokerproof.reference import make
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.operations import Declare, Get, Operation, Publish

DURABLE = ("rabbitmq-paging", "activemq-cursor")
HALF = "\ud800"

UNWRITABLE: tuple[Operation, ...] = (
    Declare(queue=HALF, order=Fifo(), durable=True),
    Publish(queue="q", message=Message(id=HALF, persistent=True)),
    Publish(queue="q", message=Message(id="m", persistent=True, properties={"k": 2**70})),
    Publish(queue="q", message=Message(id="m", persistent=True, properties={"k": HALF})),
    Publish(queue="q", message=Message(id="m", persistent=True, properties={HALF: 1})),
)


@pytest.mark.parametrize("operation", UNWRITABLE)
@pytest.mark.parametrize("system", DURABLE)
def test_what_cannot_be_written_is_refused(system: str, operation: Operation) -> None:
    broker = make(system)
    assert broker.handle(Declare(queue="q", order=Fifo(), durable=True)).ok
    error = broker.handle(operation).error
    assert error is not None
    assert error.code == "refused"
    assert error.message.startswith("it cannot be written to a disk: ")
    assert broker.handle(Get(channel="c", queue="q")).events == ()


@pytest.mark.parametrize("system", DURABLE)
def test_what_is_as_large_as_can_be_written_is_taken(system: str) -> None:
    broker = make(system)
    assert broker.handle(Declare(queue="ü", order=Fifo(), durable=True)).ok
    message = Message(id="✉", persistent=True, properties={"k": 2**64 - 1, "l": -(2**63)})
    assert broker.handle(Publish(queue="ü", message=message)).ok
    (event,) = broker.handle(Get(channel="c", queue="ü")).events
    assert "✉" in repr(event)

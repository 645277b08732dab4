"""The final drain check calls a message lost only if no client can have it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import play
from brokerproof.checks.trace.moves import Settle
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import Consume, Declare, Drain, Operation, Publish

if TYPE_CHECKING:
    from brokerproof.checks.trace.moves import Move

CLAIMS = Capabilities(orders=("fifo",), modes=("acknowledge",))
CONSUMED: tuple[Move, ...] = (
    Declare(queue="q", order=Fifo()),
    *(Publish(queue="q", message=Message(id=f"m{number}")) for number in range(5)),
    Consume(channel="ch", queue="q", consumer="c"),
)


class Paged:
    """A reference broker that has no more than two messages of a consumer on their way."""

    def __init__(self, loses: str = "") -> None:
        self.behind, self.loses = make("qpid-push"), loses

    def hello(self) -> Hello:
        """Claim what the tests use."""
        return Hello(name="paged", version="1", capabilities=CLAIMS)

    def handle(self, operation: Operation) -> Answer:
        """Carry out an operation with a window of two."""
        if isinstance(operation, Consume):
            operation = replace(operation, credit=Credit(2))
        if isinstance(operation, Publish) and operation.message.id == self.loses:
            return Answer()
        return self.behind.handle(operation)


@pytest.mark.parametrize(("loses", "named"), [("", "quiescence"), ("m4", "nothing-lost")])
def test_a_page_that_comes_after_acknowledgements_is_not_lost(loses: str, named: str) -> None:
    run = play(Paged(loses), Oracle(CLAIMS), [*CONSUMED, Drain()])
    assert run.broken is not None
    assert run.broken.requirement == named


class Scripted:
    """A broker that delivers messages in an order of its own, as soon as there is a consumer."""

    def __init__(self, *messages: str) -> None:
        self.messages = messages

    def hello(self) -> Hello:
        """Be of no use: the tests give the claims."""
        raise NotImplementedError

    def handle(self, operation: Operation) -> Answer:
        """Deliver everything to consumer c."""
        if not isinstance(operation, Consume) or operation.consumer != "c":
            return Answer()
        return Answer(
            tuple(
                Delivered(delivery=f"d{m}", consumer="c", queue="q", message=m, redelivered=False)
                for m in self.messages
            )
        )


@pytest.mark.parametrize(
    ("delivered", "named"),
    [
        (("m1", "m0", "m2", "m3", "m4"), "fifo-order"),
        (("m1", "m2", "m3", "m4"), "nothing-lost"),
    ],
)
def test_what_a_client_has_settled_is_not_lost(delivered: tuple[str, ...], named: str) -> None:
    claims = replace(CLAIMS, event_order="per_consumer")
    settled = [Settle(how="acknowledge", message=message) for message in delivered]
    run = play(Scripted(*delivered), Oracle(claims), [*CONSUMED, *settled, Drain()])
    assert run.broken is not None
    assert run.broken.requirement == named

"""What a move means after other moves, where a part of a trace leaves some of them out."""

from __future__ import annotations

import pytest

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.trace.moves import operation_of
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Error
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare, Publish

CLAIMS = Capabilities(
    orders=("fifo",), modes=("acknowledge",), credit=("messages",), release_position="original"
)
REFUSED = Answer(error=Error("refused", "not now"))


@pytest.mark.parametrize("first", [OK, REFUSED], ids=["taken", "refused"])
@pytest.mark.parametrize(
    "move",
    [
        Publish(queue="q", message=Message(id="m0")),
        Consume(channel="ch", queue="q", consumer="c0", exclusive=True),
    ],
    ids=["message", "consumer"],
)
def test_a_name_that_was_taken_is_not_used_again(move: Publish | Consume, first: Answer) -> None:
    oracle = Oracle(CLAIMS)
    oracle.observe(Declare(queue="q", order=Fifo()), OK)
    assert operation_of(move, oracle.bindings) == move
    oracle.observe(move, first)
    assert operation_of(move, oracle.bindings) == (None if first.error is None else move)

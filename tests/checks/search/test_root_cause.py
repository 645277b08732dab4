"""A trace counts for its requirement only if no shorter form breaks another one of its kind."""

from __future__ import annotations

from functools import partial

import pytest

from brokerproof.checks.search.root_cause import fails, requirement_of, root_cause_of
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.operations import Acknowledge, Declare, Get, Operation, Publish
from tests.checks.broken_candidates import Box, Sieve, fresh


class Discards(Box):
    """Drops a message that came back when its old delivery is acknowledged once more."""

    def handle(self, operation: Operation) -> Answer:
        """Let the refused acknowledgement take what waits."""
        answer = super().handle(operation)
        if isinstance(operation, Acknowledge) and answer.error is not None:
            self.queues["q0"].clear()
        return answer


AGAIN = Settle(how="acknowledge", message="m0", again=True)
WALK: list[Move] = [
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Get(channel="ch0", queue="q0"),
    Settle(how="release", message="m0"),
    AGAIN,
    AGAIN,
    Get(channel="ch0", queue="q0"),
]
"""Without one of the two acknowledgements the other still stands before the loss."""


@pytest.mark.parametrize("candidate", [Sieve, Discards])
def test_what_an_idle_step_seems_to_break_is_named_by_the_cut_trace(candidate: type[Box]) -> None:
    begin = partial(fresh, candidate)
    run = fails(WALK, begin, "settled-once")
    assert run is not None
    assert requirement_of(run) == "settled-once"
    came = root_cause_of([run], begin)
    if candidate is Discards:
        assert came.run is not None
        assert requirement_of(came.run) == "settled-once"
        assert came.instead is None
        return
    assert (came.run, came.behind) == (None, "nothing-lost")
    assert came.instead is not None
    assert [move for move in came.instead.moves if move == AGAIN] == []

"""Small examples that are played together have names of their own, and few crashes."""

from __future__ import annotations

from brokerproof.checks.crash.crash_examples import planned_examples, together
from brokerproof.checks.trace.moves import Settle
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Crash, Declare, Publish, Restart

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=3,
    modes=("acknowledge", "automatic"),
    purge=True,
    delete=True,
    durable=True,
)


def test_examples_together_make_as_many_crashes_as_the_longest_alone() -> None:
    planned = planned_examples(CLAIMS)
    moves = together(planned).moves
    alone = [sum(isinstance(move, Crash) for move in each.moves) for each in planned]
    assert sum(isinstance(move, Crash) for move in moves) == max(alone) == 2
    assert sum(isinstance(move, Restart) for move in moves) == 2
    others = [move for move in moves if not isinstance(move, Crash | Restart)]
    assert len(others) == sum(len(each.moves) for each in planned) - 2 * sum(alone)


def test_no_name_is_that_of_two_examples() -> None:
    planned = planned_examples(CLAIMS)
    moves = together(planned).moves
    published = [move.message.id for move in moves if isinstance(move, Publish)]
    consumers = [move.consumer for move in moves if isinstance(move, Consume)]
    assert len(published) == len(set(published))
    assert len(consumers) == len(set(consumers))
    queues = {move.queue for move in moves if isinstance(move, Declare)}
    assert len(queues) == sum(
        len({move.queue for move in each.moves if isinstance(move, Declare)}) for each in planned
    )
    settled = {move.message for move in moves if isinstance(move, Settle)}
    assert settled <= {*published}

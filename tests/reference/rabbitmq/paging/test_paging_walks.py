"""Long random runs of a queue against the abstract one, by seeds and by Hypothesis.

Segment, batch, target, journal and files are as small as can be, so that everything happens within
a hundred steps: paging, reloads, requeues into each place, flushes, compaction, stops and crashes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from brokerproof.reference.rabbitmq.paging import Parameters
from tests.reference.rabbitmq.paging.paging_bench import RETURNING, PagingBench, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEDS = 40
THOROUGH_SEEDS = 3_000


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("steps", [None, RETURNING], ids=["all", "returning"])
def test_a_queue_is_what_its_oracle_is(steps: Sequence[str] | None, durable: bool) -> None:
    for seed in range(SEEDS):
        if steps is None:
            walk(seed, durable=durable)
        else:
            walk(seed, steps=steps, durable=durable)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(SEEDS, THOROUGH_SEEDS, 100))
def test_a_queue_is_what_its_oracle_is_on_many_more_runs(first: int) -> None:
    for seed in range(first, first + 100):
        walk(seed, count=200, durable=seed % 10 != 0)
        walk(seed, count=200, steps=RETURNING)


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert walk(1).disk.content() == walk(1).disk.content()


def test_a_walk_visits_everything() -> None:
    seen: set[str] = set()
    for seed in range(SEEDS):
        counts = walk(seed).disk.counts
        seen |= {kind for kind, count in counts.items() if count}
    assert seen == {"append", "read", "sync", "truncate", "delete", "rename"}


class PagingMachine(RuleBasedStateMachine):
    """Operations of a queue's owner, in any order; the bench compares after each step."""

    bench: PagingBench

    @initialize(
        segment=st.integers(2, 4),
        batch=st.integers(1, 3),
        journal_limit=st.sampled_from((2, 6, 40)),
        file_size=st.sampled_from((40, 100, 400)),
        whole=st.booleans(),
    )
    def start(
        self, segment: int, batch: int, journal_limit: int, file_size: int, whole: bool
    ) -> None:
        """Choose the sizes."""
        self.bench = PagingBench(
            Parameters(
                segment=segment,
                batch=batch,
                journal_limit=journal_limit,
                file_size=file_size,
                cache_bytes=0,
                surplus="whole batch" if whole else "any",
            )
        )

    @rule(persistent=st.booleans(), expiry=st.none() | st.integers(1, 9))
    def publish(self, persistent: bool, expiry: int | None) -> None:
        """Publish a message."""
        self.bench.publish(persistent=persistent, expiry=expiry)

    @precondition(lambda self: not self.bench.oracle.ready)
    @rule(persistent=st.booleans(), ack_required=st.booleans())
    def publish_delivered(self, persistent: bool, ack_required: bool) -> None:
        """Publish to a consumer that is ready."""
        self.bench.publish_delivered(persistent=persistent, ack_required=ack_required)

    @rule(ack_required=st.booleans())
    def fetch(self, ack_required: bool) -> None:
        """Fetch a message."""
        self.bench.fetch(ack_required=ack_required)

    @rule(now=st.integers(0, 9), ack_required=st.booleans())
    def expire(self, now: int, ack_required: bool) -> None:
        """Take off the expired messages."""
        if ack_required:
            self.bench.fetchwhile(now)
        else:
            self.bench.dropwhile(now)

    @precondition(lambda self: self.bench.oracle.pending)
    @rule(data=st.data(), returned=st.booleans())
    def settle_deliveries(self, data: st.DataObject, returned: bool) -> None:
        """Acknowledge or return some messages."""
        pending = st.sampled_from(sorted(self.bench.oracle.pending))
        tags = data.draw(st.lists(pending, min_size=1, max_size=4, unique=True))
        if returned:
            self.bench.requeue(tags)
        else:
            self.bench.acknowledge(tags)

    @rule(messages=st.none() | st.integers(0, 4))
    def set_target(self, messages: int | None) -> None:
        """Change how many messages may be in RAM."""
        self.bench.set_target(messages)

    @rule()
    def timeout(self) -> None:
        """Let the queue do its due work."""
        self.bench.timeout()

    @rule()
    def settle(self) -> None:
        """Let the queue page until nothing is due."""
        self.bench.settle()

    @rule()
    def sync(self) -> None:
        """Sync everything."""
        self.bench.sync()

    @rule()
    def purge(self) -> None:
        """Drop the ready messages."""
        self.bench.purge()

    @rule()
    def restart(self) -> None:
        """Stop cleanly, and start."""
        self.bench.restart()

    @rule(part=st.fractions(0, 1))
    def crash(self, part: Fraction) -> None:
        """Lose the power, and a part of the unsynced data."""
        unsynced = self.bench.disk.unsynced()
        self.bench.crash({name: int(size * part) for name, size in unsynced.items()})


TestPagingMachine = PagingMachine.TestCase
PagingMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
)

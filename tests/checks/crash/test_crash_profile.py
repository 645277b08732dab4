"""The same drawn examples with crashes, on the reference that pages and on a RabbitMQ.

A seed draws the same moves for both as far as both answer alike. On the real server each crash is a
SIGKILL between two batches of moves, messages are confirmed, and an operation without an answer,
such as an acknowledgement, may have happened or not. Both must keep one contract, and a forgetful
twin breaks it.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from brokerproof.checks.crash.crash_examples import CRASHES_IN_A_DRAWN_EXAMPLE, drawn_example
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import Exchange, step
from brokerproof.checks.subjects import PRIVATE_RABBITMQ, open_subject
from brokerproof.reference import make
from brokerproof.spec.protocol.candidate import Closable
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Crash, Publish
from tests.faults.overlay import Edit, plant

if TYPE_CHECKING:
    from brokerproof.checks.oracle.breaches import Breach
    from brokerproof.spec.protocol.candidate import Candidate

TIGHT = "rabbitmq-paging?segment=2&batch=2&journal=4&file=200&target=1"
REAL = "rabbitmq-paging"
SEEDS = range(40)
SEEDS_OF_THE_SERVER = (0,)

CLAIMS_OF_BOTH = Capabilities(
    orders=("fifo", "priority"),
    priority_mapping="clamp",
    modes=("acknowledge", "automatic"),
    credit=("messages",),
    durable=True,
    get=True,
    purge=True,
    delete=True,
    release_position="original",
)


def played(
    candidate: Candidate, claims: Capabilities, seed: int
) -> tuple[list[Exchange], list[Breach]]:
    """Play an example to its first breach, or to an unknown outcome."""
    oracle = Oracle(claims)
    steps: list[Exchange] = []
    try:
        for move in drawn_example(claims, seed, oracle):
            told, breaches = step(candidate, oracle, move)
            if told is not None:
                steps.append(told)
            if breaches:
                return steps, breaches
    except Unfollowable:
        pass
    return steps, []


def crashes_in(steps: list[Exchange]) -> int:
    return sum(isinstance(told.operation, Crash) for told in steps)


@pytest.mark.each_time(1)
@pytest.mark.parametrize("address", [TIGHT, REAL, f"{TIGHT}&disk=files"])
def test_the_reference_keeps_the_profile(address: str) -> None:
    crashes = persistent = 0
    for seed in SEEDS:
        candidate = make(address)
        steps, breaches = played(candidate, CLAIMS_OF_BOTH, seed)
        if isinstance(candidate, Closable):
            candidate.close()
        assert breaches == []
        crashes += crashes_in(steps)
        published = [each.operation for each in steps if isinstance(each.operation, Publish)]
        persistent += sum(each.message.persistent for each in published)
    assert crashes == CRASHES_IN_A_DRAWN_EXAMPLE * len(SEEDS)
    assert persistent > 5 * len(SEEDS)


def test_a_reference_that_answers_before_it_has_written_does_not() -> None:
    forgetful = Edit(
        "rabbitmq/process/queue.py",
        "            self.storage.sync()\n            confirmed",
        "            return\n            confirmed",
    )
    runs = (played(plant([forgetful], REAL)(), CLAIMS_OF_BOTH, seed) for seed in SEEDS)
    assert any(breaches for _, breaches in runs)


@pytest.mark.thorough
@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbitmq")
def test_a_rabbitmq_that_is_killed_between_batches_keeps_the_profile() -> None:
    crashes = 0
    with closing(open_subject(PRIVATE_RABBITMQ)) as subject:
        claims = subject.hello.capabilities
        assert structs.replace(claims, event_order="total") == CLAIMS_OF_BOTH
        for seed in SEEDS_OF_THE_SERVER:
            candidate, _ = subject.fresh()
            steps, breaches = played(candidate, claims, seed)
            assert breaches == []
            crashes += crashes_in(steps)
    assert crashes == CRASHES_IN_A_DRAWN_EXAMPLE * len(SEEDS_OF_THE_SERVER)

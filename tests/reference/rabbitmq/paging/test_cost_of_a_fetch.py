"""Disk reads of a fetch: none for alpha, the body for beta and gamma, both for delta.

The document's claim, counted at the disk. For delta each segment has one entry here, so that a read
of the index is for one message; the one read of a larger segment is for all of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import Node, Parameters, SimulatedDisk
from brokerproof.reference.rabbitmq.paging.holdings import Holdings

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus

COSTS = {"alpha": 0, "beta": 1, "gamma": 1, "delta": 2}
MESSAGES = 5
SEGMENT = {"delta": 1}


def reads_of_fetches(state: str) -> list[int]:
    """Return how often the disk is read for each of the messages, all but the first in a state."""
    disk = SimulatedDisk()
    # With an empty journal a position is in its segment's file, and nowhere in RAM.
    parameters = Parameters(segment=SEGMENT.get(state, 16), batch=1, cache_bytes=0, journal_limit=0)
    queue = Node(disk, parameters).declare("q", durable=True)
    for number in range(MESSAGES):
        queue.publish(b"%16d" % number, b"body", persistent=state == "gamma")
    if state != "alpha":
        queue.set_target(0)
        while queue.needs_timeout() is not None:
            queue.timeout()
    if state == "delta":
        assert queue.delta.count == MESSAGES - 1
    else:
        assert {status.state for status in (*queue.q4, *queue.q3)} == {state}
    reads = [disk.counts["read"]]
    for _ in range(MESSAGES):
        assert queue.fetch(ack_required=True) is not None
        reads.append(disk.counts["read"])
    return [after - before for before, after in pairwise(reads)]


@pytest.mark.parametrize("state", COSTS)
def test_a_fetch_reads_what_the_document_says(state: str) -> None:
    # A message's position is read when the one before it leaves; so the last costs no further one.
    expected = COSTS[state]
    assert sum(reads_of_fetches(state)) == expected * MESSAGES - (state == "delta")
    assert max(reads_of_fetches(state)) == expected


@pytest.mark.parametrize("state", ["beta", "gamma", "delta"])
def test_a_body_that_is_read_twice_is_found(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Holdings.read_message

    def read_twice(holdings: Holdings, status: MessageStatus) -> bytes:
        read(holdings, status)
        return read(holdings, status)

    monkeypatch.setattr(Holdings, "read_message", read_twice)
    assert max(reads_of_fetches(state)) > COSTS[state]

"""Two releases against two deliveries, to the end; and a broker that loses one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from benchmarks.returns_and_deliveries import case_of_returns
from brokerproof.checks.threads.interleavings import explore
from brokerproof.reference import Broker
from brokerproof.spec.messages import Fifo, Order, Priority
from tests.faults.overlay import Edit, plant

ORDERS = (Fifo(), Priority(2))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_one_thread_each_explored_to_the_end(order: Order) -> None:
    found = explore(case_of_returns(order, threads=2))
    assert (found.failed, found.complete) == ([], True)
    assert found.runs > 40
    assert found.contended


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("order", "threads"),
    [
        (Fifo(), 3),
        *(pytest.param(each, n, marks=pytest.mark.thorough) for each in ORDERS for n in (3, 4)),
    ],
    ids=str,
)
def test_each_release_by_itself_explored_to_the_end(order: Order, threads: int) -> None:
    found = explore(case_of_returns(order, threads))
    assert (found.failed, found.complete) == ([], True)
    assert found.runs > 3_000


PASSED = Edit(
    file="qpid/push/pointers.py",
    old="""
            if self.place.compare_and_set(place, (last_seen, entry if lowers else released)):
                return
""",
    new="""
            if not lowers or last_seen.compare_to(entry) < 0:
                return
            if self.place.compare_and_set(place, (last_seen, entry)):
                return
""",
)
"""Leaves the place alone where it is before the entry: it may be about to pass it."""


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_release_that_trusts_its_look_at_the_place_is_found_out(order: Order) -> None:
    broker = cast("Callable[[], Broker]", plant([PASSED]))
    found = explore(case_of_returns(order, 3, broker))
    assert "looked at is" in found.failed[0].complaints[0]

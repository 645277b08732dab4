"""Every row of the index's tables is met in the search with losses of power, or cannot be."""

from __future__ import annotations

import pytest

from tests.reference.rabbitmq.disk.index_rows import (
    ADDRESSES,
    OUT_OF_REACH,
    ROWS,
    counted,
    searched,
)


@pytest.mark.thorough
def test_every_row_is_met_but_those_out_of_reach() -> None:
    with counted() as counts:
        for address in ADDRESSES:
            assert searched(address, 16_000).broken == {}
    assert {row for row in ROWS if not counts[row]} == set(OUT_OF_REACH)


def test_without_a_loss_of_power_few_rows_are_met() -> None:
    with counted() as counts:
        found = searched("rabbitmq-paging", 200)
    assert found.operations
    assert len([row for row in ROWS if counts[row]]) < len(ROWS) / 2

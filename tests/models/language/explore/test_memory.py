"""A search has a bound on its memory, and ends with its findings so far."""

from __future__ import annotations

import pytest

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore import memory
from brokerproof.models.language.explore.column_search import ColumnSearch
from brokerproof.models.language.explore.explorer import explore
from tests.models.small_models import Counters, Item

GIGABYTE = 1 << 30


@pytest.fixture
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine say that a hundred megabytes are free."""
    if memory._own_bytes() is None:
        pytest.skip("this machine does not say how much memory a process uses")
    monkeypatch.setattr(memory, "_free_bytes", lambda: GIGABYTE // 10)


@pytest.mark.usefixtures("little_is_free")
def test_an_allocation_beyond_what_is_free_fails_in_time_and_not_afterwards() -> None:
    with memory.bounded_memory(), pytest.raises(MemoryError):
        bytearray(GIGABYTE)
    assert len(bytearray(GIGABYTE)) == GIGABYTE


@pytest.mark.usefixtures("little_is_free")
def test_a_search_that_has_no_memory_left_says_what_it_has_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system, scope = trace(Counters), Scope({Item: 2}, range(3))
    whole = explore(system, scope)
    advance = ColumnSearch.advance

    def greedy(self: ColumnSearch, limit: int | None) -> int:
        if len(self.levels) > 2:
            bytearray(GIGABYTE)
        return advance(self, limit)

    monkeypatch.setattr(ColumnSearch, "advance", greedy)
    found = explore(system, scope)
    assert found.incomplete == "no memory for more states"
    assert found.levels == whole.levels[:3]

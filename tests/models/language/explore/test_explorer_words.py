"""States of several words: the same states as in plain Python, and the same search in C."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from brokerproof.models.language.core.model import System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.compiled import NoCompilerError, compiler
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.language.read.word_sets import Recent, Visited, distinct, keys
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription
from tests.models.language.explore.test_explorer import Hopeful, naive
from tests.models.language.read.test_readings_agree import arbitrary, differences
from tests.models.small_models import Counters, Item

COUNTERS = trace(Counters)
WIDE = Scope({Item: 5}, range(1 << 13), {"limit": 1})
POINTERS = Scope({Entry: 6, Subscription: 3}, range(1))


@pytest.mark.parametrize(
    ("system", "scope", "words"),
    [
        pytest.param(COUNTERS, WIDE, 2, id="counters"),
        pytest.param(trace(PointerQueue), POINTERS, 2, id="pointers"),
    ],
)
def test_columns_of_several_words_agree_with_plain_python(
    system: System, scope: Scope, words: int
) -> None:
    plain, columns = PlainReading(system, scope), ColumnReading(system, scope)
    assert columns.words == words
    states = arbitrary(plain, 8)
    packed = columns.pack(states)
    assert packed.shape == (8, words)
    assert columns.unpack(packed) == states
    if system is COUNTERS:
        assert differences(plain, columns, states) == []


def test_a_search_over_several_words_finds_the_same_in_c_and_numpy() -> None:
    try:
        compiler()
    except NoCompilerError as error:
        pytest.skip(str(error))
    levels, _ = naive(PlainReading(COUNTERS, WIDE))
    found = explore(COUNTERS, WIDE, engine="compiled", deadlock=True)
    assert found.engine == "compiled"
    assert found == explore(COUNTERS, WIDE, engine="columns", deadlock=True)
    assert found.levels == tuple(map(len, levels))[: len(found.levels)]
    wrong = explore(trace(Hopeful), POINTERS, engine="compiled", limit_states=20_000)
    assert wrong.violation is not None
    again = explore(trace(Hopeful), POINTERS, engine="columns", limit_states=20_000)
    assert again.violation == wrong.violation


def test_rows_are_sets_ordered_by_their_last_word() -> None:
    rows = np.array([[2, 0], [1, 1], [0, 2], [1, 1], [256, 0]], dtype=np.uint64)
    ordered = distinct([rows[:2], rows[2:]])
    assert ordered.tolist() == [[2, 0], [256, 0], [1, 1], [0, 2]]
    assert (np.sort(keys(ordered)) == keys(ordered)).all()
    visited = Visited(2)
    visited.add(ordered[:1])
    visited.add(ordered[2:3])
    assert visited.without(ordered).tolist() == [[256, 0], [0, 2]]


@pytest.mark.parametrize("width", [1, 2])
def test_a_set_in_many_blocks_is_the_set_of_all_that_was_put_in(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(Visited, "BLOCK", 8)
    visited, known = Visited(width), set[int]()
    random = np.random.default_rng(7)
    for _ in range(30):
        numbers = sorted({*random.integers(0, 2_000, 40).tolist()})
        rows = np.array(numbers, dtype=np.uint64)
        words = rows if width == 1 else np.stack([rows % np.uint64(9), rows], axis=1)
        new = visited.without(words)
        there = (new if width == 1 else new[:, 1]).tolist()
        assert there == [number for number in numbers if number not in known]
        visited.add(new)
        known |= set(there)
        assert len(visited) == len(known)


def bytes_at_peak(blocks: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how many bytes a state a set of 400,000 takes at its peak, with so many blocks."""
    monkeypatch.setattr(Visited, "BLOCKS", blocks)
    words = np.arange(400_000, dtype=np.uint64)
    tracemalloc.start()
    visited = Visited(1)
    for start in range(20):
        visited.add(np.ascontiguousarray(words[start::20]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / len(visited)


def test_a_set_that_grows_is_never_held_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Visited, "BLOCK", 1 << 10)
    assert bytes_at_peak(Visited.BLOCKS, monkeypatch) < 10
    assert bytes_at_peak(1, monkeypatch) > 16


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_table_of_recent_states_holds_nothing_at_first(width: int) -> None:
    recent = Recent(width)
    zero = np.zeros(1 if width == 1 else (1, width), dtype=np.uint64)
    for words in (zero + np.uint64(1), zero):
        assert len(recent.unseen(words)) == 1
        assert len(recent.unseen(words)) == 0

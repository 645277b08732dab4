"""States of several words: the same states as in plain Python, and the same search in C."""

from __future__ import annotations

import numpy as np
import pytest

from brokerproof.models.language.columns import ColumnReading
from brokerproof.models.language.compiled import NoCompilerError, compiler
from brokerproof.models.language.explorer import explore
from brokerproof.models.language.model import System, trace
from brokerproof.models.language.plain import PlainReading
from brokerproof.models.language.scope import Scope
from brokerproof.models.language.word_sets import Recent, distinct, keys, merged, without
from brokerproof.models.pointer_queue import Entry, PointerQueue, Subscription
from tests.models.small_models import Counters, Item
from tests.models.test_explorer import Hopeful, naive
from tests.models.test_readings_agree import arbitrary, differences

COUNTERS = trace(Counters)
WIDE = Scope({Item: 5}, range(1 << 13), {"limit": 1})
POINTERS = Scope({Entry: 6, Subscription: 3}, range(1))


@pytest.mark.slow
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


@pytest.mark.slow
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
    visited = merged(keys(ordered[:1]), ordered[2:3])
    assert without(ordered, visited).tolist() == [[256, 0], [0, 2]]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_table_of_recent_states_holds_nothing_at_first(width: int) -> None:
    recent = Recent(width)
    zero = np.zeros(1 if width == 1 else (1, width), dtype=np.uint64)
    for words in (zero + np.uint64(1), zero):
        assert len(recent.unseen(words)) == 1
        assert len(recent.unseen(words)) == 0

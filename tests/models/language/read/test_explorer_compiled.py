"""The search in C against the one in NumPy and a naive one, and the search without a compiler."""

from __future__ import annotations

from functools import partial

import pytest

from brokerproof.models.language.core.model import ModelError, System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore import explorer
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.read import compiled
from brokerproof.models.language.read.c_text import SIGNS, CText
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.compiled import NoCompilerError, c_source, compiler
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription
from tests.models.language.explore.test_explorer import Hopeful, naive
from tests.models.small_models import Counters, Item, Place, Scales, Shelves, Unlimited

POINTERS = trace(PointerQueue)
COUNTERS = trace(Counters)
SHELVES = trace(Shelves)


@pytest.fixture
def _compiler() -> None:
    try:
        compiler()
    except NoCompilerError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(
    ("system", "scope"),
    [
        pytest.param(POINTERS, Scope({Entry: 3, Subscription: 1}, range(1)), id="pointers"),
        pytest.param(COUNTERS, Scope({Item: 2}, range(4)), id="counters"),
        pytest.param(COUNTERS, Scope({Item: 2}, range(-1, 3)), id="counters-negative"),
        pytest.param(COUNTERS, Scope({Item: 2}, range(300), {"limit": (2, 3)}), id="many-bits"),
        pytest.param(
            trace(Scales), Scope({Item: 3}, range(-2, 4), {"weight": (-1, 0, 2)}), id="scales"
        ),
        pytest.param(SHELVES, Scope({Item: 2, Place: 2}, range(1)), id="shelves"),
        pytest.param(
            SHELVES, Scope({Item: 2, Place: 3}, range(1), {"careful": 1, "hub": 0}), id="shelves-3"
        ),
    ],
)
def test_c_and_numpy_and_plain_python_count_the_same(system: System, scope: Scope) -> None:
    levels, firings = naive(PlainReading(system, scope))
    found = explore(system, scope, invariants=[], engine="compiled")
    assert found.engine == "compiled"
    assert found == explore(system, scope, invariants=[], engine="columns")
    assert found.levels == tuple(map(len, levels))
    assert found.firings == {act.name: firings[act.name] for act in system.actions}


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(
    ("system", "scope"),
    [
        pytest.param(trace(Hopeful), Scope({Entry: 3, Subscription: 2}, range(1)), id="pointers"),
        pytest.param(SHELVES, Scope({Item: 3, Place: 3}, range(1)), id="shelves"),
    ],
)
def test_the_counterexample_is_the_same(system: System, scope: Scope) -> None:
    found = explore(system, scope, engine="compiled")
    assert found.violation is not None
    assert found == explore(system, scope, engine="columns")


@pytest.mark.usefixtures("_compiler")
def test_a_search_is_handed_over_to_c_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    alone = explore(POINTERS, scope, engine="columns")
    monkeypatch.setattr(explorer, "COMPILE_FROM", 5_000)
    assert explore(POINTERS, scope).engine == "compiled"
    assert explore(POINTERS, scope) == alone
    for limit in (1, 100, 20_000):
        found = explore(POINTERS, scope, limit_states=limit, engine="compiled")
        assert found.states == limit
        assert found.incomplete == f"limit of {limit} states"
        assert found.levels[:-1] == alone.levels[: found.depth]


@pytest.mark.usefixtures("_compiler")
def test_an_integer_outside_of_the_scope_is_never_wrapped_in_c() -> None:
    with pytest.raises(ModelError, match="count becomes 4, outside of the scope's integers 0 to 3"):
        explore(trace(Unlimited), Scope({Item: 1}, range(4)), invariants=[], engine="compiled")


def without_compiler(monkeypatch: pytest.MonkeyPatch, path: str) -> Exploration:
    """Explore with no other compilers than those of a path."""
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    return explore(COUNTERS, Scope({Item: 2}, range(3)), engine="compiled")


def test_without_a_compiler_numpy_does_the_work_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CC", raising=False)
    found = without_compiler(monkeypatch, "")
    assert found.engine == "columns"
    assert found.note.startswith("no C compiler (cc, gcc, clang")
    assert found == explore(COUNTERS, Scope({Item: 2}, range(3)))


@pytest.mark.parametrize("command", ["false", "no-such-compiler"])
def test_a_compiler_that_fails_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CC", command)
    found = explore(COUNTERS, Scope({Item: 2}, range(3)), engine="compiled")
    assert found.engine == "columns"
    assert found.note.startswith(f"{command} did not compile")


def test_all_that_a_guard_says_of_single_cells_is_one_comparison() -> None:
    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    source = c_source(ColumnReading(POINTERS, scope), set())
    acknowledge = source.count("search->firings[7]++")
    assert acknowledge == 6
    expand = source[source.index("expand(struct") : source.index("broken(const")]
    assert "w0 & " in expand.split("firings[7]++")[0].rsplit("do {", 1)[1]


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("operator", "wrong"), [("and", "|"), ("or", "&"), ("less", "<=")])
def test_one_wrong_operator_in_c_is_noticed(
    monkeypatch: pytest.MonkeyPatch, operator: str, wrong: str
) -> None:
    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    expected = explore(POINTERS, scope, engine="columns")
    monkeypatch.setattr(compiled, "CText", partial(CText, signs={**SIGNS, operator: wrong}))
    assert explore(POINTERS, scope, engine="compiled") != expected

"""Deadlocks, traces as ITF, and models in files of the user's own."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import networkx as nx
import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands import explore as explore_command
from brokerproof.checks.commands.options import model_argument
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope, Value
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.explore.explorer import NO_DEADLOCK, Engine, explore
from brokerproof.models.language.explore.itf import itf
from brokerproof.models.language.read.compiled import NoCompilerError, compiler
from tests.models.small_models import Counters, Item

BUCKETS = '''
from __future__ import annotations
from brokerproof.models.language import *

class Bucket(Family):
    """Holds a drop or not."""

class Buckets(Model):
    full: Map[Bucket, Bool]

    @initial
    def dry(self) -> None:
        self.full.fill(False)

    @action
    def fill(self, bucket: Bucket) -> None:
        require(~self.full[bucket])
        self.full[bucket] = True

    @invariant("one-is-empty")
    def one_is_empty(self) -> Bool:
        return exists(Bucket, lambda b: ~self.full[b])
'''


@pytest.mark.parametrize("engine", ["columns", "compiled"])
def test_a_state_without_a_successor_is_found_where_that_is_asked_for(engine: Engine) -> None:
    if engine == "compiled":
        try:
            compiler()
        except NoCompilerError as error:
            pytest.skip(str(error))
    scope = Scope({Item: 2}, range(3), {"limit": 1})
    system = trace(Counters)
    assert explore(system, scope, engine=engine).violation is None
    found = explore(system, scope, engine=engine, deadlock=True)
    assert found.violation is not None
    assert found.violation.invariant == NO_DEADLOCK
    assert [step.action for step in found.violation.trace[1:]] == ["begin", "increment"] * 2
    assert found == explore(system, scope, engine="columns", deadlock=True)


def test_a_trace_as_itf_has_maps_tuples_and_whole_numbers() -> None:
    state: dict[str, Value] = {"up[a]": True, "up[b]": False, "near[a, b]": 3, "here": "RED"}
    text = itf(
        [Step("", {}, state), Step("go", {"consumer": "a"}, state)], model="m", description="d"
    )
    document = json.loads(text)
    assert document["#meta"]["format"] == "ITF"
    assert document["vars"] == ["up", "near", "here"]
    first, second = document["states"]
    assert first["up"] == {"#map": [["a", True], ["b", False]]}
    assert first["near"] == {"#map": [[{"#tup": ["a", "b"]}, {"#bigint": "3"}]]}
    assert first["here"] == "RED"
    assert second["#meta"] == {"index": 1, "action": "go", "arguments": {"consumer": "a"}}


@pytest.fixture
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with a model; its models leave the catalogue at the end."""
    monkeypatch.setattr(model_argument, "CATALOGUE", table := dict(CATALOGUE))
    monkeypatch.setattr(explore_command, "CATALOGUE", table)
    path = tmp_path / "buckets.py"
    path.write_text(BUCKETS, encoding="utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(explore_command.explore, arguments)


def test_a_model_in_a_file_is_explored_and_its_violation_written(buckets: Path) -> None:
    out = buckets.with_suffix(".itf.json")
    result = run(f"{buckets}:Buckets", "--size", "3", "--itf", str(out))
    assert result.exit_code == 1
    assert "  broken: one-is-empty, after 3 steps and no fewer" in result.output
    states = json.loads(out.read_text(encoding="utf-8"))["states"]
    assert [state["#meta"].get("action") for state in states] == [None, "fill", "fill", "fill"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("{}:Nothing", "has no model Nothing: it has Buckets"),
        ("{}x.py:Buckets", "there is no file"),
        ("{}", "it has Buckets"),
    ],
)
def test_a_file_without_the_model_is_one_clear_line(
    buckets: Path, name: str, complaint: str
) -> None:
    result = run(name.format(buckets))
    assert result.exit_code == 2
    assert complaint in result.output.replace("\n", " ")


def test_a_file_that_does_not_load_says_why(buckets: Path) -> None:
    buckets.write_text("1 / 0\n", encoding="utf-8")
    result = run(f"{buckets}:Buckets")
    assert result.exit_code == 2
    assert "does not load: ZeroDivisionError" in result.output


def documented() -> list[str]:
    """Return the Python texts of the page, in their order."""
    page = Path(__file__).parents[4] / "docs" / "guide" / "explorer.md"
    parts = page.read_text(encoding="utf-8").split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


def test_the_model_in_the_documentation_does_what_is_said(buckets: Path) -> None:
    buckets.write_text(documented()[0], encoding="utf-8")
    result = run(f"{buckets}:Mutex", "--size", "3")
    assert result.exit_code == 0
    assert "  states       4\n" in result.output


def test_the_use_from_python_in_the_documentation_prints_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, use = documented()[:2]
    (tmp_path / "mutex.py").write_text(model, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    there: dict[str, object] = {}
    try:
        exec(compile(use, "docs/guide/explorer.md", "exec"), there)  # noqa: S102 (it is our own page)
    finally:
        sys.modules.pop("mutex", None)
    said = re.findall(r"^print.*# (.*)$", use, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == [said[0], said[1].partition(",")[0]]
    states = there["states"]
    assert isinstance(states, nx.MultiDiGraph)
    assert states.number_of_nodes() == 4


def test_the_promise_in_the_documentation_is_broken_as_is_said(buckets: Path) -> None:
    buckets.write_text(documented()[2], encoding="utf-8")
    result = run(f"{buckets}:Restaurant")
    assert result.exit_code == 1
    page = Path(__file__).parents[4] / "docs" / "guide" / "explorer.md"
    shown = result.output[result.output.index("  broken: each-waiting-guest-eats") :]
    assert f"```\n{shown}```" in page.read_text(encoding="utf-8")

"""Graphs of small explorations have each state and transition once, in DOT and in SVG."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import networkx as nx
import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.explore import explore as explore_command
from brokerproof.models.language import Bool, forall, invariant
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.graphs import BROKEN, graph
from tests.models.small_models import Counters, Item

COUNTERS = trace(Counters)
SCOPE = Scope({Item: 2}, range(3), {"limit": (1, 2)})


def test_the_graph_has_what_the_explorer_counts() -> None:
    drawn, found = graph(COUNTERS, SCOPE), explore(COUNTERS, SCOPE)
    assert len(drawn.states) == found.states
    assert len(drawn.arrows) == found.transitions
    assert drawn.depths.count(1) == found.levels[1]
    assert {arrow.action for arrow in drawn.arrows} == set(found.firings)


def test_dot_has_a_line_for_each_state_and_each_transition() -> None:
    drawn = graph(COUNTERS, SCOPE)
    lines = drawn.dot().splitlines()
    assert sum(" -> " in line for line in lines) == len(drawn.arrows)
    assert sum(line.startswith("  s") and " -> " not in line for line in lines) == len(drawn.states)
    assert '[label="begin(item=item0)"];' in drawn.dot()


def test_svg_is_xml_with_a_circle_for_each_state() -> None:
    drawn = graph(COUNTERS, SCOPE)
    root = ET.fromstring(drawn.svg())  # noqa: S314  it is our own
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[: len(drawn.states)] == [str(number) for number in range(len(drawn.states))]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == len(drawn.arrows)


def test_a_graph_of_too_many_states_is_refused() -> None:
    with pytest.raises(ModelError, match="a graph of more than 5 states: make the scope smaller"):
        graph(COUNTERS, SCOPE, states_max=5)


def test_networkx_gets_the_same_graph() -> None:
    drawn = graph(COUNTERS, SCOPE)
    there = drawn.networkx()
    assert (there.number_of_nodes(), there.number_of_edges()) == (
        len(drawn.states),
        len(drawn.arrows),
    )
    found = explore(COUNTERS, SCOPE)
    distances = nx.single_source_shortest_path_length(there, 0)
    assert nx.get_node_attributes(there, "depth") == distances
    assert max(distances.values()) == found.depth
    actions = Counter(name for _, _, name in there.edges(data="action"))
    assert actions == found.firings


def test_the_command_writes_dot_and_svg(tmp_path: Path) -> None:
    dot, svg = tmp_path / "states.dot", tmp_path / "states.svg"
    result = CliRunner().invoke(
        explore_command, ["pointer-queue", "--size", "1", "--dot", str(dot), "--svg", str(svg)]
    )
    assert result.exit_code == 3, "with one entry little can happen"
    assert dot.read_text(encoding="utf-8").startswith("digraph")
    assert svg.read_text(encoding="utf-8").startswith("<svg")


class Limited(Counters):
    """States a limit that is too low."""

    @invariant("nothing-above-one")
    def low(self) -> Bool:
        """Wrong where the limit is two."""
        return forall(Item, lambda i: self.count[i] < 2)


def test_states_that_break_an_invariant_are_marked() -> None:
    drawn = graph(trace(Limited), SCOPE)
    wrong = {n for n, s in enumerate(drawn.states) if 2 in (s["count[item0]"], s["count[item1]"])}
    assert wrong
    assert {n for n, broken in enumerate(drawn.broken) if broken} == wrong
    assert {drawn.broken[n] for n in wrong} == {("nothing-above-one",)}
    assert drawn.svg().count(BROKEN) == len(wrong) + 1, "and the key"
    assert ">breaks nothing-above-one</text>" in drawn.svg()
    assert drawn.dot().count(BROKEN) == len(wrong)
    assert BROKEN not in graph(COUNTERS, SCOPE).svg()


def test_the_command_says_when_there_is_too_much_to_draw(tmp_path: Path) -> None:
    path = tmp_path / "states.svg"
    result = CliRunner().invoke(explore_command, ["pointer-queue", "--svg", str(path)])
    assert result.exit_code == 2
    assert "a graph of more than 500 states" in result.output
    assert not path.exists()

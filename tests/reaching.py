"""Which test files reach a file of the tree by what they import."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[1]
ROOMS = ("spec", "models", "reference", "candidates", "checks", "pipeline")
OTHERS = ("tests", "examples", "benchmarks")


def reaching(target: Path) -> frozenset[Path]:
    """Return the test files whose imports lead to a file; raises `ValueError` where none can."""
    graph, files = _graph()
    names = {path: name for name, path in files.items()}
    if target.resolve() not in names:
        raise ValueError(f"{target} is no module of {', '.join((*ROOMS, *OTHERS))}")
    name = names[target.resolve()]
    found = {name, *nx.ancestors(graph, name)}
    return frozenset(files[each] for each in found if files[each].name.startswith("test_"))


@functools.cache
def _graph() -> tuple[nx.DiGraph[str], dict[str, Path]]:
    """Return which module imports which, anywhere in its text, and the file of each."""
    files = {}
    for room in (*ROOMS, *OTHERS):
        for path in (ROOT / room).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            package = ("brokerproof",) if room in ROOMS else ()
            files[".".join((*package, *parts)).removesuffix(".__init__")] = path
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                graph.add_edges_from((name, n.name) for n in node.names if n.name in files)
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = [f"{node.module}.{n.name}" for n in node.names]
                used = {each if each in files else node.module for each in whole}
                graph.add_edges_from((name, each) for each in used if each in files)
    return graph, files

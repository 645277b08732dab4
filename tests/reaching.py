"""Which test files reach a file of the tree by what they import."""

from __future__ import annotations

import functools
from pathlib import Path

import networkx as nx

from tests.house.imports import DISTRIBUTION, MAY_IMPORT, SYSTEMS, import_graph

ROOT = Path(__file__).parents[1]
FOLDERS = (*MAY_IMPORT, "tests", "examples", "benchmarks")


def reaching(target: Path) -> frozenset[Path]:
    """Return the test files whose imports lead to a file; raises `ValueError` where none can.

    A broker loads every documented system and runs one. So a file in a system's folder reaches no
    test in the folder of another.
    """
    graph, files = _graph()
    names = {path: name for name, path in files.items()}
    if target.resolve() not in names:
        raise ValueError(f"{target} is no module of {', '.join(FOLDERS)}")
    name = names[target.resolve()]
    found = {name, *nx.ancestors(graph, name)}
    tests = (files[each] for each in found if files[each].name.startswith("test_"))
    own = SYSTEMS.intersection(name.split(".")) if name.startswith(DISTRIBUTION) else None
    return frozenset(
        each for each in tests if not own or not SYSTEMS.intersection(each.parts) - own
    )


@functools.cache
def _graph() -> tuple[nx.DiGraph[str], dict[str, Path]]:
    return import_graph(ROOT, *FOLDERS)

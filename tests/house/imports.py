"""The imports of a tree as a graph, for the rules of the house and for `--reaching`."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DISTRIBUTION = "brokerproof"
SYSTEMS = frozenset(("qpid", "rabbitmq", "activemq"))
"""The folders of documented systems."""

MAY_IMPORT: dict[str, frozenset[str]] = {
    "spec": frozenset(),
    "models": frozenset({"spec"}),
    "reference": frozenset({"spec"}),
    "candidates": frozenset({"spec"}),
    "checks": frozenset({"spec", "models", "reference", "candidates"}),
    "pipeline": frozenset({"spec", "models", "candidates", "checks"}),
}
"""Which rooms each room may import besides itself; the root package may import anything."""

FLOORS: dict[str, tuple[str, ...]] = {
    "spec": (
        "catalogues earliest histories messages nearest systems",
        "inspection requirements",
        "activemq invariants qpid rabbitmq",
        "protocol",
    ),
    "models": (
        "language",
        "contract projections",
        "qpid",
        "activemq rabbitmq",
        "catalogue",
        "refinements",
    ),
    "reference": (
        "shared",
        "front",
        "activemq qpid rabbitmq",
        "settings",
        "systems",
        "broker",
        "durable_broker",
        "addresses",
    ),
    "candidates": (
        "crash_commands signals unavailable",
        "extras wire",
        "amqp091 python_object stomp uninterrupted",
        "amqp10",
        "driver instances",
    ),
    "checks": (
        "trace",
        "workers",
        "conversation",
        "core_profile inside",
        "oracle",
        "search",
        "crash verdicts",
        "subjects",
        "errors threads",
        "gate",
        "report",
        "replay",
        "commands",
    ),
    "pipeline": (
        "names tables",
        "dominance",
        "readers recording",
        "intervals",
        "results",
        "rules",
        "history_page stages",
        "alone",
        "parts",
        "explain processes spark watch",
        "campaign rounds",
        "commands",
    ),
}
"""The folders and modules of a room from the lowest floor up; those of one floor are apart."""


def drawing() -> str:
    """Draw the floors of each room, the lowest first."""
    lines = (f"{room:<12}{'  <  '.join(floors)}" for room, floors in FLOORS.items())
    return "\n".join(lines)


class Import(NamedTuple):
    """One imported module, absolute, and the line that imports it."""

    module: str
    line: int


def python_files(root: Path, *folders: str) -> Iterator[Path]:
    """Yield the Python files below `folders` of `root`, of all that are there."""
    for folder in folders:
        if (root / folder).is_dir():
            yield from sorted((root / folder).rglob("*.py"))


def rooms(root: Path) -> list[str]:
    """Return the folders that are mounted below the root package."""
    return [room for room in MAY_IMPORT if (root / room).is_dir()]


def package_of(path: Path, root: Path) -> str:
    """Return the package of a file, such as ``brokerproof.models.language`` or ``tests.models``."""
    parts = path.parent.relative_to(root).parts
    return ".".join((DISTRIBUTION, *parts) if parts[0] in MAY_IMPORT else parts)


def imports_of(path: Path, package: str, *, loading: bool = False) -> Sequence[Import]:
    """Return what the file imports, or only what it needs while `loading`.

    A relative import counts from `package`, its own. ``from a import b`` may import the module
    ``a.b`` or a name of ``a``: both are given as ``a.b``.
    """
    found = path.stat()
    return _imports(path, package, loading, found.st_mtime_ns, found.st_size)


@functools.cache
def _imports(
    path: Path, package: str, loading: bool, _changed_ns: int, _size_bytes: int
) -> Sequence[Import]:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    found = []
    for node in tree.body if loading else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(name.name, node.lineno) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            found += [Import(f"{base}.{name.name}", node.lineno) for name in node.names]
    return found


def import_graph(
    root: Path, *folders: str, loading: bool = False
) -> tuple[nx.DiGraph[str], dict[str, Path]]:
    """Return which module of the folders imports which, and the file of each module."""
    files = {
        f"{package_of(path, root)}.{path.stem}".removesuffix(".__init__"): path
        for path in python_files(root, *folders)
    }
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        for module, _ in imports_of(path, package_of(path, root), loading=loading):
            known = module if module in files else module.rpartition(".")[0]
            if known in files and known != name:
                graph.add_edge(name, known)
    return graph, files

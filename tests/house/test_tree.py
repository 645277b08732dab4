"""The tree is what the architecture says: packages listed, imports downwards, nothing overlong.

Each rule is a function from a root to complaints, ``path:line: what is wrong``. It is held against
this tree, where it must find nothing, and against a small broken one, where it must find the fault:
a rule that cannot fail is no rule.
"""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING

import networkx as nx
import pytest

from tests.house.imports import (
    DISTRIBUTION,
    FLOORS,
    MAY_IMPORT,
    SYSTEMS,
    drawing,
    import_graph,
    imports_of,
    package_of,
    python_files,
    rooms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROOT_FOLDER = "package"

RETIRED = {
    "Book": "Bindings",
    "Standing": "OracleState",
    "Standings": "StepCache",
    "Taker": "Subscriber",
    "Told": "Exchange",
    "Asked": "Request",
    "Scribe": "Translator",
    "Judged": "what is judged",
}
"""Class names that meant several things, with the term of the field."""

VERSION = f"{DISTRIBUTION}.version"
FUNCTION_LINES_MAX = 60
CLASS_LINES_MAX = 300
SMALL_MODULE_LINES = 80
SMALL_FOR = {
    "a structure of a document": """
        reference/activemq/exclusive.py reference/qpid/push/priority_list.py
        reference/qpid/push/stealing.py reference/rabbitmq/paging/ram_acks.py
        reference/rabbitmq/process/consumer_line.py""",
    "what is done to a system's queue, besides its algorithm": """
        reference/activemq/fingerprints.py reference/rabbitmq/paging/invariants.py
        reference/rabbitmq/process/inspection.py""",
    "how one product is started": """
        candidates/instances/activemq.py candidates/instances/artemis.py
        candidates/instances/coilmq.py candidates/instances/garagemq.py""",
    "one form of files": """
        models/language/explore/itf.py pipeline/readers/parquet.py""",
    "its importer has an idea of its own": """
        candidates/driver/claims.py checks/core_profile.py checks/gate/departures.py
        checks/gate/stated.py
        checks/inside/views.py checks/trace/ordering.py
        models/language/core/well_formed.py models/language/explore/memory.py
        pipeline/rounds/threads.py reference/addresses.py
        reference/front/registrations.py""",
    "statements, apart from the actions that they are about": """
        models/contract/jobs_invariants.py models/rabbitmq/paging_index_tables.py""",
    "a list that joins several folders": "checks/report/forms.py",
}
"""The small modules that one other imports, by the reason why they are apart."""
LONG_CLASSES = {
    "Bindings": 430,
    "Broker": 440,
    "ChannelCredit": 360,
    "Contract": 390,
    "CursorQueue": 420,
    "DriverCandidate": 310,
    "HistoryOfContract": 395,
    "PagingIndex": 370,
    "PagingReduction": 380,
    "PullQueue": 375,
    "VariableQueue": 380,
    "WireCandidate": 432,
    "WholeContract": 395,
}
"""Longer classes, which may only become shorter."""
FOLDER_FILES_MAX = 15


def unlisted_packages(root: Path) -> Iterator[str]:
    """Complain about packages that a wheel would lack, or whose types users would not get."""
    setuptools = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    listed, mapped = set(setuptools["packages"]), setuptools["package-dir"]
    found = set()
    for folder in sorted({path.parent for path in python_files(root, ROOT_FOLDER, *rooms(root))}):
        where = folder.relative_to(root)
        in_root = where.parts[0] == ROOT_FOLDER
        name = ".".join((DISTRIBUTION, *(where.parts[1:] if in_root else where.parts)))
        found.add(name)
        if not (folder / "__init__.py").is_file():
            yield f"{where}: has Python files and no __init__.py"
        if len(where.parts) == 1 and in_root and not (folder / "py.typed").is_file():
            yield f"{where}: has no py.typed"
        if name not in listed:
            yield f"pyproject.toml: packages lacks {name}"
        if len(where.parts) == 1 and mapped.get(name) != str(where):
            yield f"pyproject.toml: package-dir does not map {name} to {where}"
    for name in sorted(listed - found):
        yield f"pyproject.toml: packages names {name}, which does not exist"


def imports_up(root: Path) -> Iterator[str]:
    """Complain about imports of a room that does not lie below the importing one."""
    for room in rooms(root):
        for path in python_files(root, room):
            for module, line in imports_of(path, package_of(path, root)):
                if module.split(".")[0] != DISTRIBUTION:
                    continue
                target = (*module.split("."), "")[1]
                is_version = room != "spec" and f"{module}.".startswith(f"{VERSION}.")
                if target != room and target not in MAY_IMPORT[room] and not is_version:
                    yield f"{path.relative_to(root)}:{line}: {room} may not import {module}"


def imports_up_the_floors(root: Path) -> Iterator[str]:
    """Complain about imports within a room that lead to a higher floor, or across one."""
    for room, floors in FLOORS.items():
        level = {name: number for number, names in enumerate(floors) for name in names.split()}
        for path in python_files(root, room):
            own = path.relative_to(root / room).parts[0].removesuffix(".py")
            for module, line in imports_of(path, package_of(path, root)):
                parts = (*module.split("."), "", "", "")
                target = parts[2]
                if parts[:2] != (DISTRIBUTION, room) or own in ("__init__", target):
                    continue
                where = path.relative_to(root)
                if own not in level and target in level:
                    yield f"{where}:{line}: {own} has no floor in {room}"
                elif own in level and level.get(target, len(floors)) >= level[own]:
                    yield f"{where}:{line}: {own} may not import {target}, which is no floor below"


def small_modules_of_one(root: Path) -> Iterator[str]:
    """Complain about small modules that one other imports, without a reason."""
    known = {path for paths in SMALL_FOR.values() for path in paths.split()}
    for path in sorted(small_modules(root) - known):
        yield f"{path}: one other module imports it, and it is small; join them, or say why not"


def small_modules(root: Path) -> set[str]:
    """Return the modules with few lines that one other imports."""
    graph, files = import_graph(root, *rooms(root))
    return {
        path.relative_to(root).as_posix()
        for name, path in files.items()
        if path.name != "__init__.py"
        and graph.in_degree(name) == 1
        and len(path.read_text("utf-8").splitlines()) < SMALL_MODULE_LINES
    }


def judges_that_know_a_system(root: Path) -> Iterator[str]:
    """Complain about checks that import a documented system: a judge never runs the judged."""
    for path in python_files(root, "checks"):
        for module, line in imports_of(path, package_of(path, root)):
            _, room, *inside = (*module.split("."), "", "")
            systems = SYSTEMS.intersection(inside)
            if systems and room in {"spec", "models", "reference"}:
                where = path.relative_to(root)
                yield f"{where}:{line}: checks may not import {module}, of {min(systems)}"


def unclear_class_names(root: Path) -> Iterator[str]:
    """Complain about retired class names, and names that mean two things in one folder.

    A model has families and enumerations of its own, and a starter file stands alone.
    """
    for folder in sorted({path.parent for path in python_files(root, *rooms(root))}):
        known: dict[str, str] = {}
        for path in sorted(folder.glob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if not isinstance(node, ast.ClassDef) or folder.name == "starters":
                    continue
                place, name = f"{path.relative_to(root)}:{node.lineno}", node.name
                if name in RETIRED:
                    yield f"{place}: write {RETIRED[name]}, not {name}"
                if {ast.unparse(base) for base in node.bases} & {"Family", "Enumeration"}:
                    continue
                if name in known and not name.startswith("_"):
                    yield f"{place}: {name} is also a class of {known[name]}"
                known[name] = path.name


def imports_by_short_name(root: Path) -> Iterator[str]:
    """Complain about rooms imported by the name of their folder, which loads a module twice."""
    everywhere = (ROOT_FOLDER, *rooms(root), "tests", "examples", "benchmarks", "docs")
    for path in python_files(root, *everywhere):
        for module, line in imports_of(path, package_of(path, root)):
            if (room := module.split(".")[0]) in MAY_IMPORT:
                where = path.relative_to(root)
                yield f"{where}:{line}: import {DISTRIBUTION}.{room}, not {room}"


def undocumented_folders(root: Path) -> Iterator[str]:
    """Complain about packages that do not say what belongs into them."""
    for path in python_files(root, ROOT_FOLDER, *rooms(root)):
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text())):
            yield f"{path.relative_to(root)}:1: say what belongs here, and what does not"


def overlong_definitions(root: Path) -> Iterator[str]:
    """Complain about functions and classes that are too long to be read to the end."""
    for path in python_files(root, ROOT_FOLDER, *rooms(root)):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            assert node.end_lineno is not None
            lines, limit = node.end_lineno - node.lineno + 1, FUNCTION_LINES_MAX
            if isinstance(node, ast.ClassDef):
                limit = LONG_CLASSES.get(node.name, CLASS_LINES_MAX)
            if lines > limit:
                where = path.relative_to(root)
                yield f"{where}:{node.lineno}: {node.name} has {lines} lines; split it"


def import_cycles(root: Path) -> Iterator[str]:
    """Complain about modules that need each other while they are loaded."""
    graph, files = import_graph(root, *rooms(root), loading=True)
    for cycle in nx.strongly_connected_components(graph):
        if len(cycle) > 1:
            yield f"{files[min(cycle)].relative_to(root)}:1: a cycle: {', '.join(sorted(cycle))}"


def full_folders(root: Path) -> Iterator[str]:
    """Complain about folders of the distribution with more files than fit on a screen."""
    for folder in sorted({path.parent for path in python_files(root, *rooms(root))}):
        files = [path for path in folder.iterdir() if path.is_file() and path.name != "__init__.py"]
        if len(files) > FOLDER_FILES_MAX:
            yield f"{folder.relative_to(root)}: {len(files)} files, more than {FOLDER_FILES_MAX}"


def broken_links(root: Path) -> Iterator[str]:
    """Complain about links of a page to a file that is not there."""
    for path in sorted(
        [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/*.md")]
    ):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)", line):
                if not (path.parent / target).exists():
                    yield f"{path.relative_to(root)}:{number}: there is no {target}"


RULES = (
    unlisted_packages,
    imports_up,
    imports_up_the_floors,
    judges_that_know_a_system,
    unclear_class_names,
    imports_by_short_name,
    undocumented_folders,
    overlong_definitions,
    import_cycles,
    full_folders,
    small_modules_of_one,
    broken_links,
)


@pytest.mark.parametrize("rule", RULES)
def test_the_tree_keeps_the_rule(rule: Callable[[Path], Iterator[str]], house: Path) -> None:
    assert list(rule(house)) == []


SOUND = {
    "pyproject.toml": """
        [tool.setuptools]
        packages = ["brokerproof", "brokerproof.spec", "brokerproof.models"]
        [tool.setuptools.package-dir]
        "brokerproof" = "package"
        "brokerproof.spec" = "spec"
        "brokerproof.models" = "models"
        """,
    "package/__init__.py": '"""Root."""\nfrom brokerproof.models.queue import Queue\n',
    "package/py.typed": "",
    "spec/__init__.py": '"""Spec."""\n',
    "spec/words.py": "import json\nfrom brokerproof.spec import other\nfrom . import another\n",
    "models/__init__.py": '"""Models."""\nfrom brokerproof.spec.words import Word\n',
    "models/queue.py": "from brokerproof.spec.words import Word\nimport brokerproof.version\n",
    "models/first.py": '"""First."""\n',
    "README.md": "[The words](spec/words.py), [elsewhere](https://example.org).\n",
    "tests/spec/test_words.py": "from brokerproof.spec.words import Word\n",
}
"""A small tree that keeps every rule."""

LONG_FUNCTION = "def long():\n" + "    pass\n" * FUNCTION_LINES_MAX


def complaints(tree: dict[str, str], root: Path) -> list[str]:
    """Return what all rules say about `tree`, written to `root`."""
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [complaint for rule in RULES for complaint in rule(root)]


def test_a_sound_tree_has_no_complaints(tmp_path: Path) -> None:
    assert complaints(SOUND, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("models/deep/__init__.py", '"""Deep."""', "packages lacks brokerproof.models.deep"),
        ("models/deep/queue.py", "", "models/deep: has Python files and no __init__.py"),
        ("checks/__init__.py", '"""Checks."""', "does not map brokerproof.checks to checks"),
        ("spec/words.py", "import brokerproof.models", "spec/words.py:1: spec may not import"),
        ("spec/words.py", "from brokerproof import models", "spec may not import"),
        ("spec/words.py", "\nfrom ..models import queue", "spec/words.py:2: spec may not import"),
        ("spec/words.py", "from .. import models", "spec may not import"),
        ("spec/words.py", "import brokerproof.version", "spec may not import"),
        ("models/queue.py", "from brokerproof import Queue", "models may not import"),
        ("models/queue.py", "import brokerproof", "models may not import brokerproof"),
        (
            "models/queue.py",
            "if 1:\n  def f():\n    from brokerproof.checks import x",
            "queue.py:3",
        ),
        (
            "checks/gate/gate.py",
            "def f():\n  from brokerproof.spec.qpid.view import View",
            "checks/gate/gate.py:2: checks may not import brokerproof.spec.qpid.view.View, of qpid",
        ),
        (
            "pipeline/readers/rows.py",
            "if TYPE_CHECKING:\n  from brokerproof.pipeline.rules import table",
            "pipeline/readers/rows.py:2: readers may not import rules",
        ),
        (
            "pipeline/watch/state.py",
            "from brokerproof.pipeline.spark.on_spark import OnSpark",
            "watch may not import spark",
        ),
        (
            "checks/new.py",
            "from brokerproof.checks.gate import stated",
            "checks/new.py:1: new has no floor in checks",
        ),
        ("models/queue.py", "import spec", "models/queue.py:1: import brokerproof.spec, not spec"),
        ("tests/test_it.py", "from models.queue import Queue", "not models"),
        ("examples/box.py", "import spec.words as words", "not spec"),
        ("benchmarks/speed.py", "from checks import gate", "not checks"),
        ("models/queue.py", "class Told:\n    pass", "queue.py:1: write Exchange, not Told"),
        (
            "models/words.py",
            "class Queue:\n    pass\n\n\nclass Queue:\n    pass",
            "words.py:5: Queue is also a class of words.py",
        ),
        ("spec/__init__.py", "", "say what belongs here"),
        ("spec/words.py", "class A:\n" + "    a = 1\n" * CLASS_LINES_MAX, "A has 301 lines"),
        (
            "models/second.py",
            "from brokerproof.models.first import One",
            "models/first.py: one other module imports it",
        ),
        ("docs/page.md", "See [it](other.md#here).", "docs/page.md:1: there is no other.md"),
        ("spec/words.py", LONG_FUNCTION, "long has 61 lines"),
        ("spec/words.py", f"class A:\n  async {LONG_FUNCTION[:-1]}", "long has 61 lines"),
    ],
)
def test_a_broken_tree_is_found_out(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    found = complaints({**SOUND, name: text}, tmp_path)
    assert any(complaint in line for line in found), found


def test_modules_that_need_each_other_are_found_out(tmp_path: Path) -> None:
    one, other = "import brokerproof.models.other", "from brokerproof.models import queue"
    tree = {**SOUND, "models/queue.py": one, "models/other.py": other}
    assert any("models/other.py:1: a cycle" in line for line in complaints(tree, tmp_path))
    later = {**tree, "models/other.py": f"def f():\n    {other}"}
    assert not any("a cycle" in line for line in complaints(later, tmp_path))


def test_the_page_draws_the_floors_as_they_are(house: Path) -> None:
    assert drawing() in (house / "ARCHITECTURE.md").read_text()


def test_each_reason_for_a_small_module_is_needed(house: Path) -> None:
    assert {path for paths in SMALL_FOR.values() for path in paths.split()} <= small_modules(house)


def test_a_folder_that_is_too_full_is_found_out(tmp_path: Path) -> None:
    tree = {**SOUND, **{f"spec/words{n}.py": "" for n in range(FOLDER_FILES_MAX)}}
    assert complaints(tree, tmp_path) == ["spec: 16 files, more than 15"]


def test_a_distribution_without_types_is_found_out(tmp_path: Path) -> None:
    tree = {name: text for name, text in SOUND.items() if name != "package/py.typed"}
    assert complaints(tree, tmp_path) == ["package: has no py.typed"]


def test_a_package_that_does_not_exist_is_found_out(tmp_path: Path) -> None:
    tree = {name: text for name, text in SOUND.items() if not name.startswith("models/")}
    assert any("brokerproof.models, which does not exist" in c for c in complaints(tree, tmp_path))

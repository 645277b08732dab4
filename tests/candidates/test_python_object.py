"""Objects in this process: found and asked, or refused in one line that says what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.python_object import load_python_object, starting
from brokerproof.candidates.unavailable import REASON_CHARACTERS_MAX, CandidateUnavailable
from brokerproof.spec.protocol.answers import OK
from brokerproof.spec.protocol.operations import Reset

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
from brokerproof.spec.protocol.answers import OK
from brokerproof.spec.protocol.capabilities import Capabilities, Hello


class Box:
    def hello(self):
        return Hello(name="box", version="1", capabilities=Capabilities())

    def handle(self, operation):
        return OK
"""


@pytest.fixture(autouse=True)
def _own_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test its own working folder, and take back what it put on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def refusal(target: str) -> str:
    """Return why `target` cannot be had, having checked that it is one line that names it."""
    with pytest.raises(CandidateUnavailable) as caught:
        load_python_object(target)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(target)
    assert caught.value.remedy
    return line


def write(folder: Path, text: str, name: str = "box.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_factory_in_a_file_makes_a_candidate(tmp_path: Path) -> None:
    candidate = load_python_object(f"{write(tmp_path, GOOD)}:Box")
    assert candidate.hello().name == "box"
    assert candidate.handle(Reset()) == OK


def test_a_module_in_the_working_folder_is_found(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "box_in_the_working_folder.py")
    assert load_python_object("box_in_the_working_folder:Box").hello().version == "1"


def test_a_file_may_import_its_neighbours_and_does_not_hide_the_library(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "neighbour_of_queue.py")
    path = write(
        tmp_path,
        "import queue\nassert queue.Queue\nfrom neighbour_of_queue import Box\n",
        "queue.py",
    )
    assert load_python_object(f"{path}:Box").hello().name == "box"
    assert sys.modules["queue"].__file__ != path


def test_the_factory_may_be_an_attribute_of_a_class(tmp_path: Path) -> None:
    path = write(tmp_path, f"{GOOD}\n    @classmethod\n    def make(cls):\n        return cls()\n")
    assert load_python_object(f"{path}:Box.make").hello().name == "box"


@pytest.mark.parametrize("target", ["box", "box:", ":Box"])
def test_a_target_must_name_a_factory(target: str) -> None:
    assert "package.module:factory" in refusal(target)


def test_a_missing_module_is_named() -> None:
    assert "no module 'no_such_package'" in refusal("no_such_package.queue:make")


def test_a_missing_file_is_named() -> None:
    assert "no file nowhere/box.py" in refusal("nowhere/box.py:Box")


def test_a_missing_import_of_the_candidate_is_its_own_failure(tmp_path: Path) -> None:
    write(tmp_path, "import no_such_library\n", "box_without_library.py")
    line = refusal("box_without_library:Box")
    assert "importing box_without_library failed" in line
    assert "no_such_library" in line


@pytest.mark.parametrize(
    "text", ["raise RuntimeError('two\\nlines')", "import sys; sys.exit(3)", "def ("]
)
def test_a_file_that_fails_while_it_is_imported_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert "failed with" in refusal(f"{path}:Box")


def test_a_missing_factory_is_named(tmp_path: Path) -> None:
    assert "'Bax' is not defined there" in refusal(f"{write(tmp_path, GOOD)}:Bax")


def test_a_factory_must_be_callable(tmp_path: Path) -> None:
    assert "cannot be called" in refusal(f"{write(tmp_path, 'Box = 3')}:Box")


def test_a_factory_that_fails_is_refused_and_its_error_is_chained(tmp_path: Path) -> None:
    path = write(tmp_path, "def make():\n    raise KeyError('x' * 1000)\n")
    with pytest.raises(CandidateUnavailable) as caught:
        load_python_object(f"{path}:make")
    assert isinstance(caught.value.__cause__, KeyError)
    assert len(caught.value.what) == REASON_CHARACTERS_MAX


LACKS = """
from brokerproof.candidates.unavailable import CandidateUnavailable
def make():
    raise CandidateUnavailable("a box", what="there is no lid", remedy="buy one")
"""


@pytest.mark.parametrize("text", [LACKS, f"{LACKS}\nmake()"], ids=["factory", "file"])
@pytest.mark.parametrize("separator", [".py:", ":"], ids=["path", "module"])
def test_a_candidate_says_itself_what_it_lacks(tmp_path: Path, text: str, separator: str) -> None:
    write(tmp_path, text, f"box_{len(text)}_{len(separator)}.py")
    with pytest.raises(CandidateUnavailable) as caught:
        load_python_object(f"box_{len(text)}_{len(separator)}{separator}make")
    assert str(caught.value) == "a box: there is no lid; buy one"


@pytest.mark.parametrize("method", ["hello", "handle"])
def test_a_candidate_needs_both_methods(tmp_path: Path, method: str) -> None:
    path = write(tmp_path, GOOD.replace(f"def {method}", "def other"))
    assert f"without a method {method}" in refusal(f"{path}:Box")


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("None", "hello() returned NoneType"),
        ("1 / 0", "ZeroDivisionError"),
        ("Hello(name='', version='1', capabilities=Capabilities())", "a name of 0 characters"),
        ("Hello(name='b', version=1, capabilities=Capabilities())", "$.version"),
        ("Hello(name='b', version='1', capabilities=Capabilities(modes='x'))", "modes"),
        (
            "Hello(name='b', version='1', capabilities=Capabilities(orders=['fifo']))",
            "hello() claims orders as a list; make it a tuple",
        ),
        ("Hello(name='b', version='1', capabilities=object())", "not well formed"),
    ],
)
def test_a_hello_that_is_not_well_formed_is_refused(
    tmp_path: Path, returned: str, told: str
) -> None:
    text = GOOD.replace('Hello(name="box", version="1", capabilities=Capabilities())', returned)
    assert told in refusal(f"{write(tmp_path, text)}:Box")


def test_a_candidate_for_each_run_is_made_by_a_factory_that_is_looked_for_once(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, GOOD)
    start = starting(f"{path}:Box")
    first = start()
    write(tmp_path, "raise RuntimeError('changed in the midst of a gate')")
    second = start()
    assert first is not second
    assert type(first) is type(second)


def test_what_a_factory_makes_is_looked_at_when_it_is_something_else(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"{GOOD}\nmade = []\n\n\ndef make():\n    made.append(0)\n"
        "    return Box() if len(made) < 3 else object()\n",
    )
    start = starting(f"{path}:make")
    assert type(start()) is type(start())
    with pytest.raises(CandidateUnavailable, match="returned object without a method hello"):
        start()

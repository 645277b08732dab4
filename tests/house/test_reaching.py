"""The choice of tests by what they import: those that reach a file, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reaching import ROOT, reaching


def names(target: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in reaching(ROOT / target)}


def test_a_test_that_imports_a_file_by_way_of_another_reaches_it() -> None:
    found = names("models/language/watch/paths.py")
    assert "tests/models/language/watch/test_paths.py" in found
    assert "tests/models/qpid/test_projection.py" in found


def test_a_test_of_something_else_does_not() -> None:
    assert "tests/models/language/watch/test_paths.py" not in names("pipeline/readers/jepsen.py")
    assert "tests/house/test_reaching.py" not in names("models/language/watch/paths.py")


@pytest.mark.parametrize(
    ("changed", "own"),
    [
        ("models/rabbitmq/projection.py", "tests/models/rabbitmq/test_projection.py"),
        ("reference/rabbitmq/disk/terms.py", "tests/reference/rabbitmq/disk/test_queue_index.py"),
    ],
)
def test_a_change_in_one_system_selects_no_test_of_another(changed: str, own: str) -> None:
    found = names(changed)
    assert own in found
    assert not [each for each in found if {"qpid", "activemq"}.intersection(each.split("/"))]


def test_a_change_below_the_systems_selects_tests_of_all() -> None:
    found = {part for each in names("reference/front/credit.py") for part in each.split("/")}
    assert found >= {"qpid", "rabbitmq", "activemq"}


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(ValueError, match=r"README\.md is no module"):
        reaching(Path("README.md"))

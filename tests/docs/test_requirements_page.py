"""The page of requirements says what the models, the proofs and the planted faults say."""

from __future__ import annotations

import pytest

from tests.docs.requirements_page import ALGORITHMS, CORE, INTRODUCTION, PAGE, page, rows


def without_theorems(line: str) -> list[str]:
    """Return the cells of a row but for those of the algorithms."""
    cells = line.split(" | ")
    return [*cells[:2], *cells[2 + len(ALGORITHMS) :]]


def differing(text: str) -> list[str]:
    """Return the lines of the page whose requirement, guard or fault is not the present one."""
    made = [*INTRODUCTION.splitlines(), "", *rows(lambda _: {})]
    told = text.splitlines()
    assert len(told) == len(made)
    pairs = zip(told, made, strict=True)
    return [line for line, now in pairs if without_theorems(line) != without_theorems(now)]


def test_the_page_has_each_requirement_with_its_guard_and_fault() -> None:
    text = PAGE.read_text("utf-8")
    assert differing(text) == []
    [changed] = differing(text.replace("`quiesce`, `quiesce_by_size`", "`quiesce`", 1))
    assert changed.startswith("| `quiescence` (MUST) | `quiesce` |")


def test_the_core_invariants_come_first_and_are_proved_of_the_pushed_queue() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    first = [line for line in lines if line.startswith("| `")][: len(CORE)]
    assert [line.split(" | ")[0].split("`")[1] for line in first] == list(CORE)
    assert [line.split(" | ")[2] for line in first] == ["proved"] * len(CORE)


@pytest.mark.thorough
def test_the_page_says_what_the_proofs_say() -> None:
    assert PAGE.read_text("utf-8") == page()

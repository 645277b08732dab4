"""The page of requirements says what the models, the proofs and the planted faults say."""

from __future__ import annotations

import re

import pytest

from tests.docs.requirements_page import (
    ALGORITHMS,
    CORE,
    INTRODUCTION,
    PAGE,
    broken_promises,
    page,
    promises,
    rows,
)


def undecided(line: str) -> list[str]:
    """Return the cells of a row without theorems of algorithms and numbers of weaker guards."""
    cells = line.split(" | ")
    promised = [re.sub(r" \(\d+\)", "", each) for each in cells[2 + len(ALGORITHMS) : -1]]
    return [*cells[:2], *promised, cells[-1]]


def differing(text: str) -> list[str]:
    """Return the lines whose requirement, guard, promise or fault is not the present one."""
    made = [
        *INTRODUCTION.splitlines(),
        "",
        *rows(lambda _: dict.fromkeys(ALGORITHMS, ""), promises),
    ]
    told = text.splitlines()
    assert len(told) == len(made)
    pairs = zip(told, made, strict=True)
    return [line for line, now in pairs if undecided(line) != undecided(now)]


def test_the_page_has_each_requirement_with_its_guard_and_fault() -> None:
    text = PAGE.read_text("utf-8")
    assert differing(text) == []
    [changed] = differing(text.replace("`quiesce`, `quiesce_by_size`", "`quiesce`", 1))
    assert changed.startswith("| `quiescence` (MUST) | `quiesce` |")
    [changed] = differing(text.replace("`a-browser-sees-what-is-back`", "`a-browser-sees`", 1))
    assert changed.startswith("| `browser-sees-available` (MUST) | `browse` |")


def test_the_core_invariants_come_first_and_are_proved_of_the_pushed_queue() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    first = [line for line in lines if line.startswith("| `")][: len(CORE)]
    assert [line.split(" | ")[0].split("`")[1] for line in first] == list(CORE)
    assert [line.split(" | ")[2] for line in first] == ["proved"] * len(CORE)


def test_a_requirement_is_shown_with_the_number_of_weaker_guards_that_break_its_promise() -> None:
    assert broken_promises("browser-sees-available") == {"a-browser-sees-what-is-back": 3}
    assert "`a-browser-sees-what-is-back` (3)" in PAGE.read_text("utf-8")


@pytest.mark.thorough
def test_the_page_says_what_the_proofs_say() -> None:
    assert PAGE.read_text("utf-8") == page()

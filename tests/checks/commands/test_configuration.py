"""The configuration file: the same names as the options, and nothing that is not known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brokerproof.checks.commands.check import check
from brokerproof.checks.commands.configuration import (
    Settings,
    WrongConfiguration,
    asked,
    read_settings,
)
from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.requirements import catalogue


def settings(text: str, tmp_path: Path, name: str = "brokerproof.toml") -> Settings:
    """Return the settings of a folder with this file."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_settings(tmp_path)


def test_the_keys_are_the_options() -> None:
    options = {str(each.name) for each in check.params} - {"today", "help"}
    assert set(Settings.__struct_fields__) == options
    assert "accept-inconclusive" in Settings.__struct_encode_fields__


def test_its_own_file_wins_over_the_shared_one(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()
    shared = "[tool.brokerproof]\nseed = 3\naccept-inconclusive = true\n"
    found = settings(shared, tmp_path, "pyproject.toml")
    assert found.named() == {"seed": 3, "accept_inconclusive": True}
    own = settings('seed = 4\nonly = ["fifo-order"]\n', tmp_path)
    assert own.named() == {"seed": 4, "only": ("fifo-order",)}


def test_a_project_without_a_table_of_ours_sets_nothing(tmp_path: Path) -> None:
    assert settings("[tool.other]\nseed = 3\n", tmp_path, "pyproject.toml") == Settings()
    assert settings("tool = 3\n", tmp_path, "pyproject.toml") == Settings()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sead = 3\n", "sead: there is no such key; there are candidates, seed, "),
        ("accept_inconclusive = true\n", "accept_inconclusive: there is no such key"),
        ('seed = "x"\n', "seed: Expected `int | null`, got `str`"),
        ("seed = -1\n", "seed: Expected `int` >= 0"),
        ('effort = "quik"\n', "effort: Invalid enum value 'quik'; there are quick, normal, deep"),
        ("operations = 0\n", "operations: Expected `int` >= 1"),
        ("budget = 0.0\n", "budget: Expected `float` > 0"),
        ("only = [3]\n", "only[0]: Expected `str`"),
        ("strict = 1\n", "strict: Expected `bool | null`"),
    ],
)
@pytest.mark.parametrize("name", ["brokerproof.toml", "pyproject.toml"])
def test_what_is_not_known_is_refused_with_file_and_key(
    text: str, complaint: str, name: str, tmp_path: Path
) -> None:
    table = "[tool.brokerproof]\n" if name == "pyproject.toml" else ""
    prefix = "tool.brokerproof." if table else ""
    with pytest.raises(WrongConfiguration, match=re.escape(f"{name}: {prefix}{complaint}")):
        settings(table + text, tmp_path, name)


@pytest.mark.parametrize("name", ["brokerproof.toml", "pyproject.toml"])
def test_a_file_that_cannot_be_read_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongConfiguration, match=rf"{name}: .*\(at line 2"):
        settings("a = 1\nb = \n", tmp_path, name)


def test_a_table_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongConfiguration, match=r"pyproject.toml: tool.brokerproof: Expected"):
        settings("[tool]\nbrokerproof = 3\n", tmp_path, "pyproject.toml")


# Sets.


def test_a_set_of_the_users_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text('name = "ours"\n[levels]\nfifo-order = "SHOULD"\n', encoding="utf-8")
    [(name, requirement)] = asked(str(path)).items()
    assert (name, requirement.level.value) == ("fifo-order", "SHOULD")
    assert catalogue()["fifo-order"].level.value == "MUST"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("1999.1", "there is no set of requirements '1999.1'; there are "),
        ("nowhere.toml", "nowhere.toml: No such file"),
        ("../frozen/x", "there is no set of requirements"),
    ],
)
def test_a_set_that_is_not_there_is_told(name: str, complaint: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(complaint)):
        asked(name)

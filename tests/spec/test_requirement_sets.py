"""Frozen sets: what is published never changes, and asks only what there is."""

from __future__ import annotations

import hashlib
import re
from importlib import resources

import pytest

from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.requirements import catalogue
from brokerproof.spec.requirements.frozen import (
    LATEST,
    frozen,
    published_sets,
    read_set,
    requirements_of,
)

PUBLISHED: dict[str, str] = {
    "2026.1": "550c8618a3d82ff5d6f5cfc7896c85aa487eed6df77ba53fd45c5d75537a95c2",
}
"""The digest of each published set, as `brokerproof requirements --freeze` told it."""

FOLDER = resources.files("brokerproof.spec.requirements.frozen")


def changed(digests: dict[str, str], texts: dict[str, bytes]) -> list[str]:
    """Complain about sets that came, went, or are not what was published."""
    found = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    return sorted(
        name for name in digests.keys() | found.keys() if digests.get(name) != found.get(name)
    )


def texts() -> dict[str, bytes]:
    """Return the published sets as they are in the tree."""
    return {name: (FOLDER / f"{name}.toml").read_bytes() for name in published_sets()}


def test_no_published_set_has_changed() -> None:
    assert changed(PUBLISHED, texts()) == []


def test_a_set_that_has_changed_is_noticed() -> None:
    was = {"1.0": hashlib.sha256(b"a").hexdigest()}
    assert changed(was, {"1.0": b"a"}) == []
    assert changed(was, {"1.0": b"b"}) == ["1.0"]
    assert changed(was, {}) == ["1.0"]
    assert changed(was, {"1.0": b"a", "1.1": b"c"}) == ["1.1"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_set_can_be_asked(name: str) -> None:
    found = requirements_of(name)
    assert found
    assert list(found) == [each for each in catalogue() if each in found]


def test_a_set_that_is_frozen_now_is_the_catalogue() -> None:
    assert read_set("now", frozen("2030.1")) == catalogue() == requirements_of(LATEST)


def test_a_set_asks_what_it_names_at_its_own_level() -> None:
    found = read_set("old", 'name = "old"\n[levels]\nfifo-order = "SHOULD"\n')
    assert [(each.id, each.level.value) for each in found.values()] == [("fifo-order", "SHOULD")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "set: Invalid value"),
        ('name = "x"\n', "set: Object missing required field `levels`"),
        ('name = "x"\n[levels]\nfifo-order = "MAY"\n', "set: Invalid enum value 'MAY'"),
        ('name = "x"\n[levels]\ngone = "MUST"\n', "set: there is no requirement 'gone'"),
        ('name = "x"\nnote = "y"\n[levels]\n', "set: Object contains unknown field `note`"),
    ],
)
def test_a_malformed_set_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(complaint)):
        read_set("set", text)

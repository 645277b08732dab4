"""The catalogue of requirements: what is promised, at which level, and where a document says so.

Belongs here: one TOML file for each documented system and the loader that refuses a malformed one.
Does not belong here: formal meaning; a requirement's id is the label of a guard, or the name of an
invariant, in `models`, and a test holds the two lists together.
"""

from __future__ import annotations

import functools
import tomllib
from enum import Enum
from importlib import resources

import msgspec

OFFERED = frozenset(("on_threads", "places", "accounts", "consumer-lists"))
"""What a candidate may be asked for beside its claims: optional protocols of its Python form, and
parts of the view that it shows of a queue."""


class Level(Enum):
    """How binding a requirement is: what a document states plainly, or what it only recommends."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a requirement comes from: a document's title and the heading of the section."""

    document: str
    section: str

    def __str__(self) -> str:
        return f"{self.document}, {self.section}"


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One promise.

    `situation` is when a fault against it would show, in words; only such situations count as
    exercise. `needs` are the claims without which it is not asked: ``get``, ``browse``,
    ``credit:messages``, ``orders:priority``, ``modes:acknowledge`` and the like, or one of what is
    `OFFERED` besides; alternatives are separated by ``|``.
    """

    id: str
    level: Level
    statement: str
    situation: str
    sources: tuple[Source, ...]
    needs: tuple[str, ...] = ()
    core: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    requirement: tuple[Requirement, ...]


class CatalogueError(ValueError):
    """A catalogue file is malformed; the message names file and field."""


def read_catalogue(name: str, text: str) -> tuple[Requirement, ...]:
    """Return the requirements of one catalogue file; raises `CatalogueError`."""
    try:
        found = msgspec.convert(tomllib.loads(text), _File).requirement
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise CatalogueError(f"{name}: {error}") from error
    for requirement in found:
        if not requirement.sources:
            raise CatalogueError(f"{name}: {requirement.id} has no source")
    return found


@functools.cache
def catalogue() -> dict[str, Requirement]:
    """Return all requirements by id, in the order of the files and of their lines."""
    requirements: dict[str, Requirement] = {}
    folder = resources.files(__package__ or __name__)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            for requirement in read_catalogue(file.name, file.read_text(encoding="utf-8")):
                if requirement.id in requirements:
                    raise CatalogueError(f"{file.name}: {requirement.id} is stated twice")
                requirements[requirement.id] = requirement
    return requirements

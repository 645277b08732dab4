"""Frozen sets of requirements: the ids and levels that a gate checks, under a name that stays.

A gate that names a set does not turn red because the catalogue grew. A published set is never
edited (a test holds its bytes); new requirements go into the next set. `latest` is no set but the
catalogue as it is. Here are one TOML file for each published set, and their loader. The text of the
requirements is in the catalogue.
"""

from __future__ import annotations

from importlib import resources

import msgspec

from brokerproof.spec.catalogues import CatalogueError, decoded
from brokerproof.spec.requirements import Level, Requirement, catalogue

LATEST = "latest"


class RequirementSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ids of the requirements in the set, each with its level at the time."""

    name: str
    levels: dict[str, Level]


def published_sets() -> tuple[str, ...]:
    """Return the names of the published sets, the oldest first."""
    names = (each.name for each in resources.files(__package__ or __name__).iterdir())
    found = (name.removesuffix(".toml") for name in names if name.endswith(".toml"))
    return tuple(sorted(found, key=_age))


def _age(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part) if part.isdigit() else 0, part) for part in name.split("."))


def requirements_of(name: str) -> dict[str, Requirement]:
    """Return the requirements of a published set; raises `CatalogueError`."""
    if name == LATEST:
        return catalogue()
    if name not in published_sets():
        known = ", ".join((*published_sets(), LATEST))
        raise CatalogueError(f"there is no set of requirements {name!r}; there are {known}")
    file = resources.files(__package__ or __name__) / f"{name}.toml"
    return read_set(name, file.read_text(encoding="utf-8"))


def read_set(name: str, text: str) -> dict[str, Requirement]:
    """Return the requirements that the text of a set names, at its levels, in catalogue order.

    Raises `CatalogueError`.
    """
    found = decoded(name, text, RequirementSet)
    unknown = found.levels.keys() - catalogue().keys()
    if unknown:
        raise CatalogueError(f"{name}: there is no requirement {min(unknown)!r}")
    return {
        each.id: msgspec.structs.replace(each, level=found.levels[each.id])
        for each in catalogue().values()
        if each.id in found.levels
    }


def frozen(name: str) -> str:
    """Return the text of a new set with this name that holds the current catalogue."""
    ids = "".join(f'{each.id} = "{each.level.value}"\n' for each in catalogue().values())
    return (
        "# A frozen set of requirements; once published it is never edited.\n"
        f"name = {msgspec.json.encode(name).decode()}\n\n[levels]\n{ids}"
    )

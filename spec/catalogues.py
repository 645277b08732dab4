"""TOML files that state things, each under an id of its own: reading one, and all of a package.

Owns that a malformed file is refused with its name, and that no id is stated twice. Refuses to know
what is stated.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Protocol, TypeVar

import msgspec

Form = TypeVar("Form")


class CatalogueError(ValueError):
    """A catalogue file is malformed; the message names file and field."""


class Stated(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """The name by which it is known everywhere."""
        ...


Item = TypeVar("Item", bound=Stated)


def decoded(name: str, text: str, form: type[Form]) -> Form:
    """Return what a file says, in its form; raises `CatalogueError`."""
    try:
        return msgspec.convert(tomllib.loads(text), form)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise CatalogueError(f"{name}: {error}") from error


def all_of(packages: Iterable[str], read: Callable[[str, str], Iterable[Item]]) -> dict[str, Item]:
    """Return what all TOML files of packages state, by id, in their order and of their lines.

    `read` gets a file's name and text. Raises `CatalogueError`.
    """
    found: dict[str, Item] = {}
    folders = map(resources.files, packages)
    files = sorted(
        (file for each in folders for file in each.iterdir()), key=lambda each: each.name
    )
    for file in files:
        if file.name.endswith(".toml"):
            for each in read(file.name, file.read_text(encoding="utf-8")):
                if each.id in found:
                    raise CatalogueError(f"{file.name}: {each.id} is stated twice")
                found[each.id] = each
    return found

"""Loading of TOML catalogues, in which each item has an id.

Owns two guarantees: the error for a malformed file names the file, and no id is stated twice. What
an item means is up to the caller.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Protocol, TypeVar

import msgspec

Form = TypeVar("Form")


class CatalogueError(ValueError):
    """A catalogue file is malformed; the message names file and field."""


class Stated(Protocol):
    """An item of a catalogue."""

    @property
    def id(self) -> str:
        """The id by which every other file names the item."""
        ...


Item = TypeVar("Item", bound=Stated)


def decoded(name: str, text: str, form: type[Form]) -> Form:
    """Decode the text of a TOML file into `form`; raises `CatalogueError`."""
    try:
        return msgspec.convert(_parsed(text), form)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise CatalogueError(f"{name}: {error}") from error


# The requirements and the invariants are read from the same files.
_parsed = functools.cache(tomllib.loads)


def all_of(packages: Iterable[str], read: Callable[[str, str], Iterable[Item]]) -> dict[str, Item]:
    """Return the items of all TOML files in `packages` by id, in file order, then line order.

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

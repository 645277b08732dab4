"""Overlays: a copy of the reference broker with a few lines replaced, as a package of its own.

The reference carries no switches for faults. A fault names lines of it, exactly and once each;
where the reference has moved on and a line is gone, planting fails instead of testing something
else. The copy lives in memory under a fresh name: the real package is neither changed nor loaded
again, and any number of copies live side by side.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

import brokerproof.reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from brokerproof.spec.candidate import Candidate

REFERENCE = "brokerproof.reference"
"""The package that is copied: every mention of it in its own sources becomes the copy's name."""

_numbers = itertools.count()


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines of one file of `reference/`, and what stands there instead."""

    file: str
    old: str
    new: str


class CannotPlant(Exception):
    """The lines to be replaced are not there exactly once; the message names file and lines."""


def plant(edits: Sequence[Edit], address: str = "qpid-push") -> Callable[[], Candidate]:
    """Return a factory of the broker that `address` describes, with all edits made to its sources.

    Raises `CannotPlant` where a file or its old lines are not found exactly once.
    """
    module = _imported(edited(sources_of_the_reference(), edits))
    make = cast("Callable[[str], Candidate]", module.make)
    return lambda: make(address)


def sources_of_the_reference() -> dict[str, str]:
    """Return the text of each file of the reference, by file name."""
    folder = Path(brokerproof.reference.__file__).parent
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}


def edited(sources: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str]:
    """Return the sources with all edits made, one after the other; raises `CannotPlant`."""
    changed = dict(sources)
    for edit in edits:
        text = changed.get(edit.file)
        if text is None:
            raise CannotPlant(f"there is no reference/{edit.file}")
        times = text.count(edit.old) if edit.old else 0
        if times != 1:
            raise CannotPlant(
                f"reference/{edit.file} has this {times} times, not once:\n{edit.old}"
            )
        changed[edit.file] = text.replace(edit.old, edit.new)
    return changed


def _imported(sources: Mapping[str, str]) -> ModuleType:
    """Import the sources under a fresh name and return their package."""
    package = f"planted_reference_{next(_numbers)}"
    modules = {
        _module_of(file, package): text.replace(REFERENCE, package)
        for file, text in sources.items()
    }
    finder = _SourcesInMemory(package, modules)
    sys.meta_path.insert(0, finder)
    try:
        # All of them now: nothing finds them later.
        for name in modules:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
    return sys.modules[package]


def _module_of(file: str, package: str) -> str:
    stem = file.removesuffix(".py")
    return package if stem == "__init__" else f"{package}.{stem}"


class _SourcesInMemory(MetaPathFinder, InspectLoader):
    """Finds and loads the modules of one copy, and leaves everything else to others."""

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return spec_from_loader(fullname, self) if fullname in self._modules else None

    def get_source(self, fullname: str) -> str:
        return self._modules[fullname]

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._modules[fullname], f"<{fullname}>")

    def is_package(self, fullname: str) -> bool:
        return fullname == self._package

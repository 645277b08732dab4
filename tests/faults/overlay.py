"""Overlays: a copy of a sound broker with a few lines replaced, as a package of its own.

Faults are planted into the reference, and into the whole broker of the examples. Neither carries
switches for faults. A fault names lines of it, exactly and once each; where the broker has moved on
and a line is gone, planting fails instead of testing something else. The copy lives in memory under
a fresh name: the real modules are neither changed nor loaded again, and any number of copies can
exist.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

import brokerproof.reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from brokerproof.spec.protocol.candidate import Candidate

_numbers = itertools.count()


class Ground(msgspec.Struct, frozen=True):
    """Python files of one folder, and of those in it, that faults can be planted into.

    Those of a `package` name it in full when they import each other, and every mention of it
    becomes the copy's name. Neighbours without a package import each other relatively.
    """

    folder: Path
    pattern: str
    package: str = ""

    def sources(self) -> dict[str, str]:
        """Return the text of each file by its name, which says in which folder it is."""
        sources = {
            path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(self.folder.glob(self.pattern))
        }
        return sources if "__init__.py" in sources else {"__init__.py": "", **sources}


REFERENCE: Final = Ground(
    Path(brokerproof.reference.__file__).parent, "**/*.py", package="brokerproof.reference"
)
_EXAMPLES: Final = Path(__file__).parents[2] / "examples"
WHOLE: Final = Ground(_EXAMPLES, "whole_broker*.py")
JOBS: Final = Ground(_EXAMPLES, "job_queue.py")


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines of one file of a broker, and what stands there instead."""

    file: str
    old: str
    new: str


class CannotPlant(Exception):
    """The lines to be replaced are not there exactly once; the message names file and lines."""


def plant(edits: Sequence[Edit], address: str = "qpid-push") -> Callable[[], Candidate]:
    """Return a factory of the broker that `address` describes, with all edits made to its sources.

    The address is ``whole:FACTORY`` of the whole broker, ``jobs:FACTORY`` of the queue of jobs, or
    one that the reference's `make` takes. Raises `CannotPlant` where a file or its old lines are
    not found exactly once.
    """
    name, _, factory = address.partition(":")
    ground = ground_of(address)
    package = _imported(edited(ground, edits), ground)
    if name == "whole":
        return _factory(sys.modules[f"{package}.whole_broker"], factory or "make_broker")
    if name == "jobs":
        return _factory(sys.modules[f"{package}.job_queue"], factory or "make_queue")
    make = _factory(sys.modules[package], "make")
    return lambda: make(address)


def ground_of(address: str) -> Ground:
    """Return the sources that a broker is made from."""
    return {"whole": WHOLE, "jobs": JOBS}.get(address.partition(":")[0], REFERENCE)


def _factory(module: ModuleType, name: str) -> Callable[..., Candidate]:
    return cast("Callable[..., Candidate]", getattr(module, name))


def edited(ground: Ground, edits: Sequence[Edit]) -> dict[str, str]:
    """Return the sources with all edits made, one after the other; raises `CannotPlant`."""
    changed = ground.sources()
    for edit in edits:
        where = f"{ground.folder.name}/{edit.file}"
        text = changed.get(edit.file)
        if text is None:
            raise CannotPlant(f"there is no {where}")
        times = text.count(edit.old) if edit.old else 0
        if times != 1:
            raise CannotPlant(f"{where} has this {times} times, not once:\n{edit.old}")
        changed[edit.file] = text.replace(edit.old, edit.new)
    return changed


CELLS: Final = "shared/atomics.py"


def _renamed(text: str, ground: Ground, package: str) -> str:
    return text.replace(ground.package, package) if ground.package else text


def _imported(sources: Mapping[str, str], ground: Ground) -> str:
    """Import the sources under a fresh name and return the name of their package."""
    package = f"planted_{ground.folder.name}_{next(_numbers)}"
    modules = {
        _module_of(file, package): _renamed(text, ground, package) for file, text in sources.items()
    }
    if ground == REFERENCE and sources[CELLS] == ground.sources()[CELLS]:
        # The scheduler knows cells by their classes, so a copy has the real ones.
        modules[_module_of(CELLS, package)] = f"from {_module_of(CELLS, ground.package)} import *\n"
    finder = _SourcesInMemory(modules)
    sys.meta_path.insert(0, finder)
    try:
        # All of them now: nothing finds them later.
        for name in modules:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
    return package


def _module_of(file: str, package: str) -> str:
    name = file.removesuffix(".py").removesuffix("__init__").strip("/").replace("/", ".")
    return f"{package}.{name}" if name else package


class _SourcesInMemory(MetaPathFinder, InspectLoader):
    """Finds and loads the modules of one copy, and leaves everything else to others."""

    def __init__(self, modules: Mapping[str, str]) -> None:
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
        return any(name.startswith(f"{fullname}.") for name in self._modules)

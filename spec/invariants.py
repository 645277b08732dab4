"""The invariants that those who study a documented system name, and what here holds each of them.

A requirement of the gate is a promise to clients. An invariant is what a broker of that kind keeps
inside, under the id that notes on its releases gave it (`PTR-1`, `QCM-3`). Each is stated in our
own words and is bound to whatever holds it: a statement of a model, a requirement that the gate
asks, the exploration of threads, a test. What nothing holds says why.

Belongs here: one TOML file for each family of systems, and the loader that refuses a malformed one.
Does not belong here: formal meaning, which is that of what an invariant is bound to; a test
resolves every binding and looks for the twin that breaks it.
"""

from __future__ import annotations

import functools
from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.catalogues import CatalogueError, all_of, decoded
from brokerproof.spec.requirements import Source

System: TypeAlias = Literal[
    "qpid-push", "qpid-priority", "qpid-pull", "rabbitmq-paging", "activemq-cursor"
]


class _Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by"):
    """What holds an invariant."""


class ByModel(_Binding, frozen=True, kw_only=True, tag="model"):
    """A statement of a model: proved for any number, or explored where it is about the end.

    `model` is a name of the models' catalogue, or a file and a class (``models/x.py:X``).
    `broken_by` is a variant of the model that is refuted, as ``tests/models/x.py:Class``.
    """

    model: str
    statement: str
    broken_by: str

    def __str__(self) -> str:
        return f"model {self.model}: {self.statement}"


class ByRequirement(_Binding, frozen=True, kw_only=True, tag="requirement"):
    """A requirement that the gate asks of every candidate that claims what it needs.

    `broken_by` is the id of a planted fault that breaks it.
    """

    requirement: str
    broken_by: str

    def __str__(self) -> str:
        return f"requirement {self.requirement}"


class ByThreads(_Binding, frozen=True, kw_only=True, tag="threads"):
    """The running code under every interleaving of small cases.

    `broken_by` is the id of a planted fault that only threads show.
    """

    broken_by: str

    def __str__(self) -> str:
        return "interleavings of the reference"


class ByTest(_Binding, frozen=True, kw_only=True, tag="test"):
    """A test of the reference, as ``tests/x.py:test_y``.

    `broken_by` is its twin on a broken thing, in the same form; none where the test compares with
    something plain, which is its own twin, or where no fault is planted.
    """

    test: str
    broken_by: str = ""

    def __str__(self) -> str:
        return f"test {self.test}"


Binding: TypeAlias = ByModel | ByRequirement | ByThreads | ByTest


class Invariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a documented system keeps inside.

    `uncovered` is what nothing holds of it, with the reason; it stands alone, or beside what holds
    the rest.
    """

    id: str
    systems: tuple[System, ...]
    statement: str
    sources: tuple[Source, ...]
    held: tuple[Binding, ...] = ()
    uncovered: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    invariant: tuple[Invariant, ...]


def read_invariants(name: str, text: str) -> tuple[Invariant, ...]:
    """Return the invariants of one file; raises `CatalogueError`."""
    found = decoded(name, text, _File).invariant
    for each in found:
        if not each.sources or not each.systems:
            raise CatalogueError(f"{name}: {each.id} has no source, or is of no system")
        if not all(source.is_in_form() for source in each.sources):
            raise CatalogueError(f"{name}: {each.id}: a source names a section, or versions")
        if not each.held and not each.uncovered:
            raise CatalogueError(f"{name}: {each.id} is held by nothing, and nothing says why")
    return found


PACKAGES = tuple(f"brokerproof.spec.{each}" for each in ("activemq", "qpid", "rabbitmq"))


@functools.cache
def invariants() -> dict[str, Invariant]:
    """Return all invariants by id, in the order of the files and of their lines."""
    return all_of(PACKAGES, read_invariants)


def invariants_of(system: str) -> dict[str, Invariant]:
    """Return those of a system, or of all whose names begin so; raises `CatalogueError`."""
    found = {
        each.id: each
        for each in invariants().values()
        if any(name == system or name.startswith(f"{system}-") for name in each.systems)
    }
    if not found:
        known = sorted({name for each in invariants().values() for name in each.systems})
        raise CatalogueError(f"no invariants of {system!r} are stated; of {', '.join(known)} are")
    return found

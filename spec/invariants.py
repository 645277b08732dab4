"""The internal invariants of the documented systems, and the checks that hold each of them.

A requirement concerns clients. An invariant concerns the broker's inside; its id comes from notes
on the broker's releases (`PTR-1`, `QCM-3`). Each is stated in our own words and bound to the checks
that hold it: an invariant of a model, a requirement of the gate, the exploration of threads, a
test. An invariant without a check says why. Formal meaning is that of the bound checks; a test
resolves every binding and looks for the broken twin.
"""

from __future__ import annotations

import functools
from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.catalogues import CatalogueError, all_of, decoded
from brokerproof.spec.requirements import OF_SYSTEMS, OfAView, Source

System: TypeAlias = Literal[
    "qpid-push", "qpid-priority", "qpid-pull", "rabbitmq-paging", "activemq-cursor"
]


class _Binding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by"):
    """One check that holds an invariant."""


class ByModel(_Binding, frozen=True, kw_only=True, tag="model"):
    """An invariant of a model: proved for any size, or explored for a property of the end state."""

    model: str
    statement: str
    broken_by: str

    def __str__(self) -> str:
        return f"model {self.model}: {self.statement}"


class ByRequirement(_Binding, frozen=True, kw_only=True, tag="requirement"):
    """A requirement that the gate checks on every candidate that claims the needed capabilities."""

    requirement: str
    broken_by: str

    def __str__(self) -> str:
        return f"requirement {self.requirement}"


class ByThreads(_Binding, frozen=True, kw_only=True, tag="threads"):
    """The running code under every interleaving of small cases.

    `broken_by` is the id of a planted fault that only an interleaving of threads shows.
    """

    broken_by: str

    def __str__(self) -> str:
        return "interleavings of the reference"


class ByTest(_Binding, frozen=True, kw_only=True, tag="test"):
    """A test of the reference, as ``tests/x.py:test_y``.

    `broken_by` is its twin on a broken reference, in the same form. It is empty if the test
    compares with a plain implementation, which is its own twin, or if no fault is planted.
    """

    test: str
    broken_by: str = ""

    def __str__(self) -> str:
        return f"test {self.test}"


Binding: TypeAlias = ByModel | ByRequirement | ByThreads | ByTest


class Invariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An internal invariant of a documented system.

    `uncovered` names the part that no check holds, with the reason. It may stand alone, or beside
    checks that hold the rest. An invariant with a `gate` is a requirement too, of the same id.
    """

    id: str
    systems: tuple[System, ...]
    statement: str
    sources: tuple[Source, ...]
    held: tuple[Binding, ...] = ()
    uncovered: str = ""
    gate: OfAView | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    invariant: tuple[Invariant, ...]


def _with_gate(one: Invariant) -> Invariant:
    if one.gate is None:
        return one
    asked = ByRequirement(requirement=one.id, broken_by=one.gate.broken_by)
    return msgspec.structs.replace(one, held=(asked, *one.held))


def read_invariants(name: str, text: str) -> tuple[Invariant, ...]:
    """Return the invariants of one file; raises `CatalogueError`."""
    found = tuple(map(_with_gate, decoded(name, text, _File).invariant))
    for each in found:
        if not each.sources or not each.systems:
            raise CatalogueError(f"{name}: {each.id} has no source, or is of no system")
        if not all(source.is_in_form() for source in each.sources):
            raise CatalogueError(f"{name}: {each.id}: a source names a section, or versions")
        if not each.held and not each.uncovered:
            raise CatalogueError(f"{name}: {each.id} is held by nothing, and nothing says why")
    return found


@functools.cache
def invariants() -> dict[str, Invariant]:
    """Return all invariants by id, in the order of the files and of their lines."""
    return all_of(OF_SYSTEMS, read_invariants)


def invariants_of(system: str) -> dict[str, Invariant]:
    """Return the invariants of a system, or of all systems with that prefix.

    Raises `CatalogueError`.
    """
    found = {
        each.id: each
        for each in invariants().values()
        if any(name == system or name.startswith(f"{system}-") for name in each.systems)
    }
    if not found:
        known = sorted({name for each in invariants().values() for name in each.systems})
        raise CatalogueError(f"no invariants of {system!r} are stated; of {', '.join(known)} are")
    return found

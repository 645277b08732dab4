"""State invariants: what must hold of a queue in one view, under ids of its document.

`step_conformance` judges the steps between two views; this file judges each view by itself. Each id
is stated once: by an invariant of a model, evaluated on the view, or by a rule of the view if no
model has the subject (`spec/*/view_rules.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.models import projections
from brokerproof.spec.invariants import invariants
from brokerproof.spec.protocol.answers import Inspection
from brokerproof.spec.requirements import OFFERED, catalogue
from brokerproof.spec.systems import CALLED, rules_of


@dataclass(frozen=True)
class Snapshot:
    """The ids exercised by a view, and the complaint for each that is broken."""

    exercised: frozenset[str]
    broken: tuple[tuple[str, str], ...]


@functools.cache
def parts() -> Mapping[str, tuple[str, ...]]:
    """Return the ids by the part of a view that they need, as the catalogue has them."""
    found: dict[str, tuple[str, ...]] = {}
    for each in catalogue().values():
        if "inspect" in each.needs:
            for part in (need for need in each.needs if need in OFFERED):
                found[part] = (*found.get(part, ()), each.id)
    return found


@functools.cache
def kinds() -> Mapping[str, frozenset[str]]:
    """Return the ids by the name of the kind of queue whose views they judge."""
    asked = {name for names in parts().values() for name in names}
    systems = {each.id: each.systems[0].partition("-")[0] for each in invariants().values()}
    return {
        called: frozenset(name for name in asked if systems[name] == system)
        for system, called in CALLED.items()
    }


OF_STATES: Final = tuple(name for names in parts().values() for name in names)
INSIDE: Final = frozenset((REQUIREMENT, *OF_STATES))
"""The requirements that are about the inside of a candidate."""


def expected_of(requirement: str) -> str:
    """Return what a view that breaks an invariant should have been."""
    return f"a view of which {requirement} holds"


KNOWN_MAX: Final = 1 << 16
"""The most views whose snapshots are cached."""

_KNOWN: dict[Hashable, Snapshot] = {}


def snapshot(view: Inspection, *, rests: bool = False) -> Snapshot:
    """Return the judgement of a view by itself; `rests` says that the broker has drained."""
    key = view, rests
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        judged = (
            *rules_of(view.kind).judged(view, rests=rests),
            *projections.judged(view, rests=rests),
        )
        known = _KNOWN[key] = Snapshot(
            frozenset(name for name, _ in judged),
            tuple((name, complaint) for name, complaint in judged if complaint),
        )
    return known


def parts_in(exercised: Mapping[str, int]) -> frozenset[str]:
    """Return which parts the views had, given these counts."""
    return frozenset(
        part for part, names in parts().items() if any(exercised.get(name) for name in names)
    )

"""Invariants in words: what `brokerproof requirements --invariants` prints of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from brokerproof.spec.invariants import Invariant


def listed(found: Iterable[Invariant]) -> Iterator[str]:
    """Yield a line for each, with how many things hold it."""
    for each in found:
        holds = f"{len(each.held)} hold it" if each.held else "nothing holds it"
        if each.held and each.uncovered:
            holds += ", in part"
        yield f"{each.id:<8}{each.statement} [{holds}]"


def explained(each: Invariant) -> Iterator[str]:
    """Yield the lines that tell one invariant whole."""
    yield f"{each.id} ({', '.join(each.systems)})"
    yield f"  {each.statement}"
    for source in each.sources:
        yield f"  source: {source}"
    for binding in each.held:
        yield f"  held by: {binding}"
        if binding.broken_by:
            yield f"  broken by: {binding.broken_by}"
    if each.uncovered:
        yield f"  not held: {each.uncovered}"

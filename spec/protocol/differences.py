"""The lawful differences of brokers: which claims weaken which requirements, and by what right.

Owns `differences.toml` and its form. The meaning of each is in the contract
(`models/contract/lawful_differences.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import msgspec

from brokerproof.spec.catalogues import all_of, decoded
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import Source


class Difference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of a claim that is not the strict one, and the requirements that it weakens."""

    id: str
    claim: str
    value: str | bool
    sentence: str
    weakens: tuple[str, ...]
    sources: tuple[Source, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    difference: tuple[Difference, ...]


@functools.cache
def differences() -> dict[str, Difference]:
    """Return all differences by id."""
    return all_of((__package__ or "",), lambda name, text: decoded(name, text, _File).difference)


STRICTEST = Capabilities(release_position="original")
"""The claims without any difference."""


def claimed_differences(
    claims: Capabilities, than: Capabilities = STRICTEST
) -> Iterator[Difference]:
    """Yield the differences of these claims from the strictest ones, or from others."""
    for each in differences().values():
        if getattr(claims, each.claim) == each.value != getattr(than, each.claim):
            yield each

"""Faults that need threads: planted like the others, found by exploring interleavings."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import msgspec

from tests.faults.overlay import Edit

FILE = Path(__file__).parent / "faults.toml"


class ThreadFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A broker whose threads get in each other's way; `requirement` must be named."""

    id: str
    sentence: str
    requirement: str
    edits: tuple[Edit, ...]
    source: str = ""


@functools.cache
def thread_faults() -> tuple[ThreadFault, ...]:
    """Return all of them."""
    decoded = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return msgspec.convert(decoded["fault"], tuple[ThreadFault, ...])

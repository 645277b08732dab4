"""Faults that need threads: planted like the others, found by exploring interleavings."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import msgspec

from tests.faults.overlay import Edit

FOLDER = Path(__file__).parent


class ThreadFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A broker whose threads get in each other's way.

    `requirement` must be named, and with it `breaks`, the promise of the contract that no order of
    what happened keeps; nothing, where it is not about what came of it. `case` is the one in which
    the gate shows it.
    """

    id: str
    sentence: str
    requirement: str
    case: str
    breaks: str = ""
    edits: tuple[Edit, ...]
    source: str = ""
    broker: str = "qpid-push"


@functools.cache
def thread_faults() -> tuple[ThreadFault, ...]:
    """Return all of them."""
    files = [tomllib.loads(each.read_text("utf-8")) for each in sorted(FOLDER.glob("*.toml"))]
    records = [record for decoded in files for record in decoded["fault"]]
    return msgspec.convert(records, tuple[ThreadFault, ...])

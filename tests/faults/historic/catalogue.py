"""The historic faults: what a real broker once got wrong, and what finds each here.

Owns which planted faults, tests and models stand for a mistake of the public history, and why one
has none. What is planted, and what must be said of it, is in the files beside this folder.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import msgspec

from brokerproof.spec.invariants import Binding, System

FOLDER = Path(__file__).parent
FAMILIES = ("qpid", "rabbitmq", "activemq")
"""Those whose history there are notes on: a file here, and a page, of each."""


class Historic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mistake of the public history.

    `faults` are the planted ones that it is, of one thread or of several; `held` is what else finds
    a copy of the code, or a variant of a model, with it; `unplanted` is why there is none.
    `differs` is how what is planted departs from what it was.
    """

    id: str
    issue: str
    system: System
    what: str
    faults: tuple[str, ...] = ()
    held: tuple[Binding, ...] = ()
    unplanted: str = ""
    differs: str = ""

    def __post_init__(self) -> None:
        """Refuse a record that says both or nothing."""
        if bool(self.faults or self.held) == bool(self.unplanted):
            raise ValueError(f"{self.id}: name what finds it, or why nothing can")


@functools.cache
def historic_faults(family: str) -> tuple[Historic, ...]:
    """Return those of a family of systems, in the order of their ids."""
    decoded = tomllib.loads((FOLDER / f"{family}.toml").read_text(encoding="utf-8"))
    return msgspec.convert(decoded["historic"], tuple[Historic, ...])

"""The planted faults: brokers that break one requirement on purpose, and the expected report.

One TOML file for each kind. The record of a fault holds the gate to its word, not the broker: which
requirement it names, how short its counterexample is, and what else breaks of necessity. The
judging is the gate's; `tests/faults/test_faults.py` holds the two together.

Not here, because no single thread of operations can show them: faults of interleavings (B-03,
B-25), of memory kept too long (B-13), and the runner's extra loop, which finds nothing to do unless
another thread moves.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.faults.overlay import Edit, plant

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.spec.protocol.candidate import Candidate

FOLDER = Path(__file__).parent
GROUNDS = ("activemq", "jobs", "qpid", "rabbitmq", "whole")
"""What faults are planted into: a folder each."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A broker that breaks a promise on purpose.

    `requirement` must be named, with a counterexample of at most `length` operations, a closing
    drain included; the gate finds it within `operations` for each scope, or `examples` of `seed`.
    `also` are the requirements that break with it of necessity, and `because` says why. `source` is
    the id of the historic fault that it is, where it is one. `outside` says why no search of a
    scope can hold its counterexample, which then is not certified.

    `broker` is what it is planted into: a variant of the reference, or a factory of the whole
    broker (``whole:make_tail_broker``, or ``whole`` alone). What keeps the promise instead is the
    same without the edits, or `sound_broker`, or the same with the edits of `twin`.
    """

    id: str
    sentence: str
    requirement: str
    length: int
    edits: tuple[Edit, ...] = ()
    source: str = ""
    also: tuple[str, ...] = ()
    because: str = ""
    outside: str = ""
    broker: str = "qpid-push"
    sound_broker: str = ""
    twin: tuple[Edit, ...] = ()
    operations: int = 125
    examples: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a record that does not say what it must."""
        if bool(self.also) != bool(self.because):
            raise ValueError(f"{self.id}: say what else breaks together with the reason")
        if self.broker == self.sound_broker or not (self.edits or self.twin or self.sound_broker):
            raise ValueError(f"{self.id}: nothing tells the faulty broker from the sound one")

    def faulty(self) -> Callable[[], Candidate]:
        """Return a factory of the broker with the fault."""
        return plant(self.edits, self.broker)

    def sound(self) -> Callable[[], Candidate]:
        """Return a factory of the broker without it."""
        return plant(self.twin, self.sound_broker or self.broker)


@functools.cache
def faults() -> dict[str, Fault]:
    """Return every planted fault by its id."""
    found: dict[str, Fault] = {}
    files = [path for each in GROUNDS for path in (FOLDER / each).glob("*.toml")]
    for path in sorted(files, key=lambda each: each.name):
        records = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        for fault in msgspec.convert(records, tuple[Fault, ...]):
            if fault.id in found:
                raise ValueError(f"{path.name}: there are two faults {fault.id}")
            found[fault.id] = fault
    return found


def make_faulty(fault: str) -> Candidate:
    """Return a new broker with a fault, which is planted when the first one is made."""
    return _factory_of(fault)()


@functools.cache
def _factory_of(fault: str) -> Callable[[], Candidate]:
    return faults()[fault].faulty()

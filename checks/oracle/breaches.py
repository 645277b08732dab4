"""What is said when a promise is seen broken, and of runs that cannot be followed further."""

from __future__ import annotations

from dataclasses import dataclass, field

from brokerproof.checks.oracle.bindings import Bindings
from brokerproof.checks.oracle.possibilities import EventWindow, Step


@dataclass(frozen=True)
class Breach:
    """A promise seen broken.

    `expected` says what should have been, where the contract is not to be asked.
    `witnesses` are all messages concerned, `overdue` those of them that were available and not
    given, `also` the other promises that the same moment speaks against; `lost` says that a census
    did not find the message, `hangs` that the candidate did not come back.
    """

    requirement: str
    reason: str
    witnesses: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lost: bool = False
    hangs: bool = False
    expected: str = ""
    moment: Moment | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Moment:
    """What was known when a guard was found false, and the action that it belongs to."""

    book: Bindings
    window: EventWindow
    step: Step


class Unfollowable(Exception):
    """What happened cannot be followed any further; the run is not judged beyond this point."""


class Broken(Exception):
    """What ends an oracle's run; it returns the breach."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.requirement)
        self.breach = breach

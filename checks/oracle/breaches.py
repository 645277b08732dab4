"""Breaches of requirements, and runs that cannot be followed further."""

from __future__ import annotations

from dataclasses import dataclass, field

from brokerproof.checks.oracle.possibilities import EventWindow, Step
from brokerproof.checks.trace.bindings import Bindings


@dataclass(frozen=True)
class Breach:
    """A requirement seen broken.

    `expected` says what should have happened, where the contract cannot say it. `witnesses` are all
    messages concerned, `overdue` those among them that were available and not delivered, `also` the
    other requirements that the same moment breaks. `lost` says that a final drain check missed the
    message, `hangs` that the candidate did not come back, `ends` that its process is no more.
    """

    requirement: str
    reason: str
    witnesses: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lost: bool = False
    hangs: bool = False
    ends: bool = False
    expected: str = ""
    moment: Moment | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Moment:
    """The state when a guard was found false, and the action of that guard.

    `since` are steps of other consumers and of clients that came after that state.
    """

    bindings: Bindings
    window: EventWindow
    step: Step
    since: tuple[Step, ...] = ()


class Unfollowable(Exception):
    """The run cannot be followed any further; it is not judged beyond this point."""


class Broken(Exception):
    """Ends an oracle's run; carries the breach."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.requirement)
        self.breach = breach

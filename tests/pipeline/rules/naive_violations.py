"""A violation as the naive evaluator tells it, in the fields of `pipeline/rules/violations.py`."""

from __future__ import annotations

from typing import NamedTuple

from brokerproof.models.contract.history import Span
from brokerproof.pipeline.rules.history_rules import RULES
from tests.pipeline.intervals.naive_intervals import Message


class Violation(NamedTuple):
    """A violation, in the fields of `pipeline/rules/violations.py`."""

    requirement: str
    run: str
    queue: str
    message: str
    rule: str
    strength: int
    witness: str | None
    late_start: int
    late_end: int
    early_start: int
    early_end: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is one violation, however often it is shown."""
        return (self.requirement, self.run, self.queue, self.message)

    @property
    def weakness(self) -> tuple[object, ...]:
        """The order in which one of several witnesses is chosen."""
        named = (self.witness is None, self.witness or "")
        times = (self.late_start, self.late_end, self.early_start, self.early_end)
        return (list(RULES).index(self.rule), -self.strength, named, *times)


def told(
    rule: str,
    message: Message,
    strength: int,
    witness: str | None,
    spans: tuple[Span, Span],
    requirement: str = "",
) -> Violation:
    """Return a violation of a requirement: without one, of the usual one of its rule."""
    late, early = spans
    requirement = requirement or RULES[rule].cases[0].requirement
    key = (requirement, message.run, message.queue, message.name)
    times = (late.start, late.end, early.start, early.end)
    return Violation(*key, rule, strength, witness, *times)

"""Recorded runs: a counterexample's operations and answers followed again, without a candidate.

The file only walks through a recorded run. `replay` judges the steps by the present oracle, and the
report page shows what the oracle knows after each. The results of a final drain check and views of
the inside are not recorded, so they cannot be judged again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Cases
from brokerproof.checks.oracle.streams import judged
from brokerproof.checks.search.counterexamples import Counterexample, Line
from brokerproof.checks.search.findings import goes_on
from brokerproof.checks.trace.bindings import MODES
from brokerproof.checks.trace.moves import operation_of
from brokerproof.models.language.read.pointwise import TooManyCases
from brokerproof.spec.protocol.operations import Operation

__all__ = ["Followed", "NotRecorded", "follow", "known_cases"]


class NotRecorded(Exception):
    """A counterexample holds no answers to judge; the message is one line."""


@dataclass(frozen=True)
class Followed:
    """One recorded step, its breaches, and the oracle after it."""

    line: Line
    operation: Operation
    breaches: tuple[Breach, ...]
    oracle: Oracle


def follow(found: Counterexample) -> Iterator[Followed]:
    """Yield each recorded step as the present oracle judges it; all share one oracle.

    The walk ends with a breach that the oracle cannot follow beyond. Raises `NotRecorded`, and
    `Unfollowable` if the oracle cannot go on.
    """
    if found.claims is None:
        raise NotRecorded("it is from before answers were recorded; run `brokerproof check` again")
    oracle = Oracle(found.claims)
    last = len(found.steps)
    for number, line in enumerate(found.steps, start=1):
        operation = operation_of(line.move, oracle.bindings)
        if operation is None:
            raise Unfollowable(f"step {number} settles a message that is not held")
        if number == last and _misbehaved(found, line):
            breaches = [Breach("protocol", found.seen)]
        else:
            breaches = oracle.observe(operation, line.answer)
        yield Followed(line, operation, tuple(breaches), oracle)
        if not all(map(goes_on, breaches)):
            return


def _misbehaved(found: Counterexample, line: Line) -> bool:
    """Whether the record holds a misbehaviour in place of an answer.

    Judging again cannot change that, so the recorded breach stands.
    """
    return (
        found.requirement == "protocol"
        and line.error is not None
        and line.error.code == "internal"
        and line.error.message == found.seen
    )


def known_cases(oracle: Oracle) -> Cases:
    """Return the latest cases that the observations leave open.

    If the order of the events is unknown, one lawful order stands for all.
    """
    cases: Cases = next(
        (row.cases for row in reversed(oracle.window.rows) if row.cases), frozenset()
    )
    if oracle.streams is None or not cases:
        return cases
    bindings = oracle.bindings
    browsing = MODES["browse"] in bindings.frame.rows[bindings.contract.row_of("mode")]
    try:
        found = judged(oracle.streams, cases, oracle.rules, bindings.frame, every_order=browsing)
    except TooManyCases:
        return cases
    return found.cases if found.failure is None else found.stuck_in or cases

"""Verdicts: the outcome of each requirement, with its reason.

`kept` carries how often the requirement was exercised, `broken` its counterexample, `inconclusive`
its reason. A requirement that the candidate does not claim is `not claimed`, never passed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.search.coverage import Coverage
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import OFFERED, Level, Requirement


class Outcome(Enum):
    """What can be said of a requirement."""

    KEPT = "kept"
    BROKEN = "broken"
    INCONCLUSIVE = "inconclusive"
    NOT_CLAIMED = "not claimed"

    @property
    def is_judged(self) -> bool:
        """Whether the requirement was tested and its outcome is known."""
        return self in {Outcome.KEPT, Outcome.BROKEN}


WORST_FIRST = (Outcome.BROKEN, Outcome.INCONCLUSIVE, Outcome.KEPT, Outcome.NOT_CLAIMED)
"""The order in which verdicts are shown and counted."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one requirement, with its evidence."""

    requirement: Requirement
    outcome: Outcome
    exercised: int = 0
    reason: str = ""
    counterexample: Counterexample | None = None


@dataclass
class Evidence(Coverage):
    """What the stages have seen, before the verdicts.

    `offered` is what the candidate has beside its claims (`OFFERED` of the requirements). `doubted`
    gives, for a requirement, why its tests are not enough. `lost` names the part of the run that
    was lost with its process. `under_way` names the operation that had not returned at the cap in
    seconds.
    """

    broken: dict[str, Counterexample] = field(default_factory=dict)
    masked: dict[str, str] = field(default_factory=dict)
    cut_short: str = ""
    offered: frozenset[str] = frozenset()
    doubted: dict[str, str] = field(default_factory=dict)
    lost: str = ""
    under_way: str = ""

    def keep(self, found: Counterexample) -> None:
        """Keep a counterexample unless a better one of the same requirement is known.

        A shorter one is better, and among equally short ones a certified one.
        """
        known = self.broken.get(found.requirement)
        if known is None or _goodness(found) < _goodness(known):
            self.broken[found.requirement] = found

    def merge(self, other: Evidence) -> None:
        """Add evidence from elsewhere, for instance from another process."""
        self.add(other)
        for found in other.broken.values():
            self.keep(found)
        self.masked = other.masked | self.masked
        self.doubted |= other.doubted
        self.lost = self.lost or other.lost
        self.under_way = self.under_way or other.under_way

    def without_counts(self) -> Evidence:
        """Return what was found, without how often anything was seen."""
        return Evidence(
            broken=self.broken, masked=self.masked, doubted=self.doubted, lost=self.lost
        )

    def never_carried_out(self) -> list[str]:
        """Return the operations that had to succeed and were never answered `ok`."""
        asked = {name for name, _ in self.outcomes}
        return sorted(name for name in asked if not self.outcomes[name, True])


def _goodness(found: Counterexample) -> tuple[int, bool]:
    return len(found.steps), found.certificate.grade == "not certified"


def is_claimed(requirement: Requirement, claims: Capabilities, offered: frozenset[str]) -> bool:
    """Whether the requirement applies to a candidate with these claims and offers."""
    return meet(claims, [need for need in requirement.needs if need not in offered])


def meet(claims: Capabilities, needs: Iterable[str]) -> bool:
    """Whether claims meet all needs. A need is a claim, or alternatives, as in `browse|get`.

    A need for one of several values names it after a colon, as in `modes:browse`.
    """
    return all(any(_claims(claims, each) for each in need.split("|")) for need in needs)


def _claims(claims: Capabilities, need: str) -> bool:
    name, _, value = need.partition(":")
    if name in OFFERED:
        return False
    claimed = getattr(claims, name)
    if not value:
        return bool(claimed)
    return value in claimed if isinstance(claimed, tuple) else value == claimed


def judge(
    requirements: Mapping[str, Requirement], claims: Capabilities, evidence: Evidence
) -> tuple[Verdict, ...]:
    """Return a verdict for each requirement, in the order of the catalogue."""
    return tuple(_judge(requirement, claims, evidence) for requirement in requirements.values())


def _judge(requirement: Requirement, claims: Capabilities, evidence: Evidence) -> Verdict:
    times = evidence.exercised[requirement.id]
    if requirement.id in evidence.broken:
        found = evidence.broken[requirement.id]
        return Verdict(requirement, Outcome.BROKEN, max(times, 1), found.summary, found)
    if not is_claimed(requirement, claims, evidence.offered):
        return Verdict(requirement, Outcome.NOT_CLAIMED, times)
    if requirement.id in evidence.masked:
        by = evidence.masked[requirement.id]
        reason = f"broken only in traces that break {by} too: mend that first"
        return Verdict(requirement, Outcome.INCONCLUSIVE, times, reason)
    if requirement.id in evidence.doubted:
        return Verdict(requirement, Outcome.INCONCLUSIVE, times, evidence.doubted[requirement.id])
    if evidence.cut_short or evidence.lost:
        reason = evidence.cut_short or evidence.lost
        if evidence.cut_short and evidence.under_way:
            reason += f": {evidence.under_way}"
        return Verdict(requirement, Outcome.INCONCLUSIVE, times, reason)
    never = evidence.never_carried_out()
    if requirement.id == "does-what-it-claims" and never:
        reason = f"no certain outcome was ever seen of: {', '.join(never)}"
        return Verdict(requirement, Outcome.INCONCLUSIVE, times, reason)
    if not times:
        situation = requirement.situation.rstrip(".")
        reason = f"never happened in this run: {situation[0].lower()}{situation[1:]}"
        return Verdict(requirement, Outcome.INCONCLUSIVE, times, reason)
    return Verdict(requirement, Outcome.KEPT, times)


class ExitStatus(Enum):
    """The exit status of the process."""

    KEPT = 0
    BROKEN = 1
    CANNOT_RUN = 2
    INCONCLUSIVE = 3


Counts: TypeAlias = Literal[
    "pass", "failure", "inconclusive", "accepted", "recommended", "not claimed"
]
"""How a verdict counts for the gate: a failure turns it red, an inconclusive one undecided."""


class Excuse(Protocol):
    """The reason for which a failure is accepted, and its last day."""

    @property
    def reason(self) -> str:
        """Why the failure is accepted."""
        ...

    @property
    def expires(self) -> dt.date:
        """The last day on which it is accepted."""
        ...


@dataclass(frozen=True)
class Judgement:
    """A verdict, how it counts, and the known failure that accepts it, if any."""

    verdict: Verdict
    counts_as: Counts
    known: Excuse | None = None


def judgement(
    verdict: Verdict,
    *,
    strict: bool = False,
    accept_inconclusive: bool = False,
    known: Excuse | None = None,
) -> Judgement:
    """Return how a verdict counts; a recommendation counts only when `strict`."""
    binding = strict or verdict.requirement.level is Level.MUST
    match verdict.outcome:
        case Outcome.KEPT:
            return Judgement(verdict, "pass")
        case Outcome.NOT_CLAIMED:
            return Judgement(verdict, "not claimed")
        case Outcome.INCONCLUSIVE:
            accepted = accept_inconclusive or not binding
            return Judgement(verdict, "accepted" if accepted else "inconclusive")
        case Outcome.BROKEN:
            if known is not None:
                return Judgement(verdict, "accepted", known)
            return Judgement(verdict, "failure" if binding else "recommended")


def status_of(judgements: Iterable[Judgement]) -> ExitStatus:
    """Return the exit status of the verdicts on one candidate.

    It is `KEPT` only if at least one requirement was tested.
    """
    found = tuple(judgements)
    counted = {each.counts_as for each in found}
    if "failure" in counted:
        return ExitStatus.BROKEN
    tested = any(each.verdict.outcome.is_judged for each in found)
    return ExitStatus.KEPT if tested and "inconclusive" not in counted else ExitStatus.INCONCLUSIVE


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Return the worst of several exit statuses; without any it is `INCONCLUSIVE`."""
    found = set(statuses) or {ExitStatus.INCONCLUSIVE}
    order = (ExitStatus.CANNOT_RUN, ExitStatus.BROKEN, ExitStatus.INCONCLUSIVE, ExitStatus.KEPT)
    return next(each for each in order if each in found)


def exit_status(
    verdicts: tuple[Verdict, ...], *, strict: bool = False, accept_inconclusive: bool = False
) -> ExitStatus:
    """Return the exit status of verdicts when no failure is known."""
    return status_of(
        judgement(each, strict=strict, accept_inconclusive=accept_inconclusive) for each in verdicts
    )

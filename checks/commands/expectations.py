"""Expected requirements: those that must be judged, claimed or not.

The file owns the complaint about one that was not judged. Without it, a claim that is lost between
two versions of a candidate turns its requirements to *not claimed*, and the gate stays green.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.gate.gate_run import Report
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.spec.nearest import meant
from brokerproof.spec.requirements import Requirement


def known_ids(
    option: str, words: Iterable[str], known: Mapping[str, Requirement], where: str = ""
) -> tuple[str, ...]:
    """Return the ids in words that hold one or, between commas, several; raises `CannotRun`."""
    found = tuple(each.strip() for word in words for each in word.split(","))
    for each in found:
        if each not in known:
            raise CannotRun(
                f"{option}: there is no requirement {each!r}{where}{meant(each, known)}; "
                "`brokerproof requirements` lists all"
            )
    return found


def expected_ids(words: Iterable[str], asked: Mapping[str, Requirement]) -> tuple[str, ...]:
    """Return the ids that words of `--expect` name; raises `CannotRun`."""
    return known_ids("--expect", words, asked, " among those that are asked")


def unmet(expected: Iterable[str], report: Report) -> Iterator[str]:
    """Yield a line for each expected requirement that the gate did not judge."""
    address = without_password(report.address)
    verdicts = {each.requirement.id: each for each in report.verdicts}
    for each in expected:
        verdict = verdicts[each]
        if verdict.outcome is Outcome.NOT_CLAIMED:
            yield f"{each} is expected of {address}, and {not_claimed(verdict)}"
        if verdict.outcome is Outcome.INCONCLUSIVE:
            yield f"{each} is expected of {address}, and was not judged: {verdict.reason}"


def untested(named: Iterable[str], report: Report) -> Iterator[str]:
    """Yield a line for each requirement named in `--only` that a candidate does not claim.

    If no requirement was judged at all, yield a line for that too.
    """
    address = without_password(report.address)
    verdicts = {each.requirement.id: each for each in report.verdicts}
    for each in named:
        if verdicts[each].outcome is Outcome.NOT_CLAIMED:
            yield f"{address}: {each} {not_claimed(verdicts[each])}, so it was not tested"
    if not any(each.outcome.is_judged for each in report.verdicts):
        yield f"{address}: no requirement was judged"


def not_claimed(verdict: Verdict) -> str:
    """Return that a requirement is not claimed, with the claims that it needs."""
    needs = ", ".join(verdict.requirement.needs)
    return f"is not claimed (it needs {needs})"

"""The record of a run of the gate, as `verdict.json` holds it. Every other report is made from it.

The file owns its structure, published as a JSON schema (`docs/reference/verdict.schema.json`). The
record holds no time and no path of the machine, so that the same seed gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.gate.gate_run import Departure, Report
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.verdicts import WORST_FIRST, Counts, ExitStatus, Judgement, Outcome
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import Level

FORMAT: Literal["brokerproof-verdict/1"] = "brokerproof-verdict/1"

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage did, in one line, and whether it did all that its scope holds."""

    stage: str
    did: str
    complete: bool
    operations: Natural


class CoverageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How much the search tried of what it could.

    Of the `scopes`, every behaviour of so many as are `whole` was tried, and in each other one that
    was searched by length every run of `depth` operations. Walks tried so many `transitions`, which
    are operations in states of the contract, of `transitions_met`. `chains` are two or three steps
    in a row that touch the same message, consumer, channel or queue, and `chains_met` counts those
    that were one step away from some run. The largest run had so many `messages`. `situations` is
    how many of the claimed requirements were in a situation in which a fault would show.
    """

    scopes: Natural
    whole: Natural
    depth: Natural
    transitions: Natural
    transitions_met: Natural
    chains: Natural
    chains_met: Natural
    messages: Natural = 0
    situations: Natural
    situations_claimed: Natural


class AcceptedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a failure is known, and the last day on which it is accepted."""

    reason: str
    expires: dt.date


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one requirement.

    `exercised` is how often it was put to the test in a situation where a fault would show.
    `counts_as` is what the verdict does to the gate: only a `failure` turns it red, and what is
    `inconclusive` leaves it undecided; `accepted` is a known failure, or an inconclusive verdict
    that was to be accepted; `recommended` is a recommendation that was not followed.
    """

    requirement: str
    level: Level
    statement: str
    sources: tuple[str, ...]
    verdict: Outcome
    counts_as: Counts
    exercised: Natural
    reason: str = ""
    known: AcceptedFailure | None = None
    counterexample: Counterexample | None = None


class DepartureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A claim by which a candidate lawfully differs from stricter ones, and a trace that shows it.

    No `counterexample` means that the search found none: the candidate may as well claim more.
    """

    claim: str
    value: str | bool
    meaning: str
    sources: tuple[str, ...]
    counterexample: Counterexample | None = None


class TrafficRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The traffic of a recorded queue over time, in bins of equal width, the first from `first` on.

    In each bin: `depth` is how many messages waited at its end, `deliveries` how many were seen,
    `longest_wait` is the longest wait that one of these ended, and `violations` counts those that
    happened in it. Times are in the unit of the history.
    """

    run: str
    queue: str
    first: Natural
    bin_width: Natural
    depth: tuple[Natural, ...]
    deliveries: tuple[Natural, ...]
    longest_wait: tuple[Natural, ...]
    violations: tuple[Natural, ...]


class CandidateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says of one candidate; passwords are left out of its address.

    `warnings` say what in its hello means nothing, and what was asked for and not tested. Older
    files have no `coverage`. Only a recorded history has `traffic`, of its busiest queues.
    """

    candidate: str
    name: str
    version: str
    seed: Natural
    interrupted: bool
    claims: Capabilities
    stages: tuple[StageRecord, ...]
    verdicts: tuple[VerdictRecord, ...]
    coverage: CoverageRecord | None = None
    warnings: tuple[str, ...] = ()
    departures: tuple[DepartureRecord, ...] = ()
    traffic: tuple[TrafficRecord, ...] = ()

    @property
    def found(self) -> tuple[Counterexample, ...]:
        """The counterexamples, in the order of the verdicts."""
        return tuple(v.counterexample for v in self.verdicts if v.counterexample is not None)


class VerdictFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says of all candidates of a run.

    `status` is the exit status: 0 kept, 1 something broken, 3 nothing broken but something
    inconclusive. `requirements` names the frozen set that was asked, `interrupted` says that the
    run was ended before all was tried, and `complaints` say what is wrong with the list of known
    failures, and which expected requirements were not judged.
    """

    format: Literal["brokerproof-verdict/1"]
    status: Literal[0, 1, 3]
    requirements: str
    interrupted: bool
    complaints: tuple[str, ...]
    candidates: tuple[CandidateRecord, ...]


class UnreadableVerdict(Exception):
    """A file is not a verdict; the message is one line with the place and the reason."""


def candidate_record(
    report: Report,
    claims: Capabilities,
    judgements: tuple[Judgement, ...],
    warnings: tuple[str, ...] = (),
) -> CandidateRecord:
    """Return the record of a report and its judgements."""
    address = without_password(report.address)
    return CandidateRecord(
        candidate=address,
        name=report.name,
        version=report.version,
        seed=report.seed,
        interrupted=report.interrupted,
        claims=claims,
        stages=tuple(
            StageRecord(stage=s.name, did=s.did, complete=s.complete, operations=s.operations)
            for s in report.stages
        ),
        coverage=_coverage_record(report, judgements),
        verdicts=tuple(_verdict_record(judgement, address, claims) for judgement in judgements),
        warnings=warnings,
        departures=tuple(_departure_record(each, address) for each in report.departures),
    )


def _coverage_record(report: Report, judgements: tuple[Judgement, ...]) -> CoverageRecord:
    reached = [*report.reached.values()]
    depths = [each.depth for each in reached if each.depth and not each.whole]
    claimed = [each.verdict for each in judgements if each.counts_as != "not claimed"]
    return CoverageRecord(
        scopes=len(reached),
        whole=sum(each.whole for each in reached),
        depth=min(depths, default=0),
        transitions=sum(each.transitions for each in reached),
        transitions_met=sum(each.transitions_met for each in reached),
        chains=sum(each.chains for each in reached),
        chains_met=sum(each.chains_met for each in reached),
        messages=report.messages,
        situations=sum(each.exercised > 0 for each in claimed),
        situations_claimed=len(claimed),
    )


def _departure_record(departure: Departure, address: str) -> DepartureRecord:
    each, trace = departure.difference, departure.shown_by
    return DepartureRecord(
        claim=each.claim,
        value=each.value,
        meaning=each.sentence,
        sources=tuple(map(str, each.sources)),
        counterexample=trace and msgspec.structs.replace(trace, candidate=address),
    )


def _verdict_record(judgement: Judgement, address: str, claims: Capabilities) -> VerdictRecord:
    verdict, known = judgement.verdict, judgement.known
    found = verdict.counterexample
    if found is not None:
        found = msgspec.structs.replace(found, candidate=address, claims=claims)
    return VerdictRecord(
        requirement=verdict.requirement.id,
        level=verdict.requirement.level,
        statement=verdict.requirement.statement,
        sources=tuple(map(str, verdict.requirement.sources)),
        verdict=verdict.outcome,
        counts_as=judgement.counts_as,
        exercised=verdict.exercised,
        reason=verdict.reason,
        known=None
        if known is None
        else AcceptedFailure(reason=known.reason, expires=known.expires),
        counterexample=found,
    )


def verdict_file(
    candidates: tuple[CandidateRecord, ...],
    status: ExitStatus,
    *,
    requirements: str = "latest",
    interrupted: bool = False,
    complaints: tuple[str, ...] = (),
) -> VerdictFile:
    """Return the record of a run."""
    return VerdictFile(
        format=FORMAT,
        status=msgspec.convert(status.value, Literal[0, 1, 3]),
        requirements=requirements,
        interrupted=interrupted or any(candidate.interrupted for candidate in candidates),
        complaints=complaints,
        candidates=candidates,
    )


def worst_first(verdicts: tuple[VerdictRecord, ...]) -> list[VerdictRecord]:
    """Return verdicts in reading order: broken, inconclusive, kept, not claimed."""
    return sorted(verdicts, key=lambda each: WORST_FIRST.index(each.verdict))


def counted(record: CandidateRecord) -> str:
    """Return the counts of the verdicts, worst first."""
    counts = Counter(verdict.verdict for verdict in record.verdicts)
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in WORST_FIRST if counts[outcome]]
    notes = [
        f"{what}: {', '.join(names)}"
        for what, counts_as in (("only recommended", "recommended"), ("known", "accepted"))
        if (
            names := [
                v.requirement
                for v in record.verdicts
                if v.verdict is Outcome.BROKEN and v.counts_as == counts_as
            ]
        )
    ]
    note = f" (of these {'; '.join(notes)})" if notes else ""
    return ", ".join(parts) + note


def covered(coverage: CoverageRecord) -> str:
    """Return what the search covered, in one line."""
    c = coverage
    parts = [f"{c.situations} of {c.situations_claimed} situations"]
    if c.scopes:
        parts.append("1 scope" if c.scopes == 1 else f"{c.scopes} scopes")
    if c.whole:
        parts[-1] += f", {c.whole} of them whole"
    if c.depth:
        operations = "1 operation" if c.depth == 1 else f"{c.depth} operations"
        parts[-1] += f", {'the others' if c.whole else 'each'} up to {operations}"
    if c.transitions_met:
        met = f"{c.transitions_met:,} transitions that they met"
        parts.append(f"walks took {c.transitions:,} of {met}")
    if c.chains_met:
        parts.append(f"{c.chains:,} of {c.chains_met:,} chains of two or three steps")
    if c.messages:
        parts.append(f"{c.messages:,} messages in the largest run")
    return f"covered: {'; '.join(parts)}"


def encoded(content: object) -> bytes:
    """Return a record as the bytes of a file.

    An unpaired surrogate, which a candidate may send and no file can hold, is written as its code.
    """
    try:
        text = msgspec.json.encode(content)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_encodable(msgspec.to_builtins(content)))
    return msgspec.json.format(text, indent=1) + b"\n"


def _encodable(plain: object) -> object:
    match plain:
        case str():
            return plain.encode("utf-8", "backslashreplace").decode("utf-8")
        case list() | tuple():
            return [_encodable(each) for each in plain]
        case dict():
            return {_encodable(key): _encodable(value) for key, value in plain.items()}
        case _:
            return plain


def read(path: Path) -> VerdictFile:
    """Return the record in a file; raises `UnreadableVerdict`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=VerdictFile)
    except OSError as error:
        raise UnreadableVerdict(f"{path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableVerdict(f"{path}: not a verdict: {error}") from error


def schema() -> bytes:
    """Return the JSON schema of `verdict.json`."""
    content = msgspec.json.schema(VerdictFile)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return encoded(dialect | {"title": "brokerproof verdict, format 1"} | _dedented(content))


def _dedented(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without indentation in descriptions, which depends on the Python version."""
    found = dict(schema)
    for key, value in schema.items():
        if isinstance(value, dict):
            found[key] = _dedented(value)
        elif key == "description" and isinstance(value, str):
            found[key] = inspect.cleandoc(value)
    return found

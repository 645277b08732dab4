"""The tests of the pytest plugin: one a requirement and candidate, all judged by one run a session.

The gate runs when the first of a candidate's tests does, so a session that deselects all of them
does not run it. A test fails with the counterexample as its text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from brokerproof.candidates.unavailable import CandidateUnavailable, without_password
from brokerproof.checks.commands.check import chosen_requirements
from brokerproof.checks.commands.configuration import Settings, WrongConfiguration, read_settings
from brokerproof.checks.commands.expectations import expected_ids
from brokerproof.checks.commands.known_failures import KnownFailures, MalformedList, read_known
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.gate.gate_run import EFFORTS
from brokerproof.checks.report.terminal import reason_of
from brokerproof.checks.report.verdict_file import (
    CandidateRecord,
    VerdictRecord,
    candidate_record,
)
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.trace.moves import visible
from brokerproof.spec.requirements import Requirement


@dataclass
class _Session:
    """The options of the session, and the results of each candidate that was run."""

    requirements: dict[str, Requirement]
    expected: tuple[str, ...]
    budget: Budget
    seed: int
    known: KnownFailures
    strict: bool
    accept_inconclusive: bool
    reports: dict[str, Report] = field(default_factory=dict)
    records: dict[str, CandidateRecord] = field(default_factory=dict)

    def record(self, address: str) -> CandidateRecord:
        """Return the record of a candidate; the gate runs on it once."""
        if address not in self.records:
            subject = open_subject(address)
            try:
                report = run_gate(subject, self.requirements, self.budget, self.seed, apart=True)
            finally:
                subject.close()
            if report.interrupted:
                raise KeyboardInterrupt
            self.reports[address] = report
            judgements = tuple(
                self.known.judge(
                    address,
                    verdict,
                    strict=self.strict,
                    accept_inconclusive=self.accept_inconclusive,
                )
                for verdict in report.verdicts
            )
            claims = subject.hello.capabilities
            self.records[address] = candidate_record(report, claims, judgements)
        return self.records[address]


def collected(session: pytest.Session, config: pytest.Config) -> list[pytest.Item]:
    """Return the tests for the options; raises `pytest.UsageError`."""
    items = list(_items(session, config, _asked_for(config)))
    # Plugins have counted the collected tests already; so these are reported like the others.
    report = pytest.CollectReport("brokerproof", "passed", None, [*items])
    config.hook.pytest_collectreport(report=report)
    return items


def _items(
    session: pytest.Session, config: pytest.Config, asked_for: _Session
) -> Iterator[pytest.Item]:
    for address in config.getoption("brokerproof"):
        shown = visible(without_password(address))
        group = _Candidate.from_parent(session, name=shown, nodeid=f"brokerproof::{shown}")
        for requirement in asked_for.requirements:
            yield RequirementItem.from_parent(
                group, name=requirement, address=address, asked_for=asked_for
            )
        if asked_for.known.entries:
            yield KnownFailuresItem.from_parent(
                group, name="known-failures", address=address, asked_for=asked_for
            )


def _asked_for(config: pytest.Config) -> _Session:
    try:
        settings = _settings(config.rootpath)
        name = _option(config, settings, "requirements") or "latest"
        requirements = chosen_requirements(name, settings.only or ())
        known = _option(config, settings, "known")
        today = dt.datetime.now(dt.UTC).date()
        return _Session(
            requirements=requirements,
            expected=expected_ids(settings.expect or (), requirements),
            budget=_budget(config, settings),
            seed=int(_number(config, settings, "seed", 0)),
            known=KnownFailures() if known is None else read_known(Path(known), today),
            strict=_flag(config, settings, "strict"),
            accept_inconclusive=_flag(config, settings, "accept_inconclusive"),
        )
    except (WrongConfiguration, MalformedList, CannotRun) as error:
        raise pytest.UsageError(f"brokerproof: {error}") from error


def _budget(config: pytest.Config, settings: Settings) -> Budget:
    level = EFFORTS[settings.effort or "normal"]
    return Budget(
        int(_number(config, settings, "operations", level.operations)),
        int(_number(config, settings, "examples", level.examples)),
        _number(config, settings, "budget", 0) or None,
        int(_number(config, settings, "interleavings", level.interleavings)),
    )


def _settings(folder: Path) -> Settings:
    """Return the settings of a folder; their file names are relative to it."""
    settings = read_settings(folder)
    named = settings.requirements
    return msgspec.structs.replace(
        settings,
        known=settings.known and str(folder / settings.known),
        requirements=str(folder / named) if named and named.endswith(".toml") else named,
    )


def _option(config: pytest.Config, settings: Settings, name: str) -> str | None:
    value = config.getoption(f"brokerproof_{name}")
    found = getattr(settings, name) if value is None else value
    return None if found is None else str(found)


def _number(config: pytest.Config, settings: Settings, name: str, default: float) -> float:
    value = _option(config, settings, name)
    return default if value is None else float(value)


def _flag(config: pytest.Config, settings: Settings, name: str) -> bool:
    value = config.getoption(f"brokerproof_{name}")
    return bool(getattr(settings, name) if value is None else value)


class _Candidate(pytest.Collector):
    """The parent of a candidate's tests."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: `collected` adds the tests where all others are known."""
        return []


class NotKept(Exception):
    """A requirement is broken or inconclusive; the message is the whole report."""


class _Item(pytest.Item):
    def __init__(
        self, name: str, parent: pytest.Collector, address: str, asked_for: _Session
    ) -> None:
        super().__init__(name, parent)
        self.address, self.asked_for = address, asked_for

    def record(self) -> CandidateRecord:
        """Return the record of the candidate; the gate runs if it has not yet."""
        try:
            return self.asked_for.record(self.address)
        except CandidateUnavailable as error:
            raise NotKept(str(error)) from error

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> object:
        """Show a failure as the gate does, without a traceback."""
        if isinstance(excinfo.value, NotKept):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the heading of a failure."""
        return self.path, None, f"{self.name} of {visible(without_password(self.address))}"


class RequirementItem(_Item):
    """One requirement of one candidate."""

    def runtest(self) -> None:
        """Pass if the requirement is kept."""
        [verdict] = [v for v in self.record().verdicts if v.requirement == self.name]
        if self.name in self.asked_for.expected and not verdict.verdict.is_judged:
            reason = f": {visible(verdict.reason)}" if verdict.reason else ""
            raise NotKept(f"it is expected, and {verdict.verdict.value}{reason}")
        match verdict.counts_as:
            case "pass":
                return
            case "failure":
                raise NotKept(_text(verdict))
            case "inconclusive":
                raise NotKept(f"inconclusive: {visible(verdict.reason)}")
            case "not claimed":
                pytest.skip("not claimed")
            case "accepted" if verdict.known is not None:
                pytest.xfail(visible(reason_of(verdict)))
            case "accepted":
                pytest.skip(f"inconclusive: {visible(verdict.reason)}")
            case "recommended":
                pytest.xfail(f"only recommended: {visible(verdict.reason)}")


def _text(verdict: VerdictRecord) -> str:
    found = verdict.counterexample
    return visible(verdict.reason) if found is None else text_of_counterexample(found)


class KnownFailuresItem(_Item):
    """The list of known failures, checked against one candidate."""

    def runtest(self) -> None:
        """Pass if no entry has expired and none is kept again."""
        self.record()
        complaints = self.asked_for.known.complaints([self.asked_for.reports[self.address]])
        if complaints:
            raise NotKept("\n".join(complaints))

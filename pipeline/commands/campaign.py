"""`brokerproof campaign`: many seeds on a candidate, spread over Spark's workers.

Owns the options, and the files: the report of `check`, the histories of the seeds, and the coverage
of the contract. Verdicts and exit status are those of `check`; so are the shared options.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
from rich.status import Status

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.commands.check import (
    check,
    chosen_requirements,
    ended,
    known_failures,
    make_folder,
)
from brokerproof.checks.commands.known_failures import KnownFailures
from brokerproof.checks.commands.options.types import FiniteRange, IntegerRange
from brokerproof.checks.errors import CannotRun, opened
from brokerproof.checks.report import ci_hosts
from brokerproof.checks.report.folders import undisturbed
from brokerproof.checks.report.terminal import progress_on, screen, show, show_progress
from brokerproof.checks.report.verdict_file import (
    candidate_record,
    verdict_file,
)
from brokerproof.checks.verdicts import ExitStatus, status_of
from brokerproof.checks.workers.interrupts import Interrupts
from brokerproof.pipeline.campaign import coverage as campaign_coverage
from brokerproof.pipeline.campaign import histories as campaign_histories
from brokerproof.pipeline.campaign.campaign import Gathered, Plan, report_on, run, workers_of
from brokerproof.pipeline.commands.options import spark_options
from brokerproof.pipeline.spark.session import session
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.requirements import Requirement

AS_IN_CHECK: Final = (
    "examples",
    "operations",
    "requirements",
    "only",
    "known",
    "today",
    "strict",
    "accept_inconclusive",
    "progress",
)
"""The options shared with `check`."""


@click.command(params=[each for each in check.params if each.name in AS_IN_CHECK])
@click.argument("candidate")
@click.option("--seeds", type=IntegerRange(min=1), required=True, help="How many seeds are run.")
@click.option(
    "--first-seed",
    type=IntegerRange(min=0),
    default=0,
    show_default=True,
    help="The first seed; those that follow it are run too.",
)
@click.option(
    "--limit",
    type=FiniteRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Cap on the time of one seed; what it cuts short is inconclusive.",
)
@spark_options
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".brokerproof-campaign"),
    show_default=True,
    help="Where the report goes, with histories and coverage as Parquet.",
)
def campaign(
    candidate: str,
    seeds: int,
    first_seed: int,
    examples: int,
    operations: int,
    limit: float,
    master: str,
    settings: Mapping[str, str],
    requirements: str,
    only: tuple[str, ...],
    known: Path | None,
    today: dt.datetime | None,
    strict: bool,
    accept_inconclusive: bool,
    report: Path,
    progress: bool | None,
) -> None:
    """Run many seeds on CANDIDATE, spread over Spark's workers, and gather what they find.

    CANDIDATE is named as for `check`. Its scopes are searched once; then each seed draws its
    examples, in a process of its own: a seed in which the candidate dies or hangs costs no other.

    Exit status: that of `check`.
    """
    asked = _Asked(
        plan=Plan(candidate, first_seed, seeds, operations, examples, limit, str(Path.cwd())),
        chosen=chosen_requirements(requirements, only),
        requirements=requirements,
        known=known_failures(known, (today or dt.datetime.now(dt.UTC)).date()),
        strict=strict,
        accept_inconclusive=accept_inconclusive,
        progress=sys.stderr.isatty() if progress is None else progress,
    )
    subject = opened(candidate)
    subject.close()
    make_folder(report)
    gathered = Gathered(asked.plan, report / campaign_histories.FOLDER)
    with _writing(report):
        _clear(report)
        asked.gather(gathered, master, settings)
    with undisturbed():
        status = asked.told(gathered, subject.hello, report)
    sys.exit(status.value)


@dataclass(frozen=True)
class _Asked:
    """The options of this run."""

    plan: Plan
    chosen: dict[str, Requirement]
    requirements: str
    known: KnownFailures
    strict: bool
    accept_inconclusive: bool
    progress: bool
    begun: float = field(default_factory=time.monotonic)

    def gather(self, gathered: Gathered, master: str, settings: Mapping[str, str]) -> None:
        """Run the campaign; Ctrl-C ends it and keeps the results so far."""
        interrupts = Interrupts()
        status = progress_on(self.progress, "starting Spark")
        try:
            with (
                _handlers_of_before(),
                tempfile.TemporaryDirectory(prefix="brokerproof-") as scratch,
                status,
                session(master, Path(scratch), settings) as spark,
                interrupts.listening(),
            ):

                def progress() -> None:
                    interrupts.raise_if_pressed()
                    self._show(gathered, status)

                run(spark, gathered, progress, workers_of(spark))
        except KeyboardInterrupt:
            gathered.interrupted = True

    def _show(self, gathered: Gathered, status: Status) -> None:
        what = f"{len(gathered.seeds)} of {self.plan.seeds} seeds done"
        if gathered.scopes is None:
            what = "searching the scopes, before the seeds"
        failing = f", {len(gathered.failing)} broke a MUST" if gathered.failing else ""
        shown = without_password(self.plan.candidate)
        show_progress(status, {shown: what + failing})

    def told(self, gathered: Gathered, hello: Hello, folder: Path) -> ExitStatus:
        """Write and show the results; return the exit status."""
        found, covered = report_on(gathered, hello, self.chosen)
        judgements = tuple(
            self.known.judge(
                found.address,
                verdict,
                strict=self.strict,
                accept_inconclusive=self.accept_inconclusive,
            )
            for verdict in found.verdicts
        )
        record = candidate_record(found, hello.capabilities, judgements)
        with ci_hosts.commands_off(click.echo, on_host=ci_hosts.on_github(os.environ)):
            show(record, screen(), verbose=True)
        took, worked = time.monotonic() - self.begun, sum(part.seconds for part in gathered.parts)
        click.echo(
            f"{len(gathered.seeds)} seeds in {took:.1f} s; the gate worked for {worked:.1f} s"
        )
        complaints = self.known.complaints([found])
        status = ExitStatus.BROKEN if complaints else status_of(judgements)
        with _writing(folder):
            campaign_coverage.write(covered, folder)
        content = verdict_file(
            (record,),
            status,
            requirements=self.requirements,
            interrupted=gathered.interrupted,
            complaints=complaints,
        )
        return ended(content, folder)


@contextmanager
def _handlers_of_before() -> Iterator[None]:
    """Restore the handler of Ctrl-C: Spark leaves its own behind."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Raise `CannotRun` if the report cannot be written."""
    try:
        yield
    except OSError as error:
        raise CannotRun(
            f"{folder}: {error.strerror or error}; name another folder with --report"
        ) from error


def _clear(folder: Path) -> None:
    """Remove the histories of an earlier campaign, which had other seeds."""
    for old in (folder / campaign_histories.FOLDER).glob("*seed-*.parquet*"):
        old.unlink()

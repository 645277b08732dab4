"""The command `check`: it judges candidates by requirements and writes the report.

The file owns the options and the exit status. Ctrl-C at any moment leaves a report of the findings
so far. `gate` does the judging, and `checks/report` writes the files.
"""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.commands.configuration import Settings, asked
from brokerproof.checks.commands.expectations import expected_ids, known_ids, unmet, untested
from brokerproof.checks.commands.known_failures import KnownFailures, MalformedList, read_known
from brokerproof.checks.commands.options.crash import crash_options, power_over
from brokerproof.checks.commands.options.judging import judging_options
from brokerproof.checks.commands.options.types import FiniteRange, IntegerRange, StricterClaims
from brokerproof.checks.conversation import Tracebacks
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.gate.gate_run import (
    Budget,
    Clock,
    Effort,
    Progress,
    Report,
    budget_of,
)
from brokerproof.checks.gate.host import Host, Hosts, Request
from brokerproof.checks.oracle import contracts
from brokerproof.checks.report import ci_hosts
from brokerproof.checks.report.folders import places_of_counterexamples, undisturbed
from brokerproof.checks.report.forms import PAGE, write_report
from brokerproof.checks.report.terminal import progress_on, screen, show, show_progress
from brokerproof.checks.report.verdict_file import (
    CandidateRecord,
    VerdictFile,
    candidate_record,
    verdict_file,
)
from brokerproof.checks.subjects import ON_THE_WIRE, default_addresses
from brokerproof.checks.trace.moves import visible
from brokerproof.checks.verdicts import ExitStatus, status_of, worst
from brokerproof.checks.workers.interrupts import Interrupts
from brokerproof.checks.workers.worker_pool import Jobs, cores
from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import Requirement


@click.command()
@click.argument("candidates", nargs=-1, metavar="[CANDIDATE]...")
@click.option(
    "--seed",
    type=IntegerRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the stateful stage.",
)
@click.option(
    "--effort",
    type=click.Choice(get_args(Effort)),
    default="normal",
    show_default=True,
    help="How much every stage tries; the next three options override its numbers.",
)
@click.option("--examples", type=IntegerRange(min=0), help="Examples of the stateful stage.")
@click.option(
    "--operations",
    type=IntegerRange(min=1),
    help="Operations at most for each scope of the exhaustive stage; a tenth of them for a driver.",
)
@click.option(
    "--interleavings",
    type=IntegerRange(min=0),
    help="Classes of interleavings at most of each case of the concurrent stage.",
)
@click.option(
    "--budget",
    type=FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Cap on the time, starting and stopping included; what it cuts short is inconclusive.",
)
@click.option(
    "--jobs",
    type=IntegerRange(min=1),
    metavar="N",
    help="Processes that search at once; by default one for each core. The report is the same.",
)
@click.option(
    "--requirements",
    default="latest",
    show_default=True,
    metavar="SET",
    help="The set of requirements to judge by: a published one, latest, or a .toml file.",
)
@judging_options
@click.option(
    "--expect",
    multiple=True,
    metavar="ID,...",
    help="Fail where one of these requirements is not claimed or not judged; may be repeated.",
)
@crash_options
@click.option(
    "--as",
    "than",
    type=StricterClaims(),
    metavar="strict|PROFILE",
    help="List also where the candidate lawfully departs from the strict claims, or from those of "
    "a profile.",
)
@click.option(
    "--accept-inconclusive",
    is_flag=True,
    help="Exit with 0 where nothing is broken but something inconclusive.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".brokerproof"),
    show_default=True,
    help="Where the report goes: verdict.json, report.html, junit.xml and others.",
)
@click.option(
    "--traceback",
    is_flag=True,
    help="Show the tracebacks of a candidate's own exceptions.",
)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal only."
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Show what each stage did, each id of a queue's inside, and what is not claimed.",
)
@click.pass_context
def check(
    ctx: click.Context,
    candidates: tuple[str, ...],
    seed: int,
    effort: Effort,
    examples: int | None,
    operations: int | None,
    interleavings: int | None,
    budget: float | None,
    jobs: int | None,
    requirements: str,
    only: tuple[str, ...],
    expect: tuple[str, ...],
    known: Path | None,
    today: dt.datetime | None,
    crash_command: str | None,
    restart_command: str | None,
    than: Capabilities | None,
    strict: bool,
    accept_inconclusive: bool,
    report: Path,
    traceback: bool,
    progress: bool | None,
    verbose: bool,
) -> None:
    """Judge each CANDIDATE by the requirements; without one, the four embedded references.

    A CANDIDATE is reference:SYSTEM, package.module:factory, path/to/file.py:factory,
    exec:COMMAND, amqp091://, amqp10:// or stomp:// with user:password@host:port/, or private:NAME,
    which is started for the check and gone after it; `brokerproof instances` lists the names.

    Options may also stand in brokerproof.toml, or in pyproject.toml below [tool.brokerproof]; the
    command line wins.

    Exit status: 0 all that is claimed is kept, and something is; 1 something broken, or an expected
    requirement not judged; 2 the gate could not run; 3 something inconclusive, or nothing tested.
    """
    settings = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    chosen = chosen_requirements(requirements, only)
    run = _Check(
        chosen=chosen,
        named=tuple(chosen) if only else (),
        expected=expected_ids(expect, chosen),
        asked=requirements,
        budget=budget_of(effort, operations, examples, budget, interleavings),
        seed=seed,
        known=known_failures(known, (today or dt.datetime.now(dt.UTC)).date()),
        strict=strict,
        accept_inconclusive=accept_inconclusive,
        progress=sys.stderr.isatty() if progress is None else progress,
        verbose=verbose,
        jobs=jobs or cores(),
        than=than,
    )
    addresses = candidates or settings.candidates or default_addresses()
    if _concerned_by_crash_commands(ctx, addresses):
        run.power = power_over(addresses, crash_command, restart_command)
    with Tracebacks.asked(traceback):
        sys.exit(run.reported(addresses, report).value)


PRINTED_LINES_MAX = 20
LOADING_S_MAX = 2.0


@dataclass
class _Check:
    """One run of the command: its options and its results so far."""

    chosen: dict[str, Requirement]
    named: tuple[str, ...]
    expected: tuple[str, ...]
    asked: str
    budget: Budget
    seed: int
    known: KnownFailures
    strict: bool
    accept_inconclusive: bool
    progress: bool
    verbose: bool
    jobs: int
    than: Capabilities | None = None
    reports: list[Report] = field(default_factory=list)
    records: list[CandidateRecord] = field(default_factory=list)
    statuses: list[ExitStatus] = field(default_factory=list)
    interrupted: bool = False
    power: Power | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)

    def reported(self, addresses: tuple[str, ...], folder: Path) -> ExitStatus:
        """Judge each candidate and write the report; raises `CannotRun`."""
        self.hold(addresses, folder)
        with undisturbed():
            return ended(self.record(), folder)

    def hold(self, addresses: tuple[str, ...], folder: Path) -> None:
        """Judge each candidate by the requirements; after an interrupt, skip the rest.

        All are opened before the first is run. Each has an equal part of the cap in seconds. Raises
        `CannotRun`.
        """
        try:
            with self.interrupts.listening():
                self._hold_each(addresses, folder)
        except KeyboardInterrupt:
            self.interrupted = True

    def _hold_each(self, addresses: tuple[str, ...], folder: Path) -> None:
        if len(addresses) > 1:
            contracts.whole()  # each host is a copy of this process, and would trace it anew
        with ExitStack() as open_ones:
            hosts = []
            for number, address in enumerate(addresses, start=1):
                host = open_ones.enter_context(self._host(address, number / len(addresses)))
                host.open()
                warn(f"{host.asked.shown}: {each}" for each in host.warnings)
                hosts.append(host)
            make_folder(folder)
            self._hold_in_order(Hosts(hosts, self.jobs))

    def _hold_in_order(self, hosts: Hosts) -> None:
        """Show each candidate's verdicts in its turn; a second Ctrl-C awaits nothing more."""
        while True:
            try:
                host = self._await_next(hosts)
                if host is None:
                    return
                host.__exit__(None, None, None)
                report = host.report()
                self._take(host, report)
                self.interrupts.pressed |= report.interrupted and not self.interrupted
                self.interrupts.raise_if_pressed()
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted, self.interrupts.pressed = True, False
                hosts.interrupt()

    def _host(self, address: str, part: float) -> Host:
        seconds = None if self.budget.seconds is None else self.budget.seconds * part
        asked = Request(
            address,
            without_password(address),
            self.chosen,
            self.budget,
            self.seed,
            Jobs(self.jobs),
            self.power,
            self.than,
        )
        # Loading the commands counts too.
        return Host(asked, Clock(seconds, begun_s_ago=min(time.process_time(), LOADING_S_MAX)))

    def _await_next(self, hosts: Hosts) -> Host | None:
        """Show progress until the next candidate is judged, and return its host."""
        status = progress_on(self.progress, "starting")
        did: dict[str, str] = {}

        def progress(host: Host) -> Progress:
            def tell(stage: str, operations: int) -> None:
                self.interrupts.raise_if_pressed()
                did[host.asked.shown] = f"{stage}, {operations} operations"
                show_progress(status, did)

            return tell

        with status:
            return hosts.await_next(progress)

    def _take(self, host: Host, report: Report) -> None:
        self.reports.append(report)
        judgements = tuple(
            self.known.judge(
                report.address,
                verdict,
                strict=self.strict,
                accept_inconclusive=self.accept_inconclusive,
            )
            for verdict in report.verdicts
        )
        left_out = tuple(untested(self.named, report))
        warnings = (*host.warnings, *left_out)
        record = candidate_record(report, host.hello.capabilities, judgements, warnings)
        self.records.append(record)
        self.statuses += [status_of(judgements), *([ExitStatus.INCONCLUSIVE] if left_out else [])]
        with ci_hosts.commands_off(click.echo, on_host=ci_hosts.on_github(os.environ)):
            if len(self.records) > 1:
                click.echo()
            show(record, screen(), verbose=self.verbose)
            if report.printed and status_of(judgements) is not ExitStatus.KEPT:
                last = report.printed.splitlines()[-PRINTED_LINES_MAX:]
                click.echo("\n".join(["the candidate printed last:", *map(visible, last)]))
        warn(left_out)

    def record(self) -> VerdictFile:
        """Return the record to report."""
        complaints = (
            *self.known.complaints(self.reports),
            *(line for report in self.reports for line in unmet(self.expected, report)),
        )
        status = ExitStatus.BROKEN if complaints else worst(self.statuses)
        if self.interrupted and status is ExitStatus.KEPT and not self.accept_inconclusive:
            # Candidates that were not begun have no verdict that could say so.
            status = ExitStatus.INCONCLUSIVE
        return verdict_file(
            tuple(self.records),
            status,
            requirements=self.asked,
            interrupted=self.interrupted,
            complaints=complaints,
        )


def warn(lines: Iterable[str]) -> None:
    """Print lines on standard error; control characters in them are made visible."""
    for line in lines:
        click.echo(f"warning: {visible(line)}", err=True)


def ended(record: VerdictFile, folder: Path) -> ExitStatus:
    """Write the report, tell the host, and return the exit status; raises `CannotRun`."""
    for complaint in record.complaints:
        click.echo(visible(complaint))
    if record.interrupted:
        click.echo("interrupted: the report says what was found so far")
    try:
        write_report(record, folder)
        if ci_hosts.on_github(os.environ):
            for line in ci_hosts.annotations_of(record):
                click.echo(line)
            place = os.environ.get("GITHUB_STEP_SUMMARY")
            if place:
                ci_hosts.append_summary(record, Path(place))
    except OSError as error:
        raise _unwritable(folder, error) from error
    status = ExitStatus(record.status)
    click.echo(f"{_ENDINGS[status]} (exit status {status.value}); report: {folder / PAGE}")
    for place, found in [*places_of_counterexamples(record).items()][:1]:
        how = "--rejudge " if found.recorded else ""
        click.echo(f"to see it again: brokerproof replay {how}{shlex.quote(str(folder / place))}")
    return status


_ENDINGS = {
    ExitStatus.KEPT: "passed",
    ExitStatus.BROKEN: "failed",
    ExitStatus.INCONCLUSIVE: "undecided",
}


def chosen_requirements(name: str, only: tuple[str, ...]) -> dict[str, Requirement]:
    """Return the requirements that two options name; raises `CannotRun`."""
    try:
        requirements = asked(name)
    except CatalogueError as error:
        raise CannotRun(f"--requirements: {error}") from error
    where = "" if name == "latest" else f" in the set {name}"
    named = known_ids("--only", only, requirements, where)
    return {key: value for key, value in requirements.items() if not named or key in named}


def _concerned_by_crash_commands(ctx: click.Context, addresses: tuple[str, ...]) -> bool:
    """Whether the crash commands apply: those in a file are for brokers on the wire only."""
    sources = [ctx.get_parameter_source(name) for name in ("crash_command", "restart_command")]
    on_the_wire = any(address.startswith(ON_THE_WIRE) for address in addresses)
    return on_the_wire or ParameterSource.COMMANDLINE in sources


def known_failures(path: Path | None, today: dt.date) -> KnownFailures:
    """Return the list of known failures, empty if no file is named; raises `CannotRun`."""
    if path is None:
        return KnownFailures()
    try:
        return read_known(path, today)
    except MalformedList as error:
        raise CannotRun(f"--known: {error}") from error


def make_folder(folder: Path) -> None:
    """Make the folder for the report before the gate runs; raises `CannotRun`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> CannotRun:
    return CannotRun(f"{folder}: {error.strerror or error}; name another folder with --report")

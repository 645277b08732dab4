"""The command line: arguments in, words and exit statuses out.

Owns how options are spelled and how an error that a user can cause ends: in one line (what, where,
what to do) and status 2. The work is done elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks import counterexamples, reports
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.explore_command import explore
from brokerproof.checks.gate import Budget, Report, run_gate
from brokerproof.checks.prove_command import prove
from brokerproof.checks.replay import Replay, replay_on
from brokerproof.checks.subjects import Subject, default_addresses, open_subject
from brokerproof.checks.verdicts import ExitStatus, exit_status
from brokerproof.spec.requirements import Requirement, catalogue
from brokerproof.version import __version__


class _RequirementId(click.ParamType[str]):
    name = "requirement"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in catalogue():
            self.fail(
                f"there is no requirement {value!r}; `brokerproof requirements` lists all",
                param,
                ctx,
            )
        return value


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="brokerproof")
def main() -> None:
    """Hold a message queue against the promises that its kind has documented."""


main.add_command(prove)
main.add_command(explore)


@main.command()
@click.argument("candidates", nargs=-1, metavar="[CANDIDATE]...")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the stateful stage.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=Budget.examples,
    show_default=True,
    help="Examples of the stateful stage.",
)
@click.option(
    "--operations",
    type=click.IntRange(min=1),
    default=Budget.operations,
    show_default=True,
    help="Operations at most for each scope of the exhaustive stage.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Cap on the time; what it cuts short is inconclusive.",
)
@click.option(
    "--only",
    multiple=True,
    type=_RequirementId(),
    metavar="REQUIREMENT",
    help="Judge only this requirement; may be repeated.",
)
@click.option(
    "--strict", is_flag=True, help="Let recommendations (SHOULD) decide the exit status too."
)
@click.option(
    "--accept-inconclusive",
    is_flag=True,
    help="Exit with 0 where nothing is broken but something inconclusive.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".brokerproof"),
    show_default=True,
    help="Where verdict.json and counterexamples go.",
)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal."
)
def check(
    candidates: tuple[str, ...],
    seed: int,
    examples: int,
    operations: int,
    budget: float | None,
    only: tuple[str, ...],
    strict: bool,
    accept_inconclusive: bool,
    folder: Path,
    progress: bool | None,
) -> None:
    """Hold each CANDIDATE against the requirements; without one, the embedded reference broker.

    A CANDIDATE is reference:SYSTEM, package.module:factory, path/to/file.py:factory, or
    amqp091://user:password@host:port/.

    Exit status: 0 all claimed requirements kept; 1 something broken; 2 the gate could not run; 3
    nothing broken, something inconclusive.
    """
    subjects = [_opened(address) for address in candidates or default_addresses()]
    _make_folder(folder)
    chosen = {key: value for key, value in catalogue().items() if not only or key in only}
    allowed = Budget(operations, examples, budget)
    found: list[Report] = []
    # Where there is no terminal to fit, lines are as long as a log can show.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    for subject in subjects:
        try:
            report = _run(subject, chosen, allowed, seed, progress)
        finally:
            subject.close()
        reports.show(report, console)
        found.append(report)
        if report.interrupted:
            break
    verdicts = tuple(verdict for report in found for verdict in report.verdicts)
    status = exit_status(verdicts, strict=strict, accept_inconclusive=accept_inconclusive)
    try:
        path = reports.write(found, folder, status.value)
    except OSError as error:
        raise _CannotRun(
            f"{folder}: {error.strerror or error}; name another folder with --report"
        ) from error
    click.echo(f"report: {path}")
    sys.exit(status.value)


def _run(
    subject: Subject,
    chosen: dict[str, Requirement],
    budget: Budget,
    seed: int,
    progress: bool | None,
) -> Report:
    shown = sys.stderr.isatty() if progress is None else progress
    if not shown:
        return run_gate(subject, chosen, budget, seed)
    status = Console(stderr=True).status(f"{subject.address}: starting")
    with status:
        return run_gate(
            subject,
            chosen,
            budget,
            seed,
            lambda stage, operations: status.update(
                f"{subject.address}: {stage}, {operations} operations (Ctrl-C shows what was found)"
            ),
        )


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("candidate", required=False)
def replay(file: Path, candidate: str | None) -> None:
    """Run the counterexample in FILE again, on its own candidate or on another.

    Says, step by step, what was answered then and now, and where expected and seen part.

    Exit status: 0 the candidate keeps the promise on this trace; 1 it breaks it; 2 it could not
    run.
    """
    try:
        found = counterexamples.read(file)
    except counterexamples.UnreadableCounterexample as error:
        raise _CannotRun(f"{error}; name a file that `brokerproof check` wrote") from error
    subject = _opened(candidate or found.candidate)
    try:
        result = replay_on(found, subject)
    except CannotStart as error:
        raise _CannotRun(f"{subject.address}: {error}") from error
    finally:
        subject.close()
    for line in result.lines:
        click.echo(line)
    sys.exit(_REPLAYED[result.outcome].value)


_REPLAYED = {
    Replay.KEPT: ExitStatus.KEPT,
    Replay.SAME: ExitStatus.BROKEN,
    Replay.OTHER: ExitStatus.BROKEN,
    Replay.UNFOLLOWED: ExitStatus.INCONCLUSIVE,
}


@main.command()
@click.argument("requirement", required=False, type=_RequirementId())
def requirements(requirement: str | None) -> None:
    """List the requirements, or explain one."""
    if requirement is None:
        width = max(map(len, catalogue()))
        for each in catalogue().values():
            click.echo(f"{each.id:<{width}}  {each.level.value:<6}  {each.statement}")
        return
    one = catalogue()[requirement]
    click.echo(f"{one.id} ({one.level.value})")
    click.echo(f"  {one.statement}")
    click.echo(f"  exercised when: {one.situation}")
    for source in one.sources:
        click.echo(f"  source: {source}")
    if one.needs:
        click.echo(f"  asked of candidates that claim: {', '.join(one.needs)}")


def _make_folder(folder: Path) -> None:
    """Make the folder for the report before anything is run for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise _CannotRun(f"{folder}: {reason}; name another folder with --report") from error


def _opened(address: str) -> Subject:
    try:
        return open_subject(address)
    except CandidateUnavailable as error:
        raise _CannotRun(str(error)) from error


class _CannotRun(click.ClickException):
    """The gate could not run; click prints the one line."""

    exit_code = ExitStatus.CANNOT_RUN.value

"""The command line: the group of commands, and the small ones; each larger one has its own file.

The file owns the spelling of options. An error that a user can cause ends in one line (what, where,
what to do) and status 2.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import closing
from pathlib import Path

import click

from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.unavailable import HIDDEN, without_password
from brokerproof.checks.commands.check import check
from brokerproof.checks.commands.configuration import WrongConfiguration, asked, read_settings
from brokerproof.checks.commands.explore import explore
from brokerproof.checks.commands.init import init
from brokerproof.checks.commands.instances import private_instances
from brokerproof.checks.commands.interleave import interleave
from brokerproof.checks.commands.options.crash import crash_options, power_over
from brokerproof.checks.commands.plugged_commands import PluggedGroup
from brokerproof.checks.commands.prove import prove
from brokerproof.checks.commands.where import lines_about, where
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.errors import CannotRun, opened
from brokerproof.checks.replay import Replay, Replayed, rejudge, replay_on
from brokerproof.checks.report import verdict_file
from brokerproof.checks.report.folders import VERDICT
from brokerproof.checks.search import counterexamples
from brokerproof.checks.verdicts import ExitStatus, worst
from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.invariants import invariants, invariants_of
from brokerproof.spec.nearest import meant
from brokerproof.spec.requirements.frozen import frozen, published_sets
from brokerproof.version import __version__


@click.group(cls=PluggedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="brokerproof")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Judge a message queue by the documented requirements of its kind."""
    if ctx.invoked_subcommand != check.name:
        return
    try:
        settings = read_settings(Path.cwd())
    except WrongConfiguration as error:
        raise CannotRun(str(error)) from error
    ctx.obj = settings
    ctx.default_map = {"check": settings.named()}


main.add_command(check)
main.add_command(init)
main.add_command(prove)
main.add_command(explore)
main.add_command(interleave)
main.add_command(where)
main.add_command(private_instances)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("candidate", required=False)
@click.option(
    "--rejudge",
    is_flag=True,
    help="Judge the recorded answers again, without a candidate; FILE may be a report's folder.",
)
@click.option(
    "--requirements",
    default="latest",
    show_default=True,
    metavar="SET",
    help="With --rejudge: the set of requirements to judge by.",
)
@crash_options
def replay(
    file: Path,
    candidate: str | None,
    rejudge: bool,
    requirements: str,
    crash_command: str | None,
    restart_command: str | None,
) -> None:
    """Run the counterexample in FILE again, on its own candidate or on another.

    Shows, step by step, the answers then and now, and where expected and seen differ. If no step
    breaks anything, all channels are closed and all queues emptied, since a message may be lost
    that no step asks for.

    Exit status: 0 no step breaks a requirement; 1 one does, this or another; 2 it could not run; 3
    it could not be decided.
    """
    if rejudge:
        if candidate is not None:
            raise CannotRun("--rejudge asks no candidate; leave CANDIDATE or --rejudge out")
        _rejudge(file, requirements)
    found = _read(file)
    if candidate is None and found.recorded:
        raise CannotRun(f"{file}: it is of a recording; add --rejudge, or name a CANDIDATE")
    address = candidate or found.candidate
    if f":{HIDDEN}@" in address:
        again = address.replace(HIDDEN, "PASSWORD")
        raise CannotRun(
            f"{file}: the password is not kept in reports; try brokerproof replay {file} '{again}'"
        )
    power = power_over((address,), crash_command, restart_command)
    try:
        with closing(opened(address, power)) as subject:
            result = replay_on(found, subject)
    except CannotStart as error:
        raise CannotRun(f"{without_password(address)}: {error}") from error
    except PowerFailed as error:
        raise CannotRun(str(error)) from error
    _say(result)
    sys.exit(_REPLAYED[result.outcome].value)


def _rejudge(place: Path, requirements: str) -> None:
    """Judge recorded runs again by the present oracle; ends the process."""
    try:
        chosen = frozenset(asked(requirements))
    except CatalogueError as error:
        raise CannotRun(f"--requirements: {error}") from error
    files = [place]
    if place.is_dir():
        files = sorted(path for path in place.rglob("*.json") if path.name != VERDICT)
    if not files and (place / VERDICT).is_file():
        click.echo("nothing was broken in this report, so there is nothing to judge again")
        sys.exit(ExitStatus.KEPT.value)
    if not files:
        raise CannotRun(f"{place}: there are no counterexamples below it")
    statuses = set()
    for file in files:
        result = rejudge(_read(file), chosen)
        _say(result)
        statuses.add(_REPLAYED[result.outcome])
    if len(files) > 1:
        click.echo(f"{len(files)} runs judged again")
    sys.exit(worst(statuses).value)


def _read(file: Path) -> counterexamples.Counterexample:
    try:
        return counterexamples.read(file)
    except counterexamples.UnreadableCounterexample as error:
        raise CannotRun(f"{error}; name a file that `brokerproof check` wrote") from error


def _say(result: Replayed) -> None:
    for line in result.lines:
        click.echo(line)


_REPLAYED = {
    Replay.KEPT: ExitStatus.KEPT,
    Replay.SAME: ExitStatus.BROKEN,
    Replay.OTHER: ExitStatus.BROKEN,
    Replay.UNFOLLOWED: ExitStatus.INCONCLUSIVE,
}


@main.command()
@click.argument("requirement", required=False)
@click.option(
    "--requirements",
    "name",
    default="latest",
    show_default=True,
    metavar="SET",
    help="List a published set, or one in a .toml file.",
)
@click.option("--sets", is_flag=True, help="List the published sets.")
@click.option(
    "--freeze",
    metavar="NAME",
    help="Print the catalogue as a set with this name, for a file; its digest goes to stderr.",
)
@click.option(
    "--invariants",
    "system",
    is_flag=False,
    flag_value="",
    metavar="[SYSTEM]",
    help="List what documented systems keep inside, and what holds it; SYSTEM is qpid-pull, say.",
)
def requirements(
    requirement: str | None, name: str, sets: bool, freeze: str | None, system: str | None
) -> None:
    """List the requirements, or explain one; an id of an invariant is explained too."""
    if system is not None:
        _list_invariants(system)
        return
    if sets:
        click.echo("\n".join(published_sets()))
        return
    if freeze is not None:
        text = frozen(freeze)
        click.echo(text, nl=False)
        click.echo(f"sha256 {hashlib.sha256(text.encode()).hexdigest()}", err=True)
        return
    try:
        listed = asked(name)
    except CatalogueError as error:
        raise CannotRun(f"--requirements: {error}") from error
    if requirement is None:
        width = max(map(len, listed), default=0)
        for each in listed.values():
            click.echo(f"{each.id:<{width}}  {each.level.value:<6}  {each.statement}")
        return
    if requirement not in listed and requirement not in invariants():
        raise CannotRun(
            f"there is no requirement {requirement!r}{meant(requirement, listed)}; "
            "`brokerproof requirements` lists all"
        )
    click.echo("\n".join(lines_about(requirement)))


def _list_invariants(system: str) -> None:
    try:
        found = invariants_of(system) if system else invariants()
    except CatalogueError as error:
        raise CannotRun(str(error)) from error
    for each in found.values():
        holds = f"{len(each.held)} hold it" if each.held else "nothing holds it"
        holds += ", in part" if each.held and each.uncovered else ""
        click.echo(f"{each.id:<8}{each.statement} [{holds}]")


@main.command()
def schema() -> None:
    """Print the JSON schema of verdict.json."""
    click.echo(verdict_file.schema().decode(), nl=False)

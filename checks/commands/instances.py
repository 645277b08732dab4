"""The command `instances`: the private brokers there are, what each lacks, and its installation.

The file owns the table and its words. What Maven Central has is fetched when asked for; for a
package of the system or of Python the command to type is told, and never run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FrameType

import click
from rich.console import Console

from brokerproof.candidates.instances.registry import PRIVATE, Choice, chosen, instances
from brokerproof.candidates.instances.servers import private_server
from brokerproof.candidates.signals import handled_by
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.errors import CannotRun


@click.group(name="instances", invoke_without_command=True)
@click.pass_context
def private_instances(ctx: click.Context) -> None:
    """List the brokers that the gate can start for itself, and what each lacks here.

    Each is a candidate: private:NAME?protocol=PROTOCOL&version=VERSION; what is listed first is the
    default. The seconds were measured on two busy cores.
    """
    if ctx.invoked_subcommand is None:
        _list()


def _list() -> None:
    rows = [("name", "version", "protocols", "starts in", "survives a kill", "here")]
    told = []
    for choice in all_choices():
        missing = choice.missing()
        rows.append(
            (
                choice.name,
                choice.version,
                ", ".join(choice.instance.protocols),
                f"{choice.release.start_s:.1f} s",
                "what is durable" if choice.instance.durable else "nothing",
                "missing" if missing else "ready",
            )
        )
        if missing is not None:
            told.append(f"{choice.name} {choice.version}: {missing.what}; {missing.remedy}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(padded).rstrip())
    for line in told:
        click.echo(line)


def all_choices() -> Iterator[Choice]:
    """Yield each release of each instance, by its first protocol."""
    for name, instance in instances().items():
        for version in instance.releases:
            yield chosen(f"{name}?version={version}")


@private_instances.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--all", "everything", is_flag=True, help="Every release that Maven Central has.")
def install(names: tuple[str, ...], *, everything: bool) -> None:
    """Fetch what NAME needs from Maven Central, or tell the command that installs it.

    NAME is broker-j, say, or 'broker-j?version=10.1.0'. The files go to the user's cache folder and
    are held to pinned SHA-256 sums.

    Exit status: 0 all is there now; 2 something is missing still.
    """
    try:
        choices = [chosen(name) for name in names]
    except CandidateUnavailable as error:
        raise CannotRun(str(error)) from error
    if everything:
        choices += [each for each in all_choices() if each.files.pins and each not in choices]
    if not choices:
        raise CannotRun("no instance is named; name some, or --all; `brokerproof instances` lists")
    for choice in choices:
        with Console(stderr=True).status(f"fetching {choice.name} {choice.version} by mvn"):
            try:
                fetched = choice.files.install()
            except CandidateUnavailable as error:
                raise CannotRun(str(error)) from error
        where = f", in {choice.files.folder}" if fetched else ""
        missing = choice.missing()
        if missing is None:
            click.echo(f"{choice.name} {choice.version}: ready{where}")
        else:
            click.echo(f"{choice.name} {choice.version}: {missing.what}; {missing.remedy}")
    if any(choice.missing() for choice in choices):
        raise CannotRun("something is missing still; run the commands above")


@private_instances.command()
@click.argument("name")
def run(name: str) -> None:
    """Start NAME, print its address, and stop it on Ctrl-C or SIGTERM.

    Exit status: 0 it was stopped; 1 it ended by itself; 2 it could not be started.
    """
    with handled_by(_stop_asked), contextlib.suppress(KeyboardInterrupt):
        try:
            with private_server(f"{PRIVATE}{name.removeprefix(PRIVATE)}") as server:
                click.echo(server.url)
                status = server.wait()
                raise click.ClickException(f"{server.name} ended by itself with status {status}")
        except CandidateUnavailable as error:
            raise CannotRun(str(error)) from error


def _stop_asked(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt

"""The group of commands, to which other parts add theirs by the entry point `brokerproof.commands`.

Such a part may need packages that are extras. It is loaded when its command is used, and a missing
package is reported in one line. Ctrl-C, too, ends in one line if the command does not handle it,
however far loading or the command has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import click

from brokerproof.candidates.extras import installs, not_installed
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.workers.interrupts import STATUS, ending_at_once

GROUP = "brokerproof.commands"
INSTALL: Final = installs("pipeline")
"""The command that installs what the plugged commands need."""


class NotInstalled(CannotRun):
    """A command needs a package that is an extra."""


class PluggedGroup(click.Group):
    """A group whose commands are its own and those of entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in order."""
        return sorted({*super().list_commands(ctx), *(point.name for point in _points())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; raises `CannotRun` if it needs an extra that is missing."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for point in _points():
            if point.name == cmd_name:
                return _loaded(point)
        return None

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the whole command; raises `CannotRun` if it is misspelled."""
        with _told_in_a_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the chosen command; an unhandled Ctrl-C ends it with one line."""
        try:
            with _told_in_a_line():
                result: object = super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(STATUS)
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for the help text; those that cannot be loaded say what to do."""
        rows = []
        for name in self.list_commands(ctx):
            try:
                command = self.get_command(ctx, name)
            except NotInstalled:
                rows.append((name, f"not installed; run: {INSTALL}"))
            else:
                if command is not None and not command.hidden:
                    rows.append((name, command.get_short_help_str(limit=60)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@contextmanager
def _told_in_a_line() -> Iterator[None]:
    """Raise `CannotRun` where click would print several lines of usage."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        command = "brokerproof" if error.ctx is None else error.ctx.command_path
        what = error.format_message().rstrip(".")
        raise CannotRun(f"{what}; see `{command} --help`") from error


def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _loaded(point: EntryPoint) -> click.Command:
    try:
        with ending_at_once():
            command = point.load()
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise NotInstalled(f"{point.name}: {not_installed(missing, 'pipeline')}") from error
    assert isinstance(command, click.Command)
    return command

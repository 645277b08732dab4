"""The group of commands, to which other parts add theirs by the entry point `brokerproof.commands`.

Such a part may need packages that are extras. It is loaded when its command is asked for, and where
a package is missing that is said in one line.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import click

from brokerproof.checks.errors import CannotRun

GROUP = "brokerproof.commands"


class PluggedGroup(click.Group):
    """A group whose commands are its own and those of entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in order."""
        return sorted({*super().list_commands(ctx), *(point.name for point in _points())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; raises `CannotRun` where it needs what is not installed."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for point in _points():
            if point.name == cmd_name:
                return _loaded(point)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for the help text; those that cannot be loaded say why."""
        rows = []
        for name in self.list_commands(ctx):
            try:
                command = self.get_command(ctx, name)
            except CannotRun as error:
                rows.append((name, str(error)))
            else:
                if command is not None and not command.hidden:
                    rows.append((name, command.get_short_help_str(limit=60)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _loaded(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise CannotRun(
            f"{point.name}: {missing} is not installed; "
            "install it with: pip install 'brokerproof[pipeline]', "
            "or in a checkout with: make pipeline"
        ) from error
    assert isinstance(command, click.Command)
    return command

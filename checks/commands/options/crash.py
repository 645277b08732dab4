"""The options that give power over a broker on the wire: one command kills it, another starts it.

The file owns their spelling, and the errors if one is alone or the candidate is of another kind. A
caller must expect `PowerFailed` while the commands run, since they are the user's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from brokerproof.candidates.crash_commands import CRASH, RESTART, CrashCommands, WrongCommand
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.subjects import ON_THE_WIRE, WIRE

Command = TypeVar("Command", bound=Callable[..., Any])


def crash_options(command: Command) -> Command:
    """Give a command the two options."""
    restart = click.option(
        RESTART, metavar="COMMAND", help="Starts that broker again, on what it left on its disk."
    )
    crash = click.option(
        CRASH,
        metavar="COMMAND",
        help=f"Kills the broker at an {WIRE} or stomp:// URL, and returns when it is dead.",
    )
    return crash(restart(command))


def power_over(
    addresses: tuple[str, ...], crash: str | None, restart: str | None
) -> CrashCommands | None:
    """Return the power over the one broker on the wire; raises `CannotRun`."""
    power = commands_of(crash, restart)
    if power is None:
        return None
    count = sum(address.startswith(ON_THE_WIRE) for address in addresses)
    if count != 1:
        raise CannotRun(
            f"{CRASH}: {count} candidates are on the wire; "
            f"name the one broker that it kills, as {WIRE}user:password@host:port/"
        )
    return power


def commands_of(crash: str | None, restart: str | None) -> CrashCommands | None:
    """Return the power that the two commands give, if they are given; raises `CannotRun`."""
    if crash is None and restart is None:
        return None
    if crash is None or restart is None:
        given, missing = (CRASH, RESTART) if restart is None else (RESTART, CRASH)
        raise CannotRun(f"{given}: there is no {missing}; give both or neither")
    try:
        return CrashCommands(crash, restart)
    except WrongCommand as error:
        raise CannotRun(str(error)) from error

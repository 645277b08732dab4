"""The options by which a command chooses requirements and accepts failures.

They are spelled the same for candidates and for recorded traffic.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def judging_options(command: Command) -> Command:
    """Give a command the options `only`, `known`, `today` and `strict`."""
    options = (
        click.option(
            "--only",
            multiple=True,
            metavar="ID,...",
            help="Judge only these requirements.",
        ),
        click.option(
            "--known",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="List of failures that are accepted for a time, with reasons.",
        ),
        click.option(
            "--today",
            type=click.DateTime(["%Y-%m-%d"]),
            metavar="DATE",
            help="The day by which known failures expire; by default today (UTC).",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Let recommendations (SHOULD) decide the exit status too.",
        ),
    )
    # Decorators apply from last to first.
    for option in reversed(options):
        command = option(command)
    return command

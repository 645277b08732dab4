"""`brokerproof trace`: recorded traffic, and the commands on it."""

from __future__ import annotations

import click

from brokerproof.pipeline.commands.check import check
from brokerproof.pipeline.commands.record import record
from brokerproof.pipeline.commands.watch import watch


@click.group()
def trace() -> None:
    """Record traffic, and hold recorded traffic against the requirements."""


trace.add_command(check)
trace.add_command(record)
trace.add_command(watch)

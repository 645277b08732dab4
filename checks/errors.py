"""Errors that a user can cause: commands end with one line and status 2."""

from __future__ import annotations

import click

from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.conversation import Tracebacks
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.checks.verdicts import ExitStatus


class CannotRun(click.ClickException):
    """The gate could not run; click prints the one line."""

    exit_code = ExitStatus.CANNOT_RUN.value


def opened(address: str, power: Power | None = None) -> Subject:
    """Return the subject of an address, with `power` over it; raises `CannotRun`."""
    try:
        return open_subject(address, power=power)
    except CandidateUnavailable as error:
        raise CannotRun(f"{error}\n{Tracebacks.of(error.__cause__)}".strip()) from error

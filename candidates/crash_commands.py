"""Power over a broker: killing it without warning, and starting it again on its disk.

The file defines this for a broker outside of this process (`Power`), and implements it by two
commands for a broker that the user runs. It does not know how the broker is spoken to. A failure
here says nothing about the broker, so it ends the run (`PowerFailed`) and is never a finding.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from typing import IO, Protocol

COMMAND_S_MAX = 120.0
"""A command that takes longer has failed."""

OUTPUT_CHARACTERS_MAX = 300


class Power(Protocol):
    """Kills a broker and starts it again; both raise `PowerFailed`."""

    @property
    def is_ours(self) -> bool:
        """Whether the broker runs for the gate alone, and ends with it."""
        ...

    def crash(self) -> None:
        """Kill the broker; it is dead when this returns, and its memory is lost."""
        ...

    def restart(self) -> None:
        """Start the broker on its disk; it may need longer until it listens."""
        ...

    def close(self) -> None:
        """Release the resources; a broker of our own no longer runs."""
        ...


class PowerFailed(BaseException):
    """A broker could not be killed or started; the message is one line.

    It is no `Exception`, since the gate takes a candidate's exceptions for the candidate's faults.
    """


class CrashCommands:
    """A broker that the user runs, killed and started by two commands.

    They are run without a shell, one at a time, in a session of their own: Ctrl-C does not reach
    the processes that `restart` leaves running. Status 0 is success.

    >>> CrashCommands("docker kill broker", "docker start broker").is_ours
    False
    """

    is_ours = False

    def __init__(self, crash: str, restart: str) -> None:
        self._crash, self._restart = _words(crash, CRASH), _words(restart, RESTART)

    def crash(self) -> None:
        """Run the command that kills."""
        _run(self._crash, CRASH)

    def restart(self) -> None:
        """Run the command that starts."""
        _run(self._restart, RESTART)

    def close(self) -> None:
        """Do nothing: the broker is not ours."""


CRASH, RESTART = "--crash-command", "--restart-command"


class WrongCommand(ValueError):
    """A command is malformed; the message is one line."""


def _words(command: str, option: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise WrongCommand(f"{option}: {str(error).lower()} in {command!r}") from error
    if not words:
        raise WrongCommand(f"{option}: there is no command in {command!r}")
    return words


def _run(words: list[str], option: str) -> None:
    """Run a command to its end; raises `PowerFailed` unless it succeeds in time."""
    shown = shlex.join(words)
    # Into a file: processes that the command leaves running would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, no shell
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or error
            raise PowerFailed(f"{option}: {shown}: {reason}; name a program that runs") from error
        try:
            status = process.wait(COMMAND_S_MAX)
        except BaseException as error:
            _kill(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise PowerFailed(
                f"{option}: {shown}: not done within {COMMAND_S_MAX:g} s; "
                "let it return once the broker is dead or started"
            ) from error
        if status:
            raise PowerFailed(
                f"{option}: {shown}: ended with status {status}{_last_said(output)}; run it by hand"
            )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_said(output: IO[bytes]) -> str:
    output.seek(0)
    lines = [line.strip() for line in output.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line]
    return f" and said {said[-1][:OUTPUT_CHARACTERS_MAX]!r}" if said else ""

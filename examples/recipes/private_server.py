"""A server of its own for each recipe: started once in a process, and gone with that process.

The file owns what every recipe needs: a folder, a user, a start, an end. It knows no product. The
gate makes a candidate for each run, and runs them in copies of its process. So a server is started
for each process and kept from run to run, and a recipe empties it on `reset`.

A process that is killed does not clean up: the kernel ends its server, and the process from which
it was copied removes the folder. `brokerproof check` ends its workers that way.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TypeVar

from brokerproof.candidates.instances.processes import end, kill, last_line, ordinary_user, spawn
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.uninterrupted import uninterrupted

START_DEADLINE_S = 30.0
REMOVAL_DEADLINE_S = 10.0
POLL_S = 0.01

Kept = TypeVar("Kept")


class PrivateServer:
    """One server, from `start` to `close`, with a temporary `folder` that its user owns.

    `name` is used in messages, `install` is the remedy when `program` is missing, and `user` runs
    it if we are root.
    """

    def __init__(self, name: str, program: Path, install: str, user: str = "nobody") -> None:
        self.name, self.program = name, program
        if not program.exists():
            raise CandidateUnavailable(name, what=f"there is no {program}", remedy=install)
        self._owner = ordinary_user(name, user)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{program.name}-", dir=_home()))
        if self._owner is not None:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(self.folder)}
        self._log = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self, command: Sequence[str]) -> None:
        """Run a command to its end, as the server's user and in its folder."""
        with self._log.open("wb") as output:
            process = spawn([*command], self._environment, self.folder, output, self._owner)
        try:
            status = process.wait(START_DEADLINE_S)
        finally:
            kill(process)
        if status:
            raise self._unavailable(f"{command[0]} ended with status {status}")

    def start(
        self,
        arguments: Sequence[str],
        is_ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the program, and return when `is_ready` says so.

        `environment` is added to the server's. Raises `CandidateUnavailable` if the server ends by
        itself, or is not ready in time.
        """
        self._environment.update(environment or {})
        with self._log.open("wb") as output, uninterrupted():
            self._process = spawn(
                [str(self.program), *arguments],
                self._environment,
                self.folder,
                output,
                self._owner,
            )
        until = time.monotonic() + START_DEADLINE_S
        while not is_ready():
            status = self._process.poll()
            if status is not None:
                raise self._unavailable(f"the server ended with status {status} while starting")
            if time.monotonic() > until:
                raise self._unavailable(f"it was not ready within {START_DEADLINE_S:.0f} s")
            time.sleep(POLL_S)

    def close(self) -> None:
        """End the server, and remove its folder."""
        if self._process is not None:
            end(self._process)
            self._process = None
        _remove(self.folder)

    def _unavailable(self, what: str) -> CandidateUnavailable:
        said = last_line(self._log)
        self.close()
        return CandidateUnavailable(
            self.name, what=f"{what}; {said}", remedy=f"run {self.program} by hand to see more"
        )


_KEPT: dict[tuple[int, str], object] = {}
"""What each process keeps until its end; copies of a process find what is not theirs here too."""

_HOME: list[Path] = []
"""The folder of all servers' folders, once there is one."""


def once(name: str, start: Callable[[], Kept], close: Callable[[Kept], None]) -> Kept:
    """Return what `start` returned for this name in this process; `close` it at the end of both.

    >>> once("a list", list, list.clear) is once("a list", list, list.clear)
    True
    """
    key = os.getpid(), name
    if key not in _KEPT:
        kept = start()
        _KEPT[key] = kept
        # Unlike atexit, this is called at the end of a worker of multiprocessing too.
        Finalize(None, close, args=(kept,), exitpriority=2)
    return _KEPT[key]  # type: ignore[return-value]


def _home() -> Path:
    if not _HOME:
        home = Path(tempfile.mkdtemp(prefix="brokerproof-recipes-"))
        home.chmod(0o711)  # the servers' users must reach their own folders
        _HOME.append(home)
        Finalize(None, _remove, args=(home,), exitpriority=1)
    return _HOME[0]


def _remove(folder: Path) -> None:
    """Remove a folder; servers that the kernel has just killed may still write for a moment."""
    until = time.monotonic() + REMOVAL_DEADLINE_S
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(POLL_S)

"""A private server: on loopback, on free ports, in a temporary folder, removed at the end.

The file owns the life of one server and of the helpers that it needs, and the first words of each
protocol, by which it knows that the server is ready. A subclass knows one product; the operations
on a broker are not known here. Invariant: after `stop` none of its processes and folders is left,
even if the server had failed. If our process dies before `stop`, the kernel ends the processes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.instances.processes import (
    POLL_S,
    end,
    end_leftovers,
    free_ports,
    kill,
    last_line,
    processes_at_home,
    spawn,
)
from brokerproof.candidates.instances.registry import Choice
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS_MAX = 3
ANSWER_S_MAX = 10.0

PORTS = 4
"""How many free ports each start is given: the first is the port of the protocol."""

PORT_TAKEN = ("eaddrinuse", "address already in use")
"""What a server writes when another program has its port, in small letters."""

FIRST_WORDS = {
    # A header, and how the frame of connection.start begins (AMQP 0-9-1, 4.2.2 and 4.2.3).
    "amqp091": (b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"),
    # A header for SASL, answered by the same (AMQP 1.0, 5.3.1).
    "amqp10": (b"AMQP\x03\x01\x00\x00", b"AMQP\x03\x01\x00\x00"),
    # Without 1.2, in which CoilMQ refuses the virtual host that RabbitMQ needs.
    "stomp": (
        b"CONNECT\naccept-version:1.0,1.1\nhost:/\nlogin:guest\npasscode:guest\n\n\x00",
        b"CONNECTED",
    ),
}
"""For each protocol: a client's first words, and how the answer of a server that is up begins."""


@dataclass(frozen=True)
class Launch:
    """How one server is started: its command, what it finds in its environment, its helpers.

    The helpers are started before it and outlive its crashes. `owner` is the user that runs all of
    them; None is our own. `ready` is what the server writes when it is up, where its port answers
    before that; empty where it does not.
    """

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    helpers: tuple[list[str], ...] = ()
    owner: pwd.struct_passwd | None = None
    ready: str = ""


class PrivateServer(ABC):
    """One server for as long as the ``with`` block lasts, or from `start` to `stop`.

    Start it from a thread that outlives it: the kernel ends the server with that thread.
    """

    is_ours = True
    start_deadline_s = 60.0

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self._folder: Path | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ports: list[int] = []
        self._launch = Launch([])

    @abstractmethod
    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Write the server's configuration into its empty folder, and say how it is started."""

    @property
    def name(self) -> str:
        """The product and the release, for messages."""
        return self.choice.title

    @property
    def url(self) -> str:
        """The server's address, as a candidate for the gate; known once it is started."""
        port = self._ports[0] if self._ports else 0
        profile = self.choice.release.profile
        named = f"?profile={profile}" if profile else ""
        return f"{self.choice.protocol}://guest:guest@127.0.0.1:{port}/{named}"

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes of the server, its helpers and their children; none when stopped."""
        return () if self._folder is None else processes_at_home(self._folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and return when it answers its protocol's first words.

        Raises `CandidateUnavailable` when it is not installed, ends by itself, or is not ready
        within `start_deadline_s`; nothing is left behind then either.
        """
        assert self._folder is None, "this server is running"
        missing = self.choice.missing()
        if missing is not None:
            raise missing
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                self._start_once()
            except _PortTakenError as error:
                self.stop()
                if attempt == ATTEMPTS_MAX:
                    raise CandidateUnavailable(
                        self.name,
                        what=f"other programs took its ports {attempt} times",
                        remedy="try again",
                    ) from error
            except BaseException:
                # A server that is still starting ignores a polite request.
                self._stop(kill)
                raise
            else:
                return

    def stop(self) -> None:
        """End the server, politely and then by force, and remove its folder.

        Ctrl-C meanwhile ends it by force at once.
        """
        try:
            self._stop(end)
        except KeyboardInterrupt:
            self._stop(kill)
            raise

    def crash(self) -> None:
        """Kill the server without warning; its helpers and its folder stay.

        Its writes are kept: a process is killed, not the machine
        (`docs/explanation/durability.md`).
        """
        kill(self._processes.pop())

    def restart(self) -> None:
        """Start the server on its old folder and ports, and return when it answers.

        Raises `CandidateUnavailable` if it does not come back, and `PowerFailed` if another program
        has taken its port, which is no fault of the server. The folder stays until `stop`.
        """
        assert self._folder is not None, "this server was never started"
        # A server that has not come up, or has ended by itself.
        while len(self._processes) > len(self._launch.helpers):
            kill(self._processes.pop())
        with self._log.open("wb") as output:
            self._spawn(self._launch.command, output)
        try:
            self._wait_until_ready()
        except _PortTakenError as error:
            raise PowerFailed(
                f"{self.name}: another program took its port while it was down; try again"
            ) from error

    def close(self) -> None:
        """End the server at once: the gate no longer needs its data."""
        self._stop(kill)

    def wait(self) -> int:
        """Return the status of the server once it has ended."""
        return self._processes[-1].wait()

    @property
    def _log(self) -> Path:
        assert self._folder is not None
        return self._folder / "server.log"

    @property
    def _environment(self) -> dict[str, str]:
        own = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self._folder),
        }
        return own | self._launch.environment

    def _start_once(self) -> None:
        folder = self._folder = Path(tempfile.mkdtemp(prefix=f"brokerproof-{self.choice.name}-"))
        self._ports = free_ports(PORTS, self.name)
        launch = self._launch = self.furnish(folder, self._ports)
        if launch.owner is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, launch.owner.pw_uid, launch.owner.pw_gid)
        with self._log.open("wb") as output:
            for command in (*launch.helpers, launch.command):
                self._spawn(command, output)
        self._wait_until_ready()

    def _stop(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        for process in reversed(self._processes):  # the server while it still has its helpers
            how(process)
        self._processes.clear()
        if self._folder is not None:
            end_leftovers(self._folder)
            shutil.rmtree(self._folder)
            self._folder = None

    def _spawn(self, command: list[str], output: IO[bytes]) -> None:
        folder = self._folder
        assert folder is not None
        with uninterrupted():
            process = spawn(command, self._environment, folder, output, self._launch.owner)
            self._processes.append(process)

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + self.start_deadline_s
        server = self._processes[-1]
        while (left_s := until - time.monotonic()) > 0:
            if self._launch.ready in self._log.read_text(errors="replace") and answers(
                self.choice.protocol, self._ports[0], max(POLL_S, min(ANSWER_S_MAX, left_s))
            ):
                return
            # Not yet. Waiting for the process instead of sleeping notices an early end at once.
            try:
                status = server.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue
            raise self._ended_early(status)
        raise CandidateUnavailable(
            self.name,
            what=f"no answer by {self.choice.protocol} within {self.start_deadline_s:.0f} s; "
            f"{last_line(self._log)}",
            remedy="look for load on this machine and try again",
        )

    def _ended_early(self, status: int) -> Exception:
        text = self._log.read_text(errors="replace").lower()
        if any(sign in text for sign in PORT_TAKEN):
            return _PortTakenError(last_line(self._log))
        return CandidateUnavailable(
            self.name,
            what=f"the server ended with status {status} while starting; {last_line(self._log)}",
            remedy=f"run {self._launch.command[0]} by hand to see more",
        )


class _PortTakenError(Exception):
    """Another program took a port after we had chosen it and before the server used it."""


def answers(protocol: str, port: int, within_s: float) -> bool:
    """Return whether a server on loopback answers the first words of a protocol in time."""
    words, answer = FIRST_WORDS[protocol]
    until = time.monotonic() + within_s
    heard = b""
    try:
        with socket.create_connection(("127.0.0.1", port), within_s) as client:
            client.sendall(words)
            while len(heard) < len(answer):
                client.settimeout(max(0.001, until - time.monotonic()))
                more = client.recv(len(answer) - len(heard))
                if not more:
                    return False
                heard += more
    except OSError:
        return False
    return heard == answer

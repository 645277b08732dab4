"""A RabbitMQ of our own: on loopback, on free ports, in a temporary folder, removed at the end.

The file owns the life of one server and of the port mapper (epmd) that it needs. It does not know
the operations on the broker. Invariant: after `stop` none of its processes and folders is left,
even if the server had failed. If our process dies before `stop`, the kernel ends both processes.

Debian's `/usr/sbin/rabbitmq-server` serves only root and the user rabbitmq, so the script behind it
is run. As root we drop root for the children: a server under test does not need it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import click

from brokerproof.candidates.amqp091.connection import Connection, connect
from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.instances.processes import (
    KILL_DEADLINE_S,
    end,
    free_ports,
    kill,
    last_line,
    ordinary_user,
    spawn,
)
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.uninterrupted import uninterrupted
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_DEADLINE_S = 120.0
POLL_S = 0.05
ATTEMPTS_MAX = 3

NAME = "a private RabbitMQ"
INSTALL = "install it with: sudo apt-get install --no-install-recommends rabbitmq-server"


class PrivateRabbitMQ:
    """One server for as long as the ``with`` block lasts, or from `start` to `stop`.

    Start it from a thread that outlives it: the kernel ends the server with that thread.

    >>> with PrivateRabbitMQ() as server:  # doctest: +SKIP
    ...     print(server.url)
    amqp091://guest:guest@127.0.0.1:23017/
    """

    is_ours = True

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment: dict[str, str] = {}
        self._owner: pwd.struct_passwd | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The server's address, as a candidate for the gate."""
        return f"amqp091://guest:guest@127.0.0.1:{self._port}/"

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes of the server, its port mapper and their children; none when stopped."""
        return () if self._folder is None else _processes_at_home(self._folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and return when it takes AMQP connections.

        Raises `CandidateUnavailable` when it is not installed, ends by itself, or is not ready
        within `START_DEADLINE_S`; nothing is left behind then either.
        """
        assert self._folder is None, "this server is running"
        epmd = shutil.which("epmd")
        if not SERVER.exists() or epmd is None:
            missing = SERVER if not SERVER.exists() else "epmd"
            raise CandidateUnavailable(NAME, what=f"there is no {missing}", remedy=INSTALL)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                self._start_once(epmd)
            except _PortTakenError as error:
                self.stop()
                if attempt == ATTEMPTS_MAX:
                    raise CandidateUnavailable(
                        NAME,
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

    def _stop(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        for process in reversed(self._processes):  # the server while it still has its port mapper
            how(process)
        self._processes.clear()
        if self._folder is not None:
            _end_leftovers(self._folder)
            shutil.rmtree(self._folder)
            self._folder = None

    def crash(self) -> None:
        """Kill the server without warning; its port mapper and its folder stay.

        Its writes are kept: a process is killed, not the machine
        (`docs/explanation/durability.md`).
        """
        server = self._processes.pop()
        kill(server)

    def restart(self) -> None:
        """Start the server on its old folder, and return when it takes AMQP connections.

        Raises `CandidateUnavailable` if it does not come back, and `PowerFailed` if another program
        has taken its port, which is no fault of the server. The folder stays until `stop`.
        """
        assert self._folder is not None, "this server was never started"
        while len(self._processes) > 1:  # a server that has not come up, or has ended by itself
            kill(self._processes.pop())
        log = self._folder / "server.log"
        with log.open("wb") as output:
            self._spawn([str(SERVER)], output)
        try:
            self._wait_until_ready(log)
        except _PortTakenError as error:
            raise PowerFailed(
                f"{NAME}: another program took its port while it was down; try again"
            ) from error

    def close(self) -> None:
        """End the server at once: the gate no longer needs its data."""
        self._stop(kill)

    def wait(self) -> int:
        """Return the status of the server once it has ended."""
        return self._processes[-1].wait()

    def _start_once(self, epmd: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="brokerproof-rabbitmq-"))
        self._folder = folder
        self._port, distribution_port, epmd_port = free_ports(3, NAME)
        self._owner = ordinary_user(NAME, "rabbitmq")
        _furnish(folder, self._port, self._owner)
        self._environment = _environment(folder, self._port, distribution_port, epmd_port)
        log = folder / "server.log"
        with log.open("wb") as output:
            self._spawn([epmd, "-address", "127.0.0.1", "-port", str(epmd_port)], output)
            self._spawn([str(SERVER)], output)
        self._wait_until_ready(log)

    def _spawn(self, command: list[str], output: IO[bytes]) -> None:
        assert self._folder is not None
        with uninterrupted():
            process = spawn(command, self._environment, self._folder, output, self._owner)
            self._processes.append(process)

    def _wait_until_ready(self, log: Path) -> None:
        address = Address.parse(self.url, "amqp091")
        until = time.monotonic() + START_DEADLINE_S
        server = self._processes[-1]
        while time.monotonic() < until:
            try:
                connection = _greeted(address, until)
            except CandidateUnavailable:
                # Not yet. Waiting for the process instead of sleeping notices an early end at once.
                try:
                    status = server.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
                raise _ended_early(status, log) from None
            connection.collect()
            return
        raise CandidateUnavailable(
            NAME,
            what=f"no AMQP connection within {START_DEADLINE_S:.0f} s; {last_line(log)}",
            remedy="look for load on this machine and try again",
        )


class _PortTakenError(Exception):
    """Another program took a port after we had chosen it and before the server used it."""


def _greeted(address: Address, end: float) -> Connection:
    deadline = Deadline()
    deadline.start(max(POLL_S, min(10.0, end - time.monotonic())))
    return connect(address, deadline)


def _ended_early(status: int, log: Path) -> Exception:
    text = log.read_text(errors="replace")
    if "eaddrinuse" in text:
        return _PortTakenError(last_line(log))
    return CandidateUnavailable(
        NAME,
        what=f"the server ended with status {status} while starting; {last_line(log)}",
        remedy=f"run {SERVER} by hand to see more",
    )


def _furnish(folder: Path, port: int, owner: pwd.struct_passwd | None) -> None:
    cookie = folder / ".erlang.cookie"
    cookie.write_text(secrets.token_hex(20))
    cookie.chmod(0o400)
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbit.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        "collect_statistics = none\n"
        "disk_free_limit.absolute = 1MB\n"
    )
    if owner is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)


def _environment(folder: Path, port: int, distribution: int, epmd: int) -> dict[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd),
        "RABBITMQ_NODENAME": f"brokerproof{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        # Makes the script become the virtual machine, so that our child is the server itself;
        # -noinput must then be given by hand. Idle schedulers do not spin, which helps small
        # machines.
        "RABBITMQ_ALLOW_INPUT": "1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-noinput +S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
        ),
    }


def _end_leftovers(folder: Path) -> None:
    """Wait until the helpers of an ended server have gone, and kill the rest.

    The Erlang machine puts them into sessions of their own, outside our process group.
    """
    polite_until = time.monotonic() + KILL_DEADLINE_S / 2
    forced_until = time.monotonic() + KILL_DEADLINE_S
    while left := _processes_at_home(folder):
        now = time.monotonic()
        if now > polite_until:
            for process_id in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
        if now > forced_until:
            raise RuntimeError(f"processes {left} of {NAME} survive SIGKILL")
        time.sleep(POLL_S)


def _processes_at_home(folder: Path) -> tuple[int, ...]:
    """Return the processes whose home is `folder`, which is ours alone."""
    mark = b"HOME=" + os.fsencode(folder)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # another user's process, or one that has just ended
        if mark in environment.split(b"\0"):
            found.append(int(entry.name))
    return tuple(sorted(found))


def _stop_asked(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Start a server, print its URL, and stop it on Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, _stop_asked)
    try:
        with PrivateRabbitMQ() as server:
            click.echo(server.url)
            status = server.wait()
            click.echo(f"{NAME} ended by itself with status {status}", err=True)
            return 1
    except KeyboardInterrupt:
        return 0
    except CandidateUnavailable as error:
        click.echo(str(error), err=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())

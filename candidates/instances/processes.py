"""Processes of private servers: free ports, a user, a start, and an end that leaves nothing behind.

The file owns the needs of every private server and knows no product. Each process leads its own
group, and the kernel ends it with the thread that started it. Its home is the server's folder, by
which even a child in another group is found.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import IO

from brokerproof.candidates.unavailable import CandidateUnavailable

STOP_DEADLINE_S = 20.0
KILL_DEADLINE_S = 10.0
PORTS_TRIED_MAX = 1000
POLL_S = 0.05

# Below the range from which the kernel takes the ports of outgoing connections: there, a client
# that polls a port without a listener can in the end be connected to itself.
PORTS = range(20_000, 32_000)


def free_ports(count: int, server: str) -> list[int]:
    """Return different ports of loopback that are free now.

    Raises `CandidateUnavailable` in the name of `server` if there are too few.
    """
    found: list[int] = []
    for _ in range(PORTS_TRIED_MAX):
        port = secrets.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
        if len(found) == count:
            return found
    raise CandidateUnavailable(
        server, what="no free ports on 127.0.0.1", remedy="end some servers and try again"
    )


def ordinary_user(server: str, *names: str) -> pwd.struct_passwd | None:
    """Return the user for the children: the first of `names` that exists; None for our own.

    Only root can become another user. Raises `CandidateUnavailable` in the name of `server`.
    """
    if os.geteuid() != 0:
        return None
    for name in (*names, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CandidateUnavailable(
        server, what="root may not run it and there is no user nobody", remedy="run as another user"
    )


def spawn(
    command: list[str],
    environment: dict[str, str],
    folder: Path,
    output: IO[bytes],
    owner: pwd.struct_passwd | None,
) -> subprocess.Popen[bytes]:
    """Start a server's process; the kernel ends it with the thread that called this."""
    # Where it exists, setpriv makes the kernel end the child when we die before we could.
    setpriv = shutil.which("setpriv")
    if setpriv is not None:
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]
    return subprocess.Popen(  # noqa: S603 - our own command line, no shell
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        user=None if owner is None else owner.pw_uid,
        group=None if owner is None else owner.pw_gid,
        extra_groups=None if owner is None else [],
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a child of ours that leads its own process group, and reap it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a child of ours with its process group, and reap it; one that has ended is no error."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_DEADLINE_S)


def processes_at_home(folder: Path) -> tuple[int, ...]:
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


def end_leftovers(folder: Path) -> None:
    """Wait until the helpers of an ended server have gone, and kill the rest.

    The Erlang machine puts them into sessions of their own, outside our process group.
    """
    polite_until = time.monotonic() + KILL_DEADLINE_S / 2
    forced_until = time.monotonic() + KILL_DEADLINE_S
    while left := processes_at_home(folder):
        now = time.monotonic()
        if now > polite_until:
            for process_id in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
        if now > forced_until:
            raise RuntimeError(f"processes {left} of {folder} survive SIGKILL")
        time.sleep(POLL_S)


def last_line(log: Path) -> str:
    """Return what a server wrote last into its log, but for the frames of a stack of Java."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("at ", "... "))]
    return f"it said last: {said[-1]}" if said else "it said nothing"

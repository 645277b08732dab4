"""A Python candidate behind driver protocol 1: the same broker, as a program of its own.

python -m tests.candidates.driver.serving FILE:FACTORY     a candidate
python -m tests.candidates.driver.serving fault:ID         the broker of a planted fault
python -m tests.candidates.driver.serving mutant:NAME      a mutant of the reference

With `--over-socket` each line and its answer take a connection on the loopback interface, and at
least `ROUND_TRIP_S`.
"""

from __future__ import annotations

import shlex
import socket
import sys
import time
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from brokerproof.candidates.python_object import load_python_object
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.spec.protocol.operations import Operation
from tests.faults.catalogue import make_faulty
from tests.faults.overlay import plant
from tests.mutants.mutations import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.spec.protocol.candidate import Candidate


class _Request(msgspec.Struct):
    """The fields that every request has."""

    id: int
    op: str


ROUND_TRIP_S = 0.0002

OVER_SOCKET = "--over-socket"


def command_of(name: str, *, over_socket: bool = False) -> str:
    """Return the command by which `main` serves this name."""
    words = [sys.executable, "-m", "tests.candidates.driver.serving", name]
    return shlex.join([*words, OVER_SOCKET] if over_socket else words)


def served(name: str) -> Subject:
    """Return what `main` serves under this name, behind a driver."""
    return open_subject(f"exec:{command_of(name)}")


def serve(candidate: Candidate, lines: Iterable[bytes], out: BinaryIO) -> None:
    """Answer each line by one line."""
    request, operation = msgspec.json.Decoder(_Request), msgspec.json.Decoder(Operation)
    encode = msgspec.json.encode
    for line in lines:
        asked = request.decode(line)
        if asked.op == "hello":
            told = msgspec.to_builtins(candidate.hello())
        else:
            answer = candidate.handle(operation.decode(line))
            told = {"ok": answer.error is None, "events": answer.events}
            if answer.error is not None:
                told["error"] = answer.error
            if answer.parked:
                told["parked"] = True
        out.write(encode({"id": asked.id, "ok": True, **told}) + b"\n")
        out.flush()


def serve_over_socket(candidate: Candidate) -> None:
    """Pass each line on through a socket, behind which the candidate answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    for each in (ours, theirs):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer() -> None:
        with theirs, theirs.makefile("rb") as lines, theirs.makefile("wb") as out:
            serve(candidate, lines, out)

    Thread(target=answer, daemon=True).start()
    here = ours.makefile("rwb")
    for line in sys.stdin.buffer:
        asked = time.perf_counter()
        here.write(line)
        here.flush()
        answered = here.readline()
        if not answered:  # The candidate has died, and so does its driver.
            sys.exit(1)
        time.sleep(max(0.0, asked + ROUND_TRIP_S - time.perf_counter()))
        sys.stdout.buffer.write(answered)
        sys.stdout.buffer.flush()


def mutant_named(name: str) -> Mutant:
    """Return the mutant of the reference with this name."""
    return next(each for each in mutants() if each.name == name)


def main() -> None:
    """Serve the candidate that the first argument names."""
    kind, _, name = sys.argv[1].partition(":")
    if kind == "fault":
        candidate = make_faulty(name)
    elif kind == "mutant":
        candidate = plant([mutant_named(name).edit], "qpid-push")()
    else:
        candidate = load_python_object(sys.argv[1])
    if OVER_SOCKET in sys.argv:
        serve_over_socket(candidate)
    else:
        serve(candidate, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()

"""A Python candidate behind driver protocol 1: the same broker, as a program of its own.

python -m tests.candidates.driver.serving FILE:FACTORY     a candidate
python -m tests.candidates.driver.serving fault:ID         the broker of a planted fault
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import msgspec

from brokerproof.candidates.python_object import load_python_object
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.spec.protocol.operations import Operation
from tests.faults.catalogue import make_faulty

if TYPE_CHECKING:
    from brokerproof.spec.protocol.candidate import Candidate


class _Request(msgspec.Struct):
    """The fields that every request has."""

    id: int
    op: str


def served(name: str) -> Subject:
    """Return what `main` serves under this name, behind a driver."""
    words = [sys.executable, "-m", "tests.candidates.driver.serving", name]
    return open_subject(f"exec:{shlex.join(words)}")


def serve(candidate: Candidate) -> None:
    """Answer each line of standard input by one line on standard output."""
    request, operation = msgspec.json.Decoder(_Request), msgspec.json.Decoder(Operation)
    encode = msgspec.json.encode
    for line in sys.stdin.buffer:
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
        sys.stdout.buffer.write(encode({"id": asked.id, "ok": True, **told}) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Serve the candidate that the first argument names."""
    kind, _, name = sys.argv[1].partition(":")
    serve(make_faulty(name) if kind == "fault" else load_python_object(sys.argv[1]))


if __name__ == "__main__":
    main()

"""Compare a search of a driver by sequences, oracle included, with its bare round trips.

Searches the sequences of a scope through the example driver in Python, and keeps every request.
Then a bare loop sends the same requests to the same program and reads its lines. Prints operations
a second of both, the best of several rounds in turn, and the ratio:

    python benchmarks/driver_grade.py [OPERATIONS] [COMMAND]
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from brokerproof.candidates.driver.process import DriverProcess
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.searches import Search
from brokerproof.checks.search.sequences import search_sequences
from brokerproof.checks.subjects import open_subject

ROUNDS = 3
DRIVER = Path(__file__).parents[1] / "examples" / "drivers" / "driver.py"


def searched(command: str, operations: int) -> tuple[int, float, list[bytes]]:
    """Search one scope; return operations, seconds, and the requests."""
    sent: list[bytes] = []
    send = DriverProcess.send

    def kept(self: DriverProcess, line: bytes, within_s: float) -> float:
        sent.append(line)
        return send(self, line, within_s)

    subject = open_subject(f"exec:{command}")
    scope = next(s for s in scopes_for(subject.hello.capabilities) if s.name == "one channel")
    found = Search(scope, "sequences")
    setattr(DriverProcess, "send", kept)  # noqa: B010 (a method is not assigned otherwise)
    try:
        start = time.perf_counter()
        search_sequences(found, subject.fresh, operations, lambda: "")
        seconds = time.perf_counter() - start
    finally:
        setattr(DriverProcess, "send", send)  # noqa: B010
        subject.close()
    return found.operations, seconds, sent


def bare(command: str, lines: Sequence[bytes]) -> float:
    """Return the seconds that the same requests take if the answers are ignored."""
    with subprocess.Popen(
        shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"id":0,"op":"hello","protocol":1}\n')
        process.stdout.readline()
        start = time.perf_counter()
        for line in lines:
            process.stdin.write(line)
            while not process.stdout.read(65536).endswith(b"\n"):
                pass
        seconds = time.perf_counter() - start
        process.stdin.close()
    return seconds


def main() -> None:
    """Measure both in turn."""
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    command = sys.argv[2] if len(sys.argv) > 2 else shlex.join([sys.executable, str(DRIVER)])
    best_search = best_bare = float("inf")
    for _ in range(ROUNDS):
        made, seconds, lines = searched(command, operations)
        best_search = min(best_search, seconds / len(lines))
        best_bare = min(best_bare, bare(command, lines) / len(lines))
    print(f"operations {made}, requests {len(lines)} with the resets")
    print(f"bare       {1 / best_bare:10,.0f} requests/s")
    print(f"sequences  {1 / best_search:10,.0f} requests/s, oracle included")
    print(f"ratio {best_search / best_bare:.2f}")


if __name__ == "__main__":
    main()

"""Compare the gate's side of driver protocol 1 with the bare exchange of lines.

Three loops talk to the same program, which answers every line at once with the same amount of work:
a bare write and read, the exchange with its time limit, and `DriverCandidate.handle` with encoding,
self-check and decoding. Prints operations a second of each, the best of several rounds, and ratios:

    python benchmarks/driver_round_trip.py [OPERATIONS]
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable

from brokerproof.candidates.driver.candidate import DriverCandidate
from brokerproof.candidates.driver.process import DriverProcess
from brokerproof.spec.protocol.operations import Get, Reset

ROUNDS = 15

# The cheapest driver: it finds the id and never reads the rest.
ECHO = """
import os
hello = b',"ok":true,"name":"echo","version":"1","capabilities":{"get":true}}\\n'
while data := os.read(0, 65536):
    number = data[6:data.index(b",")]
    os.write(1, b'{"id":' + number + (hello if number == b"0" else b',"ok":true,"events":[]}\\n'))
"""
COMMAND = [sys.executable, "-I", "-S", "-c", ECHO]
LINE = b'{"id":1,"op":"get","channel":"ch0","queue":"q0","mode":"acknowledge"}\n'


def rate(operations: int, once: Callable[[], object]) -> float:
    """Return operations a second in one round."""
    start = time.perf_counter()
    for _ in range(operations):
        once()
    return operations / (time.perf_counter() - start)


def main() -> None:
    """Measure the three in turn, round by round, so that a busy moment affects all of them."""
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    process = DriverProcess(COMMAND)
    candidate = DriverCandidate(f"exec:{shlex.join(COMMAND)}")
    candidate.handle(Reset())
    get = Get(channel="ch0", queue="q0")
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare:
        assert bare.stdin is not None
        assert bare.stdout is not None
        into, out = bare.stdin.fileno(), bare.stdout.fileno()

        def write_and_read() -> bytes:
            os.write(into, LINE)
            return os.read(out, 65536)

        loops: dict[str, Callable[[], object]] = {
            "bare write and read:": write_and_read,
            "exchange with a limit:": lambda: process.exchange(LINE, 10.0),
            "handle:": lambda: candidate.handle(get),
        }
        best = dict.fromkeys(loops, 0.0)
        for _ in range(ROUNDS):
            for name, once in loops.items():
                best[name] = max(best[name], rate(operations, once))
        bare.stdin.close()
    process.end(5.0)
    candidate.close()
    fastest = best["bare write and read:"]
    for name, found in best.items():
        print(f"{name:<23} {found:10,.0f} operations/s, {fastest / found:.2f} times the bare time")


if __name__ == "__main__":
    main()

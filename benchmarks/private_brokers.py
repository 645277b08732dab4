"""Measure how long each private broker takes to start, to come back after a kill, and to stop.

Prints, for each release that is installed here, the median and the range of several rounds in
seconds, and the memory of its processes in MiB once it answers. Run it on a quiet machine:

    python benchmarks/private_brokers.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from brokerproof.candidates.instances.registry import instances
from brokerproof.candidates.instances.server import PrivateServer
from brokerproof.candidates.instances.servers import private_server

ROUNDS = 5


def seconds_of(action: Callable[[], None]) -> float:
    """Return how long an action takes."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def memory_mib(server: PrivateServer) -> float:
    """Return the resident memory of a server's processes."""
    lines = (
        line.split()
        for process_id in server.process_ids
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines()
    )
    return sum(int(line[1]) for line in lines if line[0] == "VmRSS:") / 1024


def shown(values: list[float], digits: int) -> str:
    """Return median and range."""
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


def measured(address: str, rounds: int) -> str:
    """Return the line of one release."""
    server = private_server(address)
    missing = server.choice.missing()
    if missing is not None:
        return str(missing)
    starts, restarts, stops, memory = [], [], [], []
    for _ in range(rounds):
        starts.append(seconds_of(server.start))
        memory.append(memory_mib(server))
        server.crash()
        restarts.append(seconds_of(server.restart))
        stops.append(seconds_of(server.stop))
    figures = (shown(starts, 1), shown(restarts, 1), shown(stops, 1), shown(memory, 0))
    return " | ".join(("", server.choice.name, server.choice.version, *figures, "")).strip()


def main(rounds: int) -> None:
    """Print a table."""
    print("| name | version | start, s | start after kill -9, s | stop, s | memory, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, instance in instances().items():
        for version in instance.releases:
            print(measured(f"private:{name}?version={version}", rounds), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)

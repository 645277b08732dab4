"""The guard: it ends the drivers of a gate that was killed before it could end them.

It is a process of its own, a script that imports nothing of ours, since it must outlive the gate.
It reads ``watch GROUP`` and ``forget GROUP`` lines. When its input ends, each process group not
forgotten gets the times of the protocol (rule 44): a while to exit by itself, a SIGTERM, another
while, a SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

STEP_S = 0.05


def watched(lines: Iterable[str]) -> set[int]:
    """Return the groups that are still watched when the lines end."""
    groups: set[int] = set()
    for line in lines:
        order, _, group = line.partition(" ")
        if order == "watch":
            groups.add(int(group))
        else:
            groups.discard(int(group))
    return groups


def signalled(groups: set[int], number: int) -> set[int]:
    """Send a signal to groups and return those that still existed."""
    there = set()
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            continue
        there.add(group)
    return there


def gone_within(groups: set[int], seconds: float) -> set[int]:
    """Wait for groups to go by themselves and return those that did not."""
    end = time.monotonic() + seconds
    while (groups := signalled(groups, 0)) and time.monotonic() < end:
        time.sleep(STEP_S)
    return groups


def main() -> None:
    """Watch until the gate is gone, then end the drivers that it left."""
    grace_s = float(sys.argv[1])
    left = gone_within(watched(sys.stdin), grace_s)
    left = gone_within(signalled(left, signal.SIGTERM), grace_s)
    signalled(left, signal.SIGKILL)


if __name__ == "__main__":
    main()

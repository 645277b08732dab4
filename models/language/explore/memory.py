"""A bound on memory during a search, so that it ends with a result instead of being killed.

Linux grants more memory than there is and kills a process that uses it; only a limit of the process
makes an allocation fail in time. If the machine does not report its free memory, there is no bound.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARE = 0.8
"""The share of the free memory that may be used."""


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let allocations fail while the body runs, once most of the memory free now is used."""
    free, size = _free_bytes(), _own_bytes()
    if free is None or size is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    soft, hard = before
    limits = [size + int(free * SHARE), *(each for each in (soft, hard) if each >= 0)]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _free_bytes() -> int | None:
    """Return how much memory is available, if the machine reports it."""
    about = [line.split() for line in _lines("/proc/meminfo")]
    found = [int(words[1]) * 1024 for words in about if words[0] == "MemAvailable:"]
    most, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most and used and most[0].isdecimal():
        found.append(max(int(most[0]) - int(used[0]), 0))
    return min(found, default=None)


def _own_bytes() -> int | None:
    """Return how much of its address space this process uses."""
    for line in _lines("/proc/self/statm"):
        return int(line.split()[0]) * resource.getpagesize()
    return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []

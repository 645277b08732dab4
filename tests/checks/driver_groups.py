"""Which process groups drivers were started in, and whether a process of them is left.

A witness of its own: nothing of how the product looks for processes is used here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokerproof.candidates.driver.process import DriverProcess


@contextlib.contextmanager
def recorded() -> Iterator[list[int]]:
    """Yield the list of the groups of all drivers that are started meanwhile."""
    groups: list[int] = []
    original = DriverProcess.__init__

    def noted(self: DriverProcess, command: list[str]) -> None:
        original(self, command)
        groups.append(self.group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DriverProcess, "__init__", noted)
        yield groups


def running_in(groups: list[int]) -> list[str]:
    """Return the command lines of processes in these groups that run, the dead ones left out."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        # A process may go while it is looked at.
        with contextlib.suppress(OSError):
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if os.getpgid(int(folder.name)) in groups and state not in "ZX":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found

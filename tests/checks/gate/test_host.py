"""Several hosts at once: as many as may run, their reports in order, and Ctrl-C.

The hosts are scripted: each is done after a number of looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from brokerproof.checks.gate.gate_run import Progress
from brokerproof.checks.gate.host import Host, Hosts
from brokerproof.checks.workers.worker_pool import Jobs


@dataclass
class Asked:
    """The part of a request that concerns other hosts."""

    jobs: Jobs = field(default_factory=lambda: Jobs(1))


@dataclass
class Scripted:
    """A host that is done after `looks` looks, and tells its log of each."""

    name: str
    looks: int
    log: list[str]
    runs_alone: bool = False
    asked: Asked = field(default_factory=Asked)

    @property
    def is_done(self) -> bool:
        """Whether no look is left."""
        return not self.looks

    def look(self, progress: Progress) -> None:
        """Take one look, with the processes that the host has."""
        progress("looking", self.looks)
        self.looks -= 1
        self.log.append(f"{self.name}{int(self.asked.jobs)}")

    def interrupt(self) -> None:
        """End with the next look."""
        self.looks = min(self.looks, 1)


def scripted(jobs: int, alone: str = "", **looks: int) -> tuple[Hosts, list[str]]:
    """Return hosts, each done after its number of `looks`, and the log; `alone` names one."""
    log: list[str] = []
    hosts = [Scripted(name, number, log, name == alone) for name, number in looks.items()]
    return Hosts(cast("list[Host]", hosts), jobs), log


def quiet(_host: Host) -> Progress:
    """Show nothing."""
    return lambda _stage, _operations: None


def names(hosts: Hosts) -> list[str]:
    """Return the hosts in the order in which they come."""
    return [cast("Scripted", host).name for host in iter(lambda: hosts.await_next(quiet), None)]


@pytest.mark.parametrize(
    ("jobs", "alone", "looks"),
    [
        # The last one has all processes.
        (2, "", "a1 b1 a1 b1 b1 c1 b1 c1 c2"),
        (4, "", "a1 b1 c1 a1 b1 c1 b2 c2 b4"),
        (1, "", "a1 a1 b1 b1 b1 b1 c1 c1 c1"),
        (2, "c", "a2 a2 b2 b2 b2 b2 c2 c2 c2"),
    ],
)
def test_they_run_side_by_side_and_share_the_processes(jobs: int, alone: str, looks: str) -> None:
    hosts, log = scripted(jobs, alone, a=2, b=4, c=3)
    assert names(hosts) == ["a", "b", "c"]
    assert " ".join(log) == looks


def test_ctrl_c_ends_what_runs_and_begins_no_more() -> None:
    hosts, log = scripted(2, a=1, b=9, c=9, d=9)
    hosts.await_next(quiet)
    with pytest.raises(KeyboardInterrupt):
        hosts.await_next(lambda _host: pressed)
    hosts.interrupt()
    assert names(hosts) == ["b", "c"]
    assert log == ["a1", "b1", "b1", "c1"]


def pressed(_stage: str, _operations: int) -> None:
    """Be interrupted."""
    raise KeyboardInterrupt

"""Count the runs that ours, Loom and Shuttle need to find a race, or to show that there is none.

All run the same protocols, access for access, each with a published mistake and without it:

* `runner`: a thread that enqueues counts its message, notes a change of state, and is the runner if
  there is none. The runner takes the waiting messages, puts the state at rest, and only then checks
  for a change. A runner that *asks too early*, before it has put the state at rest, leaves a
  message behind.
* `place in two`: a consumer's place in two references, as published
(docs/explanation/qpid-pointers.md); a
  message that comes back in between is passed. `place in one` is the pair of both in one reference.

Our search and Loom's try every order of accesses up to exchanging independent ones, each in its own
way. Loom also explores weaker memory orders, so its cells are read by additions of zero. Shuttle
draws priorities at random, as ours can do, or goes depth first through all orders without
reduction. Needs Cargo, which fetches and builds the peers:

    python benchmarks/interleaving_peers.py [RUNS]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.schedules import at_random, with_few_switches
from brokerproof.checks.threads.threads import Body
from brokerproof.reference.shared.atomics import AtomicInteger, AtomicReference

PEERS: Final = Path(__file__).with_suffix("")
RUNS: Final = 100_000
SWITCHES_MAX: Final = 4

AT_REST, SCHEDULED, RUNNING = "at rest", "scheduled", "running"
NOTHING, ENTRY = 0, 1


class Judged(Protocol):
    """The shared state of a protocol's threads, and the check after they have ended."""

    def bodies(self) -> Mapping[str, Body]:
        """Return the body of each thread."""

    def complaints(self) -> Iterator[str]:
        """Yield the failures."""


@dataclass
class Runner:
    """Messages that wait, and the one runner that takes them."""

    asks_too_early: bool
    waiting: AtomicInteger = field(default_factory=AtomicInteger)
    changed: AtomicReference[bool] = field(default_factory=lambda: AtomicReference(False))
    state: AtomicReference[str] = field(default_factory=lambda: AtomicReference(AT_REST))

    def bodies(self) -> Mapping[str, Body]:
        """Return two that enqueue."""
        return {"first": self.enqueue, "second": self.enqueue}

    def complaints(self) -> Iterator[str]:
        """Yield that a message waits."""
        if self.waiting.value:
            yield "a message waits, and no thread was woken"

    def enqueue(self) -> None:
        """Leave a message, and run if no other thread does."""
        self.waiting.increment_and_get()
        self.changed.set(True)
        if self.state.compare_and_set(AT_REST, SCHEDULED):
            self.run()

    def run(self) -> None:
        """Take all messages, until nothing has changed in the meantime."""
        while True:
            self.state.set(RUNNING)
            self.changed.set(False)
            while self.waiting.get() != 0:
                self.waiting.decrement_and_get()
            if self.asks_too_early:
                again = self._has_changed()
                self.state.set(AT_REST)
            else:
                self.state.set(AT_REST)
                again = self._has_changed()
            if not again or not self.state.compare_and_set(AT_REST, SCHEDULED):
                return

    def _has_changed(self) -> bool:
        return self.changed.compare_and_set(True, False)


def next_of(last_seen: int, released: int) -> int:
    """Return the entry that is next at a place, in a queue of one entry."""
    if released != NOTHING and last_seen >= released:
        return released
    return ENTRY if last_seen < ENTRY else NOTHING


@dataclass
class Place:
    """An acquired entry, and the place of a consumer that is to go back to it."""

    seekers: int = 1
    available: AtomicReference[bool] = field(default_factory=lambda: AtomicReference(False))

    def bodies(self) -> Mapping[str, Body]:
        """Return the seeking threads, and the one that gives the entry back."""
        seeking = {f"seeker {n}": self.next_available for n in range(1, self.seekers + 1)}
        return {**seeking, "giver": self.give_back}

    def complaints(self) -> Iterator[str]:
        """Yield that the entry cannot be found."""
        if self.next_available() != ENTRY:
            yield "what came back is passed for ever"

    def next_available(self) -> int:
        """Return the entry if it is available and ahead; move the place over it if it is not."""
        raise NotImplementedError

    def give_back(self) -> None:
        """Make the entry available and move the place back to it."""
        raise NotImplementedError


@dataclass
class PlaceInTwo(Place):
    """As published: two references, changed one after the other."""

    last_seen: AtomicReference[int] = field(default_factory=lambda: AtomicReference(ENTRY))
    released: AtomicReference[int] = field(default_factory=lambda: AtomicReference(ENTRY))

    def next_available(self) -> int:
        """Return the entry if it is available and ahead; move the place over it if it is not."""
        while True:
            last_seen = self.last_seen.get()
            released = self.released.get()
            entry = next_of(last_seen, released)
            if entry == NOTHING or self.available.get():
                return entry
            if self.last_seen.compare_and_set(last_seen, entry):
                self.released.compare_and_set(released, NOTHING)

    def give_back(self) -> None:
        """Make the entry available and move the place back to it, unless it is there already."""
        self.available.set(True)
        while self.available.get():
            released = self.released.get()
            if released != NOTHING or self.released.compare_and_set(NOTHING, ENTRY):
                return


@dataclass
class PlaceInOne(Place):
    """The pair of both in one reference, a new one with every change."""

    place: AtomicReference[tuple[int, int]] = field(
        default_factory=lambda: AtomicReference(pair(ENTRY, ENTRY))
    )

    def next_available(self) -> int:
        """Return the entry if it is available and ahead; move the place over it if it is not."""
        while True:
            place = self.place.get()
            entry = next_of(*place)
            if entry == NOTHING or self.available.get():
                return entry
            self.place.compare_and_set(place, pair(entry, NOTHING))

    def give_back(self) -> None:
        """Make the entry available and replace the place, even if it is there already."""
        self.available.set(True)
        while self.available.get():
            place = self.place.get()
            if self.place.compare_and_set(place, pair(place[0], ENTRY)):
                return


def pair(last_seen: int, released: int) -> tuple[int, int]:
    """Return a new pair: references are compared, not their values."""
    return last_seen, released


PROTOCOLS: Final[Mapping[str, Callable[[], Judged]]] = {
    "runner, asks too early": lambda: Runner(asks_too_early=True),
    "runner": lambda: Runner(asks_too_early=False),
    "place in two": PlaceInTwo,
    "place in one": PlaceInOne,
    "place in one, two seek": lambda: PlaceInOne(seekers=2),
}


@dataclass(frozen=True)
class Line:
    """The result of one search."""

    protocol: str
    tool: str
    way: str
    runs: int
    is_all: bool
    has_found: bool
    ms: float


def ours(name: str, make: Callable[[], Judged], runs: int) -> Iterator[Line]:
    """Search a protocol in our three ways."""
    case = Case(
        name,
        make=lambda _: make(),
        bodies=lambda shared: shared.bodies(),
        judge=lambda shared: shared.complaints(),
    )
    began = time.perf_counter()
    found = explore(case, runs_max=runs)
    ms = (time.perf_counter() - began) * 1e3
    yield Line(
        name, "ours", "every interleaving", found.runs, found.complete, bool(found.failed), ms
    )
    began = time.perf_counter()
    tried = at_random(case, seed=0, runs=min(runs, 10_000))
    ms = (time.perf_counter() - began) * 1e3
    yield Line(name, "ours", "priorities at random", tried.runs, False, bool(tried.failed), ms)
    began = time.perf_counter()
    tried = with_few_switches(case, switches_max=SWITCHES_MAX, runs_max=runs)
    ms = (time.perf_counter() - began) * 1e3
    way = f"at most {SWITCHES_MAX} switches"
    yield Line(name, "ours", way, tried.runs, tried.complete, bool(tried.failed), ms)


def theirs(runs: int) -> Iterator[Line]:
    """Build the peers and let them search all protocols."""
    cargo = shutil.which("cargo")
    if cargo is None:
        print("Loom and Shuttle are built by Cargo, and there is no Cargo here: ours alone")
        return
    with tempfile.TemporaryDirectory() as scratch:
        build = [cargo, "build", "--quiet", "--release", "--target-dir", scratch]
        subprocess.run(build, cwd=PEERS, check=True)
        program = Path(scratch) / "release" / PEERS.name
        ran = subprocess.run(
            [program, str(runs)], capture_output=True, text=True, check=True, cwd=scratch
        )
    for line in ran.stdout.splitlines():
        if line.count("\t") == 6:
            protocol, tool, way, many, is_all, found, ms = line.split("\t")
            yield Line(protocol, tool, way, int(many), bool(is_all), bool(found), float(ms))


def main() -> None:
    """Run all searches on all protocols, print a line each, and check that they agree."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    lines = [line for name, make in PROTOCOLS.items() for line in ours(name, make, runs)]
    lines += theirs(runs)
    print(f"{'protocol':24} {'tool':8} {'way':22} {'runs':>10} {'':4} {'ms':>9}  said")
    for name in PROTOCOLS:
        for line in lines:
            if line.protocol == name:
                said = "a mistake" if line.has_found else "nothing"
                print(
                    f"{name:24} {line.tool:8} {line.way:22} {line.runs:>10,}"
                    f" {'all' if line.is_all else '':4} {line.ms:>9,.1f}  {said}"
                )
        told = {line.has_found for line in lines if line.protocol == name and line.is_all}
        if len(told) > 1:
            sys.exit("they do not agree")


if __name__ == "__main__":
    main()

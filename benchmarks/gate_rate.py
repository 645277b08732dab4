"""Measure the product search: operations a second, and the shares of gate and candidate.

Searches each scope and records every copy, operation, view and fingerprint of the candidate, in
order. The bare candidate repeats this record, without judging. Prints one line a scope: pairs,
operations, rate, microseconds an operation of the bare candidate and of the gate itself (the rest),
and the ratio of both together to the bare candidate. The first candidate costs nearly nothing, so
that its time is the gate's. Run it on a quiet machine:

    python benchmarks/gate_rate.py [CANDIDATE] [OPERATIONS]
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.checks.search.searches import Search, collecting_rarely
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Operation

LIGHT = f"{Path(__file__).with_name('light_queue.py')}:LightQueue"


@dataclass(frozen=True)
class Fork:
    """The candidate with this number was copied; the copy has the next number."""

    of: int


@dataclass(frozen=True)
class Name:
    """The candidate with this number gave its fingerprint."""

    of: int


@dataclass(frozen=True)
class Ask:
    """The candidate with this number carried out an operation."""

    of: int
    operation: Operation


@dataclass
class Tape:
    """The calls of candidates, which are numbered in order of creation; the first is 0."""

    asked: list[Fork | Name | Ask] = field(default_factory=list)
    candidates: int = 1

    def forked(self, of: int) -> int:
        """Note a copy, and return its number."""
        self.asked.append(Fork(of))
        self.candidates += 1
        return self.candidates - 1


class Recorded:
    """A candidate with a tape: passes all calls on and records them."""

    __slots__ = ("candidate", "number", "tape")

    def __init__(self, candidate: Candidate, number: int, tape: Tape) -> None:
        self.candidate, self.number, self.tape = candidate, number, tape

    def hello(self) -> Hello:
        """Return the candidate's introduction."""
        return self.candidate.hello()

    def handle(self, operation: Operation) -> Answer:
        """Let the candidate carry out an operation, and record that."""
        self.tape.asked.append(Ask(self.number, operation))
        return self.candidate.handle(operation)


def recording(copier: Copier) -> Copier:
    """Return the functions that copy recorded candidates and take their fingerprints."""

    def fork(candidate: Candidate) -> Candidate:
        assert isinstance(candidate, Recorded)
        tape = candidate.tape
        return Recorded(copier.fork(candidate.candidate), tape.forked(candidate.number), tape)

    def fingerprint(candidate: Candidate) -> Hashable:
        assert isinstance(candidate, Recorded)
        candidate.tape.asked.append(Name(candidate.number))
        return copier.fingerprint(candidate.candidate)

    return Copier(fork, fingerprint)


def taped(subject: Subject, copier: Copier, scope: Scope, operations: int) -> Tape:
    """Search a scope, and return the calls of the candidate."""
    tape = Tape()
    candidate, oracle = subject.fresh()
    start = Recorded(candidate, 0, tape), oracle
    search(Search(scope, "product"), start, recording(copier), operations, lambda: "")
    return tape


Play: TypeAlias = Callable[[list[Candidate]], object]
"""Repeats recorded calls of the candidates."""


@collecting_rarely()
def bare_seconds(subject: Subject, copier: Copier, tape: Tape) -> float:
    """Return the seconds that all of a tape takes without judging."""
    last_use = {each.of: at for at, each in enumerate(tape.asked)}
    played = [
        (_playing(each, copier), each.of if last_use[each.of] == at else None)
        for at, each in enumerate(tape.asked)
    ]
    unused = subject.fresh()[0]
    candidates = [subject.fresh()[0]]
    start = time.perf_counter()
    for play, done_with in played:
        play(candidates)
        if done_with is not None:
            candidates[done_with] = unused  # a search lets go of it too
    return time.perf_counter() - start


def _playing(each: Fork | Name | Ask, copier: Copier) -> Play:
    fork, fingerprint, of = copier.fork, copier.fingerprint, each.of
    if isinstance(each, Fork):
        return lambda candidates: candidates.append(fork(candidates[of]))
    if isinstance(each, Name):
        return lambda candidates: fingerprint(candidates[of])
    operation = each.operation
    return lambda candidates: candidates[of].handle(operation)


def measure(address: str, operations: int) -> None:
    """Measure every scope of a candidate, and all of them together."""
    subject = open_subject(address)
    copier = copier_of(subject.fresh()[0])
    if isinstance(copier, str):
        sys.exit(f"{address}: {copier}")
    print(f"{subject.hello.name}:")
    made = searching = bare = 0.0
    for scope in scopes_for(subject.hello.capabilities, in_process=True):
        # Searched twice, so that compilation at first use is not counted.
        tape = taped(subject, copier, scope, operations)
        found = Search(scope, "product")
        begin = subject.fresh()
        gc.collect()
        start = time.perf_counter()
        search(found, begin, copier, operations, lambda: "")
        seconds = time.perf_counter() - start
        alone = bare_seconds(subject, copier, tape)
        made, searching, bare = made + found.operations, searching + seconds, bare + alone
        name = f"{scope.name}: {found.pairs} pairs, {found.operations} operations"
        print(f"  {name}, {_rates(found.operations, seconds, alone)}", flush=True)
    print(f"  all scopes: {made:.0f} operations, {_rates(made, searching, bare)}")


def _rates(operations: float, seconds: float, bare: float) -> str:
    each, alone = seconds / operations * 1e6, bare / operations * 1e6
    return (
        f"{operations / seconds:,.0f} operations/s, bare candidate {alone:.1f} µs, "
        f"gate {each - alone:.1f} µs, {each / alone:.1f} times the bare candidate"
    )


def main() -> None:
    """Measure the light candidate, then the named one."""
    address = sys.argv[1] if len(sys.argv) > 1 else "reference:qpid-push"
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    measure(LIGHT, operations)
    measure(address, operations)


if __name__ == "__main__":
    main()

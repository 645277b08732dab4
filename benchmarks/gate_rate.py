"""How fast the gate is: operations a second of the product search, and whose the time is.

Each scope is searched, and what was asked of the candidate is kept: every copy, operation, view
and name of a state, in order. The bare candidate is all that once more, with nobody judging. Prints
one line a scope: pairs, operations, rate, microseconds an operation of the bare candidate and of
the gate itself (the rest), and the ratio of both together to the bare candidate. First comes a
candidate that costs nearly nothing, so that what is left is the gate. Run it on a quiet machine:

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
    """A copy was made of the candidate with this number; it has the next number."""

    of: int


@dataclass(frozen=True)
class Name:
    """The state of the candidate with this number was named."""

    of: int


@dataclass(frozen=True)
class Ask:
    """The candidate with this number was asked for an operation."""

    of: int
    operation: Operation


@dataclass
class Tape:
    """What was asked of candidates, which are numbered as they came; the first is 0."""

    asked: list[Fork | Name | Ask] = field(default_factory=list)
    candidates: int = 1

    def forked(self, of: int) -> int:
        """Note a copy, and return its number."""
        self.asked.append(Fork(of))
        self.candidates += 1
        return self.candidates - 1


class Recorded:
    """A candidate with a tape; what is done with it is done with the candidate."""

    __slots__ = ("candidate", "number", "tape")

    def __init__(self, candidate: Candidate, number: int, tape: Tape) -> None:
        self.candidate, self.number, self.tape = candidate, number, tape

    def hello(self) -> Hello:
        """Return what the candidate says of itself."""
        return self.candidate.hello()

    def handle(self, operation: Operation) -> Answer:
        """Let the candidate carry it out, and note that."""
        self.tape.asked.append(Ask(self.number, operation))
        return self.candidate.handle(operation)


def recording(copier: Copier) -> Copier:
    """Return how recorded candidates are copied and named."""

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
    """Search a scope, and return what was asked of the candidate."""
    tape = Tape()
    candidate, oracle = subject.fresh()
    start = Recorded(candidate, 0, tape), oracle
    search(Search(scope, "product"), start, recording(copier), operations, lambda: "")
    return tape


Play: TypeAlias = Callable[[list[Candidate]], object]
"""Does with the candidates what was done once."""


@collecting_rarely()
def bare_seconds(subject: Subject, copier: Copier, tape: Tape) -> float:
    """Return the seconds that all of a tape takes when nobody judges."""
    last_use = {each.of: at for at, each in enumerate(tape.asked)}
    played = [
        (_playing(each, copier), each.of if last_use[each.of] == at else None)
        for at, each in enumerate(tape.asked)
    ]
    nobody = subject.fresh()[0]
    candidates = [subject.fresh()[0]]
    start = time.perf_counter()
    for play, done_with in played:
        play(candidates)
        if done_with is not None:
            candidates[done_with] = nobody  # a search lets go of it too
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
        # Searched twice, so that what is compiled at first use is not counted.
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
    """Measure the light candidate, then the one that was named."""
    address = sys.argv[1] if len(sys.argv) > 1 else "reference:qpid-push"
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    measure(LIGHT, operations)
    measure(address, operations)


if __name__ == "__main__":
    main()

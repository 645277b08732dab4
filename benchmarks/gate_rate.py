"""How fast the gate is: operations a second of the product search, beside the bare candidate.

Prints one line a scope: pairs, operations, rate, and the ratio to the bare candidate (the same
number of forks, operations and fingerprints without an oracle). Run it on a quiet machine:

    python benchmarks/gate_rate.py [CANDIDATE] [OPERATIONS]
"""

from __future__ import annotations

import sys
import time

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.product import search
from brokerproof.checks.scope_catalogue import scopes_for
from brokerproof.checks.scopes import Scope
from brokerproof.checks.searches import Search, collecting_rarely
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.spec.operations import Declare, Drain, Publish


@collecting_rarely()
def bare_seconds(subject: Subject, copier: Copier, scope: Scope, operations: int) -> float:
    """Return the seconds that so many forks, operations and fingerprints take without judging."""
    candidate, _ = subject.fresh()
    candidate.handle(Declare(queue="q0", order=scope.orders[0]))
    for move in scope.moves(subject.fresh()[1].book):
        if isinstance(move, Publish):
            candidate.handle(move)
    start = time.perf_counter()
    for _ in range(operations):
        fork = copier.fork(candidate)
        fork.handle(Drain())
        copier.fingerprint(fork)
    return time.perf_counter() - start


def main() -> None:
    """Measure every scope of a candidate."""
    address = sys.argv[1] if len(sys.argv) > 1 else "reference:qpid-push"
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    subject = open_subject(address)
    copier = copier_of(subject.fresh()[0])
    if isinstance(copier, str):
        sys.exit(f"{address}: {copier}")
    for scope in scopes_for(subject.hello.capabilities):
        start = time.perf_counter()
        found = Search(scope, "product")
        search(found, subject.fresh(), copier, operations, lambda: "")
        seconds = time.perf_counter() - start
        bare = bare_seconds(subject, copier, scope, found.operations)
        rate = found.operations / seconds
        print(
            f"{scope.name}: {found.pairs} pairs, {found.operations} operations, "
            f"{rate:,.0f} operations/s, {seconds / bare:.1f} times the bare candidate"
        )


if __name__ == "__main__":
    main()

"""How many interleavings of the parallel cases there are, and how fast they are run.

One line a case: classes of interleavings run (and those given up because they were run elsewhere),
accesses, accesses a second with the judging included, the longest run, and whether it was all.

    python benchmarks/interleavings.py [--runs N] [--order fifo|priority] [--case WORDS] [CANDIDATE]
"""

from __future__ import annotations

import argparse
import time

from brokerproof.checks.concurrent.case_catalogue import every_case
from brokerproof.checks.concurrent.interleavings import explore
from brokerproof.checks.concurrent.parallel import parallel_case
from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.subjects import open_subject
from brokerproof.spec.messages import Fifo, Order, Priority

ORDERS: dict[str, Order] = {"fifo": Fifo(), "priority": Priority(levels=3)}


def main() -> None:
    """Run the cases that are asked for."""
    options = argparse.ArgumentParser(description="Interleavings, counted.")
    options.add_argument("--runs", type=int, default=200_000)
    options.add_argument("--order", choices=list(ORDERS), action="append")
    options.add_argument("--case", default="")
    options.add_argument("candidate", nargs="?", default="reference:qpid-push")
    asked = options.parse_args()
    subject = open_subject(asked.candidate)
    print(f"{'case':55} {'runs':>8} {'asleep':>7} {'accesses':>12} {'a second':>9} longest")
    steps, began = 0, time.perf_counter()
    for name in asked.order or ORDERS:
        order = ORDERS[name]
        for parallel in every_case(order):
            if asked.case not in parallel.name:
                continue
            candidate, oracle = subject.fresh()
            copier = copier_of(candidate)
            assert isinstance(copier, Copier), copier
            case = parallel_case(parallel, candidate, copier, oracle)
            start = time.perf_counter()
            found = explore(case, runs_max=asked.runs)
            rate = found.steps / (time.perf_counter() - start)
            steps += found.steps
            told = "" if found.complete else "  not all"
            told += "".join(f"  {'; '.join(failed.complaints)}" for failed in found.failed)
            print(
                f"{name + ': ' + parallel.name:55} {found.runs:8,} {found.asleep:7,}"
                f" {found.steps:12,} {rate:9,.0f} {found.longest:7}{told}",
                flush=True,
            )
    print(f"{steps:,} accesses, {steps / (time.perf_counter() - began):,.0f} a second")


if __name__ == "__main__":
    main()

"""Count the interleavings of the parallel cases, and measure how fast they run.

One line a case: classes of interleavings run (and those given up because they were run elsewhere),
accesses, accesses a second with the judging included, the longest run, and whether it was all.

    python benchmarks/interleavings.py [--runs N] [--order fifo|priority] [--case WORDS] [CANDIDATE]

With `--to-the-end` it prints the table of the pairs and triples in
`docs/explanation/interleavings.md`: if a case has more than so many classes, the same operations
are run on a smaller one.

With `--goals` it prints the time to explore two releases against two deliveries, and two enqueues
against the end of a runner.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.returns_and_deliveries import case_of_returns
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.threads.case_catalogue import (
    case_name,
    cases_for,
    pairs,
    small_cases,
    triples,
)
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.on_threads import Threaded, on_threads
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.operations import Consume, Declare, Get, Publish, SetCredit

ORDERS: dict[str, Order] = {"fifo": Fifo(), "priority": Priority(levels=3)}


def main() -> None:
    """Run the chosen measurement."""
    options = argparse.ArgumentParser(description="Interleavings, counted.")
    options.add_argument("--runs", type=int, default=20_000)
    options.add_argument("--order", choices=list(ORDERS), action="append")
    options.add_argument("--case", default="")
    options.add_argument("--to-the-end", action="store_true")
    options.add_argument("--goals", action="store_true")
    options.add_argument("candidate", nargs="?", default="reference:qpid-push")
    asked = options.parse_args()
    threaded = on_threads(open_subject(asked.candidate))
    assert isinstance(threaded, Threaded), threaded
    orders = {name: ORDERS[name] for name in asked.order or ORDERS}
    if asked.goals:
        _goals(threaded, asked.runs)
    elif asked.to_the_end:
        _to_the_end(threaded, orders, asked.case, asked.runs)
    else:
        _rates(threaded, orders, asked.case, asked.runs)


def _rates(threaded: Threaded, orders: dict[str, Order], words: str, runs_max: int) -> None:
    print(f"{'case':55} {'runs':>8} {'asleep':>7} {'accesses':>12} {'a second':>9} longest")
    steps, began = 0, time.perf_counter()
    for order, parallel in cases_for(threaded.subject.hello.capabilities):
        if words not in parallel.name or order not in orders.values():
            continue
        found, seconds = _timed(threaded.case(parallel), runs_max)
        steps += found.steps
        told = "" if found.complete else "  not all"
        told += "".join(f"  {'; '.join(failed.complaints)}" for failed in found.failed)
        print(
            f"{case_name(order, parallel):55} {found.runs:8,} {found.asleep:7,}"
            f" {found.steps:12,} {found.steps / seconds:9,.0f} {found.longest:7}{told}",
            flush=True,
        )
    print(f"{steps:,} accesses, {steps / (time.perf_counter() - began):,.0f} a second")


def _timed(case: Case[Any], runs_max: int) -> tuple[Explored, float]:
    start = time.perf_counter()
    found = explore(case, runs_max=runs_max)
    return found, time.perf_counter() - start


def _to_the_end(threaded: Threaded, orders: dict[str, Order], words: str, runs_max: int) -> None:
    print("| operations at once | classes | accesses | kept | explored |")
    print("| --- | ---: | ---: | --- | --- |")
    for name, order in orders.items():
        smaller = {each.name: each for each in small_cases(order)}
        for parallel in (*pairs(order), *triples(order)):
            if words in parallel.name:
                for found, size in _sizes(threaded, parallel, smaller[parallel.name], runs_max):
                    kept = found.failed[0].complaints[0] if found.failed else "yes"
                    how = "to the end" if found.complete else "not to the end"
                    print(
                        f"| {name}: {parallel.name}{size} | {found.runs:,} | {found.steps:,} "
                        f"| {kept} | {how} |",
                        flush=True,
                    )


def _sizes(
    threaded: Threaded, parallel: Parallel, smaller: Parallel, runs_max: int
) -> Iterator[tuple[Explored, str]]:
    """Yield the result of a case, or of the same operations in a smaller one if it is too large."""
    found = explore(threaded.case(parallel), runs_max=runs_max)
    if not (found.complete or found.failed):
        yield explore(threaded.case(smaller), runs_max=runs_max), " (small)"
    else:
        yield found, ""


def _goals(threaded: Threaded, runs_max: int) -> None:
    """Print the speed of the search, and the times of the cases named as goals."""
    cases: list[Case[Any]] = [threaded.case(parallel) for parallel in GOALS]
    for case in (*cases, *(case_of_returns(Fifo(), threads) for threads in (2, 3, 4))):
        found, seconds = _timed(case, runs_max)
        assert not found.failed, found.failed
        ended = "all" if found.complete else "the first"
        print(
            f"{case.name}: {ended} {found.runs:,} classes, {found.steps:,} accesses in"
            f" {seconds:.1f} s, {found.steps / seconds:,.0f} a second",
            flush=True,
        )


DECLARE = Declare(queue="q", order=Fifo())
SUBSCRIBED: tuple[Move, ...] = (
    DECLARE,
    Consume(queue="q", consumer="c", channel="ch", credit=Credit(0)),
)
HELD: tuple[Move, ...] = (
    *(Publish(queue="q", message=Message(id=each)) for each in "ab"),
    *(Get(queue="q", channel=f"of {each}") for each in "ab"),
)
RELEASES: tuple[Move, ...] = tuple(Settle(how="release", message=each) for each in "ab")
ENQUEUES: tuple[Move, ...] = tuple(Publish(queue="q", message=Message(id=m)) for m in "mn")
GOALS = (
    Parallel(
        "two enqueues, the end of a runner",
        SUBSCRIBED,
        (ENQUEUES,),
        stirring=(SetCredit(consumer="c", messages=1),),
    ),
    Parallel(
        "two enqueues by two, the end of a runner",
        SUBSCRIBED,
        tuple((each,) for each in ENQUEUES),
        stirring=(SetCredit(consumer="c", messages=1),),
    ),
    Parallel(
        "two releases, a runner that gives both",
        (*SUBSCRIBED, *HELD),
        (RELEASES,),
        stirring=(SetCredit(consumer="c", messages=2),),
    ),
)
"""The case that measures the speed."""


if __name__ == "__main__":
    main()

"""Count the mutants of the reference that the gate kills, and under which requirement.

Makes mutants by rule (`tests/mutants/mutations.py`), runs the gate on each in a separate process
(`tests/mutants/judging.py`), and prints the kill rate, the killing requirements, and the surviving
mutants with their headings in `docs/findings/mutants.md`. Without options it takes a sample, since
all take half an hour:

    python benchmarks/reference_mutants.py [--limit N] [--seed S] [--jobs N]

`--limit 0` takes all. The sample and the gate's examples depend on the seed alone. Each outcome is
printed on standard error as it comes, in the order of the seed: the first N are the sample of
`--limit N`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from brokerproof.checks.workers import watchdog
from tests.mutants.judging import TRIALS, Fate, Judged, judged, warm_up
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.page import explanations

LIMIT: Final = 100
OPERATION_S_MAX: Final = 2.0
"""The limit of an operation that hangs; a sound one takes thousandths of a second."""
MUTANT_S_MAX: Final = 180.0
"""Beyond this a mutant hangs outside the gate's watchdog: in its copies, for instance."""
MEMORY_BYTES_MAX: Final = 4 * 2**30

Result = tuple[Mutant, Judged | str]


def main() -> None:
    """Judge a sample or all, and print the outcomes."""
    options = argparse.ArgumentParser(description="Mutants of the reference under the gate.")
    options.add_argument("--limit", type=int, default=LIMIT, help="how many; 0 takes all")
    options.add_argument("--seed", type=int, default=0, help="of the sample and the examples")
    options.add_argument("--jobs", type=int, default=1, help="how many processes at once")
    chosen = options.parse_args()
    every = mutants()
    taken = sample(every, chosen.limit, chosen.seed)
    print(f"{len(taken)} of {len(every)} mutants, seed {chosen.seed}")
    start = time.perf_counter()
    warm_up(chosen.seed)
    results = []
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for result in pool.map(lambda each: in_its_own_process(each, chosen.seed), taken):
            results.append(result)
            print(f"{len(results)} {line_of(*result)}", file=sys.stderr, flush=True)
    places = {mutant.name: place for place, mutant in enumerate(every)}
    results.sort(key=lambda result: places[result[0].name])
    print("\n".join(lines_of(results)))
    print(f"{time.perf_counter() - start:.0f} s with {chosen.jobs} jobs")


def sample(every: Sequence[Mutant], limit: int, seed: int) -> list[Mutant]:
    """Return so many of them (0: all), in the seed's order; a larger sample begins as a smaller."""
    order = list(every)
    random.Random(seed).shuffle(order)  # noqa: S311 (nothing is secret)
    return order[: limit or None]


def in_its_own_process(mutant: Mutant, seed: int) -> Result:
    """Return a mutant's outcome, or one line on why the gate has none."""
    # Forked, so that each has all modules already; each runs the gate in its own main thread.
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_judge_and_tell, args=(mutant, seed, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(MUTANT_S_MAX):
            return mutant, f"took more than {MUTANT_S_MAX:g} s"
        text = ours.recv_bytes()
    except EOFError:
        return mutant, "ended the process of the gate"
    finally:
        process.kill()
        process.join()
    return mutant, msgspec.json.decode(text, type=Judged | str)


def _judge_and_tell(mutant: Mutant, seed: int, to: object) -> None:
    assert isinstance(to, multiprocessing.connection.Connection)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    watchdog.OPERATION_S_MAX = watchdog.DRAIN_S_MAX = OPERATION_S_MAX
    try:
        told: Judged | str = judged([mutant.edit], seed)
    except Exception as error:  # noqa: BLE001 (a mutant that breaks the gate itself is a result)
        told = f"the gate raised {type(error).__name__}: {error}"
    to.send_bytes(msgspec.json.encode(told))


def lines_of(results: Sequence[Result]) -> Iterator[str]:
    """Yield the printed lines."""
    fates = [(mutant, found) for mutant, found in results if isinstance(found, Judged)]
    failed = [(mutant, found) for mutant, found in results if isinstance(found, str)]
    counted = Counter(found.fate for _, found in fates)
    told = counted[Fate.KILLED] + counted[Fate.CANNOT_RUN]
    yield f"killed {told} of {len(results)}: {told / len(results):.1%}"
    for fate in Fate:
        yield f"  {counted[fate]:4d} {fate.value}"
    yield f"  {len(failed):4d} the gate could not judge"
    yield "killed under (shortest counterexample; how many break it at all):"
    first = Counter(found.by for _, found in fates if found.fate is Fate.KILLED)
    at_all = Counter(n for _, found in fates if found.fate is Fate.KILLED for n in found.all_of)
    for name, times in at_all.most_common():
        yield f"  {first[name]:4d} {times:4d} {name}"
    yield "killed in:"
    for trial in TRIALS:
        times = sum(f.trial == trial for _, f in fates if f.fate in {Fate.KILLED, Fate.CANNOT_RUN})
        how = f"{trial.operations} operations a scope, {trial.examples} examples"
        yield f"  {times:4d} {trial.address}, {how}"
    yield from (line_of(*result) for result in failed)
    for mutant, found in fates:
        if found.fate in {Fate.SURVIVED, Fate.UNDECIDED}:
            yield line_of(mutant, found)


def line_of(mutant: Mutant, found: Judged | str) -> str:
    """Return a mutant's outcome in one line, with its heading if it was not killed."""
    if isinstance(found, str):
        return f"not judged: {mutant}: {found}"
    if found.fate in {Fate.KILLED, Fate.CANNOT_RUN}:
        return f"{found.fate.value}: {mutant} {' '.join(found.all_of)}".rstrip()
    why = explanations().get(mutant.name, "NOT EXPLAINED")
    return f"{found.fate.value}: {mutant} [{why}] {' '.join(found.all_of)}".rstrip()


if __name__ == "__main__":
    main()

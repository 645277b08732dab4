"""Measure what the gate finds, and how soon: every planted fault, as an object and behind a driver.

A fault counts as found when the requirement of its record is broken. Behind a driver, faults that
only a look inside shows are left out. Prints a line for each fault that is missed, and a table with
a row for each form and effort: faults found, the seconds of this process to the trace (median, 95 %
and worst), and operations. The seconds of the driver's own process are not counted.

    python benchmarks/kill_rate.py [--form driver] [--effort normal] [--every 5] [--seeds 0,1,2]

All faults in both forms at normal take hours on two cores; `--every N` takes every N-th.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

sys.path.insert(0, str(Path(__file__).parents[1]))

from brokerproof.checks.gate.gate_run import EFFORTS, Effort
from brokerproof.checks.inside.state_invariants import INSIDE
from brokerproof.checks.inside.step_conformance import REQUIREMENT
from tests.candidates.driver.serving import served
from tests.faults.catalogue import faults
from tests.faults.kill_table import Hunted, hunt, subject_of, table_of

FORMS: Final = ("object", "driver")
HEADINGS: Final = ("form", "effort", "found", "of", "share", "s median", "s 95 %", "s worst", "ops")


@dataclass(frozen=True)
class Case:
    """A fault in one form, to be found with one effort and seed."""

    fault: str
    form: str
    effort: Effort
    seed: int


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases; a fault that shows only inside is none behind a driver."""
    for form in chosen.form or FORMS:
        for effort in chosen.effort or ("quick", "normal"):
            for fault in [*faults().values()][:: chosen.every]:
                if form == "object" or fault.requirement not in (*INSIDE, REQUIREMENT):
                    for seed in chosen.seeds:
                        yield Case(fault.id, form, effort, seed)


def hunted(case: Case) -> Hunted:
    """Hunt one case."""
    fault = faults()[case.fault]
    subject = subject_of(fault) if case.form == "object" else served(f"fault:{fault.id}")
    try:
        return hunt(subject, EFFORTS[case.effort], case.seed, fault.requirement)
    finally:
        subject.close()


def row_of(form: str, effort: str, came: Sequence[Hunted]) -> list[str]:
    """Return the cells of a form and effort."""
    seconds = sorted(each.seconds for each in came if each.is_found)
    found, every = len(seconds), len(came)
    at = (seconds[int(part * (found - 1))] for part in (0.5, 0.95, 1.0)) if found else ()
    operations = f"{statistics.median(each.operations for each in came):,.0f}"
    share = f"{found / every:.1%}"
    return [form, effort, str(found), str(every), share, *(f"{s:.1f}" for s in at), operations]


def main() -> None:
    """Hunt the chosen cases and print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--form", action="append", choices=FORMS)
    options.add_argument("--effort", action="append", choices=get_args(Effort))
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument(
        "--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[0]
    )
    chosen = options.parse_args()
    every = [*cases(chosen)]
    came: dict[tuple[str, str], list[Hunted]] = {}
    with ProcessPoolExecutor(chosen.jobs, max_tasks_per_child=1) as pool:
        for case, each in zip(every, pool.map(hunted, every), strict=True):
            came.setdefault((case.form, case.effort), []).append(each)
            if not each.is_found:
                fault = faults()[case.fault]
                seen = ", ".join(sorted(each.others)) or "nothing"
                print(
                    f"missed {case.form} {case.effort} seed {case.seed}: {fault.id} "
                    f"({fault.requirement}, {fault.length} steps), broken: {seen}, "
                    f"{each.seconds:.0f} s",
                    flush=True,
                )
    sys.stdout.write(table_of((row_of(*key, each) for key, each in came.items()), HEADINGS) + "\n")


if __name__ == "__main__":
    main()

"""Look for false alarms of the gate on correct brokers: many seeds of every stage that draws.

Holds each candidate against all requirements once for each seed, and prints the requirements that
were called broken, except recommendations. The scopes are searched for one operation only, and few
interleavings are run, since those searches do the same with each seed. Without arguments: the four
references, the example brokers and the example drivers.

    python benchmarks/no_alarm.py [--first N] [--seeds N] [--effort LEVEL] [CANDIDATE ...]
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from brokerproof.checks.gate.gate import run_gate
from brokerproof.checks.gate.gate_run import EFFORTS, Budget
from brokerproof.checks.subjects import default_addresses, open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.requirements import Level, catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = Path(__file__).parents[1] / "examples"


def sound_candidates(jobs: str) -> list[str]:
    """Return brokers that keep their claims; `jobs` is the name of a database to be made."""
    drivers = EXAMPLES / "drivers"
    python, node = sys.executable, shutil.which("node")
    commands = [(python, "driver.py"), (python, "shared_driver.py", jobs)]
    if node is not None:
        commands.append((node, "driver.mjs"))
    return [
        *default_addresses(),
        *(f"{EXAMPLES / f'{name}_queue.py'}:make_broker" for name in ("naive", "locked")),
        f"{EXAMPLES / 'job_queue.py'}:make_queue",
        *(
            f"{EXAMPLES / 'whole_broker.py'}:make_{kind}broker"
            for kind in ("", "tail_", "head_", "lazy_", "parking_")
        ),
        *(
            f"exec:{shlex.join([runner, str(drivers / name), *rest])}"
            for runner, name, *rest in commands
        ),
    ]


def accused(address: str, budget: Budget, seeds: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield for each seed how many operations a candidate did, and what was called broken.

    Raises `KeyboardInterrupt` after Ctrl-C, which the gate takes for the end of one seed.
    """
    subject = open_subject(address)
    try:
        for seed in seeds:
            report = run_gate(subject, catalogue(), budget, seed)
            if report.interrupted:
                raise KeyboardInterrupt
            yield (
                sum(stage.operations for stage in report.stages),
                [
                    f"{each.requirement.id} (seed {seed})"
                    for each in report.verdicts
                    if each.outcome is Outcome.BROKEN and each.requirement.level is Level.MUST
                ],
            )
    finally:
        subject.close()


def main() -> None:
    """Draw, judge, count; status 1 if a requirement was found broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=50, help="the number of seeds")
    parser.add_argument("--effort", choices=list(EFFORTS), default="normal")
    parser.add_argument("candidates", nargs="*")
    asked = parser.parse_args()
    budget = replace(EFFORTS[asked.effort], operations=1, depth=0, interleavings=5)
    seeds = range(asked.first, asked.first + asked.seeds)
    alarms = False
    with tempfile.TemporaryDirectory() as folder:
        for address in asked.candidates or sound_candidates(f"{folder}/jobs.db"):
            done: list[tuple[int, list[str]]] = []
            try:
                done.extend(accused(address, budget, seeds))
            except KeyboardInterrupt:
                sys.exit("interrupted: " + _told(address, asked, done))
            print(_told(address, asked, done), flush=True)
            alarms |= any(found for _, found in done)
    sys.exit(alarms)


def _told(address: str, asked: argparse.Namespace, done: Sequence[tuple[int, list[str]]]) -> str:
    operations = sum(each for each, _ in done)
    said = ", ".join(name for _, found in done for name in found) or "no alarm"
    return (
        f"{Path(address).name}: {asked.effort}, {len(done)} seeds from {asked.first} on, "
        f"{operations} operations: {said}"
    )


if __name__ == "__main__":
    main()

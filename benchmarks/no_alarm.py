"""Look for false alarms of the gate on correct brokers: many seeds of large runs.

Draws examples for each seed on each candidate and prints the broken requirements, except
recommendations. Without arguments: the reference, the two example brokers and both example drivers.

    python benchmarks/no_alarm.py [--seeds N] [--examples N] [CANDIDATE ...]
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from brokerproof.checks.gate.stateful import Sampling, sample
from brokerproof.checks.subjects import open_subject
from brokerproof.spec.requirements import Level, catalogue

EXAMPLES = Path(__file__).parents[1] / "examples"


def sound_candidates() -> list[str]:
    """Return the addresses of brokers that are known to keep their claims."""
    drivers = EXAMPLES / "drivers"
    found = [
        "reference:qpid-push",
        f"{EXAMPLES / 'naive_queue.py'}:make_broker",
        *(
            f"{EXAMPLES / 'whole_broker.py'}:make_{kind}broker"
            for kind in ("", "tail_", "head_", "lazy_", "parking_")
        ),
        f"exec:{shlex.join([sys.executable, str(drivers / 'driver.py')])}",
    ]
    node = shutil.which("node")
    return [*found, f"exec:{shlex.join([node, str(drivers / 'driver.mjs')])}"] if node else found


def main() -> None:
    """Draw, judge, count; status 1 if a requirement was found broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("candidates", nargs="*")
    asked = parser.parse_args()
    alarms = 0
    for address in asked.candidates or sound_candidates():
        subject = open_subject(address)
        operations = unfollowed = 0
        accused: set[str] = set()
        try:
            for seed in range(asked.seeds):
                found = Sampling()
                sample(subject, found, seed, asked.examples, lambda: "")
                operations += found.operations
                unfollowed += found.unfollowed
                accused |= {name for name in found.broken if catalogue()[name].level is Level.MUST}
        finally:
            subject.close()
        alarms += bool(accused)
        said = ", ".join(sorted(accused)) or "no alarm"
        print(
            f"{Path(address).name}: {asked.seeds} seeds, {operations} operations, "
            f"{unfollowed} examples given up: {said}",
            flush=True,
        )
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()

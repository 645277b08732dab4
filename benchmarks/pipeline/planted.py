"""Plant each kind of fault in a million records of one hot queue, and judge them in one process.

The broker of `tests/pipeline/page_histories.py` does the fault at most 20 times in the last
twentieth of the records; what came before is the same for all kinds. Printed is a row of the table
in docs/reference/history-rules.md for each kind. The exit status is 1 if one is missed that is not
said to be, or found although it is said to be missed.

    python benchmarks/pipeline/planted.py [--records N] [--only FAULT]...
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from brokerproof.pipeline.alone import judged_alone, read
from brokerproof.pipeline.readers.conversion import convert
from tests.pipeline.page_histories import BY_LEVEL, FAULTS, MISSED, Broker

MOST = 20
"""How often a fault is done at most."""

STEPS_OF_A_REST = 1500
"""After so many steps of the broker its queue is drained."""

SEED = 9


@dataclass(frozen=True)
class Planted:
    """A fault that was planted so often in so many records, and the violations by requirement."""

    fault: str
    planted: int
    records: int
    by: Counter[str]

    @property
    def is_found(self) -> bool:
        """Whether it is found under its name."""
        return self.by[FAULTS[self.fault]] > 0

    @property
    def is_as_said(self) -> bool:
        """Whether it is found or missed as it is listed."""
        return self.is_found is (self.fault not in MISSED)

    def __str__(self) -> str:
        """Return the row of the table."""
        name = FAULTS[self.fault]
        beside = ", ".join(f"{each} {n}" for each, n in sorted(self.by.items()) if each != name)
        found = "found" if self.is_found else "missed"
        cells = (f"`{self.fault}`", f"`{name}`", found, self.planted, self.by[name], beside)
        return f"| {' | '.join(map(str, cells))} |"


@dataclass(frozen=True)
class Begun:
    """A sound broker with an empty queue, and the history that it has until now."""

    broker: Broker
    history: pa.Table

    @classmethod
    def of(cls, fault: str, records: int, folder: Path) -> Begun:
        """Let a broker run whose queue would show a fault, without it."""
        broker = Broker(SEED, fault, 0)
        history = _played(broker, records, folder)
        return cls(broker, history)

    def planted(self, fault: str, records: int, folder: Path) -> Planted:
        """Let the broker go on with a fault for so many records, and judge all of them."""
        broker = copy.deepcopy(self.broker)
        broker.fault, broker.most = fault, MOST
        history = pa.concat_tables([self.history, _played(broker, records, folder)])
        found = judged_alone(history).violations.column("requirement").to_pylist()
        return Planted(fault, broker.planted, history.num_rows, Counter(found))


def _played(broker: Broker, records: int, folder: Path) -> pa.Table:
    """Return at least so many records of a broker, and let it forget them."""
    rests = math.ceil(records * 1.25 / STEPS_OF_A_REST)
    lines = broker.play(rests * STEPS_OF_A_REST, rests)
    broker.lines, broker.recent, broker.unseen = [], [], set()
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "lines.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.write('{"brokerproof_history": 1}\n')
            file.writelines(f"{json.dumps(line)}\n" for line in lines)
        made = convert([path], None, Path(name) / "read")
        assert made.account.rejected == 0, made.account
        assert made.records >= records
        return read(made.parts)


def main() -> int:
    """Plant each fault, and return the exit status."""
    options = argparse.ArgumentParser(description="Planted faults in one hot queue.")
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--only", action="append", choices=list(FAULTS))
    asked = options.parse_args()
    print("| fault | breaks | | planted | reported | beside it |")
    print("| --- | --- | --- | --- | --- | --- |")
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        for by_level in (False, True):
            faults = [e for e in asked.only or FAULTS if (e in BY_LEVEL) is by_level]
            last = asked.records // 20
            begun = Begun.of(faults[0], asked.records - last, Path(name)) if faults else None
            for fault in faults:
                assert begun is not None
                found = begun.planted(fault, last, Path(name))
                assert found.records >= asked.records
                print(found, flush=True)
                if not found.is_as_said:
                    wrong.append(fault)
    if wrong:
        print(f"not as listed: {', '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

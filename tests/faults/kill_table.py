"""The kill table: every planted fault, what the gate calls it, and how soon that is found.

Each fault is searched within the budget of its record, a small part of what `brokerproof check`
takes by default. Printed with seconds, which differ from machine to machine; the page has none:

    python -m tests.faults.kill_table docs/planted-faults.md
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokerproof.checks.counterexamples import Counterexample
from brokerproof.checks.exhaustive import run_exhaustive
from brokerproof.checks.gate import Budget, run_gate
from brokerproof.checks.gate_run import Clock, GateRun, Report
from brokerproof.checks.step_conformance import REQUIREMENT
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.requirements import Level, catalogue
from tests.faults.catalogue import Fault, faults

SOON_S = 30.0

INTRODUCTION = """\
# Planted faults

Each row is a sound broker with one mistake, and what the gate says of it. The mistakes are overlays
in `tests/faults`, made of the reference or of `examples/whole_broker.py`; those with a source are
mistakes that real brokers once made. *Also* are promises that break with it of necessity. *Steps*
is the length of the shortest trace, and *certified* says that a search stands behind "none is
shorter". Made by `python -m tests.faults.kill_table docs/planted-faults.md`.
"""


@dataclass(frozen=True)
class Row:
    """What the gate said of one fault, and after how many seconds it had the counterexample."""

    fault: Fault
    found: dict[str, Counterexample]
    seconds: float

    @property
    def own(self) -> Counterexample | None:
        """The counterexample of the requirement that is to be named."""
        return self.found.get(self.fault.requirement)

    @property
    def binding(self) -> list[str]:
        """The requirements named, recommendations and looks inside aside."""
        named = [each for each in self.found if catalogue()[each].level is Level.MUST]
        # Whoever looks inside sees every departure from the documents, whatever promise it breaks.
        return [each for each in named if each != REQUIREMENT]

    @property
    def is_named(self) -> bool:
        """Whether the fault is named for what it breaks and for nothing else."""
        return self.own is not None and {*self.binding} <= {
            self.fault.requirement,
            *self.fault.also,
        }

    @property
    def is_certified(self) -> bool:
        """Whether a search of a whole scope stands behind the length of its trace."""
        return self.own is not None and self.own.certificate.grade == "product"

    def cells(self) -> list[str]:
        """Return the cells of the table's row, without seconds."""
        others = sorted({*self.binding} - {self.fault.requirement})
        source = f" ({self.fault.source})" if self.fault.source else ""
        return [
            f"`{self.fault.id}`",
            f"{self.fault.sentence}{source}",
            f"`{self.fault.requirement}`" if self.own else "not found",
            ", ".join(f"`{each}`" for each in others),
            str(len(self.own.steps)) if self.own else "",
            "yes" if self.is_certified else "no",
        ]


@dataclass
class _Timed(GateRun):
    """A run of the gate that notes when the counterexample of one requirement was there."""

    wanted: str = ""
    seconds: float | None = None

    def keep(self, found: Counterexample) -> None:
        super().keep(found)
        if found.requirement == self.wanted and self.seconds is None:
            self.seconds = time.process_time()


def row_of(fault: Fault) -> Row:
    """Give a fault to the gate within its budget."""
    start = fault.faulty()
    subject = Subject(fault.id, start().hello(), start, in_process=True)
    budget = Budget(fault.operations, fault.examples)
    began = time.process_time()
    if fault.examples:
        verdicts = run_gate(subject, catalogue(), budget, fault.seed).verdicts
        broken = [v for v in verdicts if v.outcome is Outcome.BROKEN]
        found = {v.requirement.id: v.counterexample for v in broken if v.counterexample}
        return Row(fault, found, time.process_time() - began)
    report = Report(subject.address, subject.hello.name, subject.hello.version, fault.seed)
    run = _Timed(
        subject, budget, Clock(None), report, lambda _stage, _done: None, wanted=fault.requirement
    )
    run_exhaustive(run)
    return Row(fault, run.evidence.broken, (run.seconds or time.process_time()) - began)


HEADINGS = ("fault", "what is wrong", "found as", "also", "steps", "certified")


def table_of(rows: Iterable[Sequence[str]], headings: Sequence[str] = HEADINGS) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def summary_of(rows: Sequence[Row]) -> str:
    """Return the figures that are the same on every machine."""
    found = [row for row in rows if row.own is not None]
    named = sum(row.is_named for row in rows)
    certified = sum(row.is_certified for row in rows)
    return (
        f"{len(rows)} faults, {len(found)} found, {named} under the right name and no other, "
        f"{certified} certified as shortest.\n"
    )


def times_of(rows: Sequence[Row]) -> str:
    """Return the figures of this machine."""
    soon = sum(row.is_certified and row.seconds <= SOON_S for row in rows)
    seconds = [row.seconds for row in rows if row.own is not None]
    return (
        f"{soon} certified within {SOON_S:g} s; {statistics.median(seconds):.1f} s to the "
        f"counterexample in the median, {max(seconds):.1f} s at most.\n"
    )


def page_of(rows: Sequence[Row]) -> str:
    """Return the page: the same bytes wherever it is made."""
    return f"{INTRODUCTION}\n{summary_of(rows)}\n{table_of(row.cells() for row in rows)}"


def main() -> None:
    """Print the table with seconds; write the page that is named, if one is."""
    rows = [row_of(fault) for fault in faults().values()]
    timed = ([*row.cells(), f"{row.seconds:.1f}"] for row in rows)
    sys.stdout.write(table_of(timed, (*HEADINGS, "seconds")))
    sys.stdout.write(f"\n{summary_of(rows)}{times_of(rows)}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page_of(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

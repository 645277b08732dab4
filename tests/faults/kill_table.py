"""The kill table: every planted fault, what the gate calls it, and how soon that is found.

Each fault is searched within the budget of its record, a small part of what `brokerproof check`
takes by default. Printed with seconds, which differ from machine to machine; the page has none:

    python -m tests.faults.kill_table docs/findings/planted-faults.md
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokerproof.checks.gate.exhaustive import run_exhaustive
from brokerproof.checks.gate.gate import Budget, run_gate, run_stateful
from brokerproof.checks.gate.gate_run import Clock, GateRun, Report
from brokerproof.checks.inside.state_invariants import INSIDE
from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.checks.search.counterexamples import Certificate, Counterexample
from brokerproof.checks.search.root_cause import RootCause
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
shorter". Made by `python -m tests.faults.kill_table docs/findings/planted-faults.md`.
"""


def seen_aside(fault: Fault) -> frozenset[str]:
    """Return what may be seen broken beside a fault without a word.

    A check of the inside sees every departure from the documents, whatever requirement it breaks.
    A fault that a view by itself shows must be shown by one invariant alone.
    """
    is_of_one_view = fault.requirement in INSIDE - {REQUIREMENT}
    return frozenset((REQUIREMENT,)) if is_of_one_view else INSIDE


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
        """The requirements named, recommendations and what does not count aside."""
        named = [each for each in self.found if catalogue()[each].level is Level.MUST]
        return [each for each in named if each not in seen_aside(self.fault)]

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

    wanted: frozenset[str] = frozenset()
    seconds: float | None = None

    def keep_finding(
        self, came: RootCause, certificate: Certificate, seed: int | None = None
    ) -> None:
        super().keep_finding(came, certificate, seed)
        if self.seconds is None and not self.wanted.isdisjoint(self.evidence.broken):
            self.seconds = processor_s()


def processor_s() -> float:
    """Return the processor's seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


class _UntilFound(Clock):
    """A reason to stop as soon as a run has its counterexample."""

    run: _Timed

    def reason(self) -> str:
        """Return why nothing more is to be tried, or nothing."""
        return "found" if self.run.seconds is not None else super().reason()


@dataclass(frozen=True)
class Hunted:
    """What the gate made of a faulty broker until it had a trace of the wanted requirement.

    `seconds` are the processor's until then, or of all if it never was. `others` are requirements
    that were broken until then, and `steps` the length of the trace, which may not be the shortest.
    `is_drawn` says that the searches did not find it: what came depends on the seed.
    """

    seconds: float
    operations: int
    steps: int | None
    others: frozenset[str]
    is_drawn: bool

    @property
    def is_found(self) -> bool:
        """Whether the wanted requirement was broken."""
        return self.steps is not None


def hunt(subject: Subject, budget: Budget, seed: int, wanted: frozenset[str]) -> Hunted:
    """Search and draw until a `wanted` requirement is broken, or to the end of the budget."""
    report = Report(subject.address, subject.hello.name, subject.hello.version, seed)
    clock = _UntilFound(None)
    began = processor_s()
    clock.run = run = _Timed(
        subject, budget, clock, report, lambda _stage, _done: None, wanted=wanted
    )
    run_exhaustive(run)
    is_drawn = run.seconds is None
    run_stateful(run)
    broken = run.evidence.broken
    own = [len(broken[each].steps) for each in wanted if each in broken]
    return Hunted(
        seconds=(run.seconds or processor_s()) - began,
        operations=run.operations,
        steps=min(own, default=None),
        others=frozenset(broken) - wanted,
        is_drawn=is_drawn,
    )


def subject_of(fault: Fault) -> Subject:
    """Return the broker with a fault, in this process."""
    start = fault.faulty()
    return Subject(fault.id, start().hello(), start, in_process=True)


def seconds_to(fault: Fault) -> float | None:
    """Return after how many seconds of the processor the gate has a fault; None if it never has."""
    budget = Budget(fault.operations, fault.examples)
    hunted = hunt(subject_of(fault), budget, fault.seed, frozenset((fault.requirement,)))
    return hunted.seconds if hunted.is_found else None


def row_of(fault: Fault) -> Row:
    """Give a fault to the gate within its budget."""
    subject = subject_of(fault)
    budget = Budget(fault.operations, fault.examples)
    began = processor_s()
    if fault.examples:
        verdicts = run_gate(subject, catalogue(), budget, fault.seed).verdicts
        broken = [v for v in verdicts if v.outcome is Outcome.BROKEN]
        found = {v.requirement.id: v.counterexample for v in broken if v.counterexample}
        return Row(fault, found, processor_s() - began)
    report = Report(subject.address, subject.hello.name, subject.hello.version, fault.seed)
    wanted = frozenset((fault.requirement,))
    run = _Timed(subject, budget, Clock(None), report, lambda _stage, _done: None, wanted=wanted)
    run_exhaustive(run)
    return Row(fault, run.evidence.broken, (run.seconds or processor_s()) - began)


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
    return summary_text(len(rows), len(found), named, certified)


def summary_text(faults_: int, found: int, named: int, certified: int) -> str:
    """Return the figures in words."""
    return (
        f"{faults_} faults, {found} found, {named} under the right name and no other, "
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
    """Print the table with seconds; write the page that is named, if one is.

    Where faults are named too, only these are run, and the page keeps the rows of all others.
    """
    path, names = (Path(sys.argv[1]), sys.argv[2:]) if len(sys.argv) > 1 else (None, [])
    rows = [row_of(fault) for name, fault in faults().items() if not names or name in names]
    timed = ([*row.cells(), f"{row.seconds:.1f}"] for row in rows)
    sys.stdout.write(table_of(timed, (*HEADINGS, "seconds")))
    sys.stdout.write(f"\n{summary_of(rows)}{times_of(rows)}")
    if path is not None:
        path.write_text(_mended(path, rows) if names else page_of(rows), encoding="utf-8")


def lines_on(path: Path) -> dict[str, str]:
    """Return the line of each fault on a page."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return {line.split("`")[1]: line for line in lines if line.startswith("| `")}


def _mended(path: Path, rows: Sequence[Row]) -> str:
    """Return a page with these rows in their places; the others are taken to be as they must."""
    known = lines_on(path)
    for row in rows:
        assert row.is_named, f"{row.fault.id} is not found under its name alone: {[*row.found]}"
        known[row.fault.id] = f"| {' | '.join(row.cells())} |\n"
    lines = [known[name] for name in faults()]
    certified = sum(line.endswith("| yes |\n") for line in lines)
    counts = summary_text(len(lines), len(lines), len(lines), certified)
    return f"{INTRODUCTION}\n{counts}\n{table_of(())}{''.join(lines)}"


if __name__ == "__main__":
    main()

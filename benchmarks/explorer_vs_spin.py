"""Compare the explorer with SPIN on the same ground terms: counts, states a second, memory.

For each model: SPIN's breadth-first mode (`gcc -O2 -DSAFETY -DBFS`) and its depth-first mode (`gcc
-O3 -DSAFETY`), the explorer in C and in NumPy; all invariants checked once a state on each side.
Runs take turns, and a figure is the median of its runs, so that other load affects all alike.
Compilers' time counts on neither side. If the model has a symmetric family, C runs once more up to
its names, and its states must stand for as many as the others'. Exit status 1 if any count differs.

    python benchmarks/explorer_vs_spin.py [--quick]     # the counters once, some twenty seconds
    python benchmarks/explorer_vs_spin.py --full        # both models three times, ten minutes
    python benchmarks/explorer_vs_spin.py --model NAME [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    action,
    initial,
    invariant,
    require,
)
from brokerproof.models.language.core.grounding import cell_of
from brokerproof.models.language.core.model import System, trace
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.scope import Cell, Scope, cell_name
from brokerproof.models.language.core.terms import Term, conjunction
from brokerproof.models.language.explore.explorer import Engine, explore
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription

SPIN_DEPTH_MAX = 5_000_000
SPIN_MEMORY_MB = 16_000


class Counter(Family):
    """A counter in a ring."""


class Carrying(Model):
    """Counters modulo 8 in a ring; a full one may carry into the next, if that is not full."""

    next: Fixed[Counter, Counter]
    count: Map[Counter, Int]

    @initial
    def zero(self) -> None:
        """All begin at zero."""
        self.count.fill(0)

    @action
    def increment(self, counter: Counter) -> None:
        """Count up, below seven."""
        require(self.count[counter] < 7)
        self.count[counter] = self.count[counter] + 1

    @action
    def carry(self, counter: Counter) -> None:
        """Go from seven to zero, and count the next one up, if that is below seven."""
        require((self.count[counter] == 7) & (self.count[self.next[counter]] < 7))
        self.count[counter] = 0
        self.count[self.next[counter]] = self.count[self.next[counter]] + 1

    @invariant("below-eight")
    def below_eight(self, c: Counter) -> Bool:
        """No counter leaves its range, although the scope has one integer more."""
        return self.count[c] < 8


@dataclass(frozen=True)
class Subject:
    """A model in a scope, and its symmetric family, if it has one."""

    system: System
    scope: Scope
    symmetric: str | None = None


SUBJECTS: dict[str, Subject] = {
    "counters": Subject(
        trace(Carrying),
        Scope({Counter: 7}, range(9), {"next": (1, 2, 3, 4, 5, 6, 0)}),
    ),
    "pointer-queue": Subject(
        trace(PointerQueue),
        Scope({Entry: 4, Subscription: 3}, range(1), {"browser": (0, 0, 1)}),
        "Subscription",
    ),
    "pointer-queue-small": Subject(
        trace(PointerQueue),
        Scope({Entry: 3, Subscription: 3}, range(1), {"browser": (0, 0, 1)}),
        "Subscription",
    ),
}

QUICK, FULL = ["counters"], ["counters", "pointer-queue"]


class Promela:
    """A model in a scope as Promela: one process, one indivisible option for each instance.

    The invariants are an option of their own, which is possible only where one of them fails: so
    SPIN evaluates them once a state, as the explorer does, and not once a transition.
    SPIN counts one state more than the explorer, that before the initial states, and one transition
    more for each initial state.
    """

    def __init__(self, reading: ColumnReading) -> None:
        self._reading = reading
        self._cells = [cell for cell in reading.cells if len(reading.scope.choices(cell)) > 1]
        self._names = {cell: f"c{number}" for number, cell in enumerate(self._cells)}
        self._texts: dict[Term, str] = {}
        self._spare = 0
        initial = reading.unpack(reading.initial_words())
        self.initial_states = len(initial)
        steps = [self._step(instance.guard, instance.changes) for instance in reading.instances]
        self.text = "\n".join(
            [
                *(self._declaration(cell) for cell in self._cells),
                *(f"hidden int t{number};" for number in range(self._spare)),
                "active proctype model() {",
                "  if",
                *(f"  :: d_step {{ {self._start(state)} }}" for state in initial),
                "  fi;",
                "end: do",
                *(f"  :: d_step {{ {step} }}" for step in steps),
                f"  :: {self._broken()} -> assert(false)",
                "  od",
                "}",
                "",
            ]
        )

    def _declaration(self, cell: Cell) -> str:
        width = self._reading.places[cell].width
        low = self._reading.scope.choices(cell)[0]
        kind = "bool" if width == 1 and low == 0 else "byte" if width <= 8 and low == 0 else "int"
        return f"{kind} {self._names[cell]}; /* {cell_name(cell)} */"

    def _start(self, state: tuple[int, ...]) -> str:
        values = dict(zip(self._reading.cells, state, strict=True))
        parts = [f"{name} = {values[cell]}" for cell, name in self._names.items() if values[cell]]
        return "; ".join(["true", *parts])

    def _broken(self) -> str:
        return self._text(~conjunction(self._reading.ground_invariants))

    def _step(self, guard: Bool, changes: Mapping[Term, Term]) -> str:
        """Return an option; values still to be read are saved before they are overwritten."""
        waiting = dict(changes)
        parts = [self._text(guard)]
        aside: list[str] = []
        spare = 0
        while waiting:
            free = next((cell for cell in waiting if not self._is_read(cell, waiting)), None)
            cell = next(iter(waiting)) if free is None else free
            value = self._text(waiting.pop(cell))
            if free is None:
                parts.append(f"t{spare} = {value}")
                aside.append(f"{self._text(cell)} = t{spare}")
                spare += 1
            else:
                parts.append(f"{self._text(cell)} = {value}")
        self._spare = max(self._spare, spare)
        return "; ".join([*parts, *aside])

    @staticmethod
    def _is_read(cell: Term, waiting: Mapping[Term, Term]) -> bool:
        others = (new for other, new in waiting.items() if other is not cell)
        return any(part is cell for new in others for part in subterms(new))

    def _text(self, term: Term) -> str:
        for part in subterms(term):
            if part not in self._texts:
                self._texts[part] = self._one(part)
        return self._texts[term]

    def _one(self, term: Term) -> str:
        args = [self._texts[arg] for arg in term.args]
        signs: dict[str, str] = {"equal": "==", "less": "<", "add": "+", "and": "&&", "or": "||"}
        match term.op:
            case "constant":
                return str(int(cast("int", term.payload)))
            case "read":
                return self._names[cell_of(term)]
            case "not":
                return f"!({args[0]})"
            case "ite":
                return f"({args[0]} -> {args[1]} : {args[2]})"
            case _:
                return f"({f' {signs[term.op]} '.join(args)})"


@dataclass(frozen=True)
class Run:
    """One search: its counts, its time, and its peak memory.

    `whole` are the states that its states stand for; without symmetry these are the same.
    """

    states: int
    whole: int
    transitions: int
    seconds: float
    memory: float


@dataclass
class Side:
    """All runs of one program on one model."""

    name: str
    runs: list[Run] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """States a second, by the median run."""
        return self.runs[0].states / statistics.median(run.seconds for run in self.runs)

    def line(self) -> str:
        """Return the side's figures."""
        seconds = [run.seconds for run in self.runs]
        run = self.runs[0]
        return (
            f"  {self.name:10} {run.states:>12,} states {run.transitions:>13,} transitions "
            f"{statistics.median(seconds):8.2f} s ({min(seconds):.2f} to {max(seconds):.2f}) "
            f"{self.rate:>12,.0f} states/s "
            f"{max(r.memory for r in self.runs) / run.states:6.1f} bytes/state"
        )


def own_run(name: str, engine: Engine, symmetric: str | None) -> None:
    """Explore in this process and print the counts, for the parent process."""
    subject = SUBJECTS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = explore(subject.system, subject.scope, engine=engine, symmetric=symmetric)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if found.engine != engine or found.violation or found.incomplete:
        sys.exit(f"{found.note}{found.incomplete}{found.violation}")
    seconds = found.seconds - found.compile_seconds
    counts = [found.states, found.stands_for, found.transitions]
    print(json.dumps([*counts, seconds, 1024 * (after - before)]))


def start_own_run(name: str, engine: Engine, symmetric: str | None = None) -> Run:
    """Explore in a separate process, to measure its own peak memory."""
    command = [sys.executable, __file__, "--model", name, "--own", engine]
    command += ["--symmetry", symmetric] if symmetric else []
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Run(*json.loads(printed))


def spin_run(program: Path, text: Promela, states: int) -> Run:
    """Run a verifier that SPIN made, with a hash table as large as it needs."""
    size = max(18, states.bit_length())
    depth = min(states + 100, SPIN_DEPTH_MAX)
    command = [str(program), f"-w{size}", f"-m{depth}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "errors: 0" not in printed:
        sys.exit(printed)

    def number(pattern: str) -> float:
        found = re.search(pattern, printed)
        assert found, f"SPIN's output has no {pattern}: {printed}"
        return float(found[1])

    # SPIN prints eight digits of a number: too few for its transitions, and from a hundred million
    # on for its matched states.
    stored, matched = (
        round(number(rf"([\d.e+]+) states, {word}")) for word in ("stored", "matched")
    )
    return Run(
        # The state before the initial ones, and the transitions that lead to these, are SPIN's own.
        states=stored - 1,
        whole=stored - 1,
        transitions=stored + matched - text.initial_states - 1,
        seconds=number(r"elapsed time ([\d.e+]+)"),
        memory=1e6 * number(r"([\d.]+)\ttotal actual memory usage"),
    )


def _same_to_eight_digits(one: int, other: int) -> bool:
    """Whether two counts are the same, as far as SPIN prints them."""
    return one == other or (min(one, other) >= 10**8 and abs(one - other) <= 1e-7 * one)


def spin_programs(folder: Path, text: Promela) -> tuple[Path, Path]:
    """Make the breadth-first and the depth-first verifier."""
    spin, cc = shutil.which("spin"), shutil.which("gcc")
    if not spin or not cc:
        print("nothing measured, since this needs SPIN and gcc: apt-get install spin gcc")
        sys.exit(0)
    (folder / "model.pml").write_text(text.text, encoding="ascii")
    subprocess.run([spin, "-a", "model.pml"], cwd=folder, check=True, capture_output=True)
    modes = {"bfs": ["-O2", "-DSAFETY", "-DBFS"], "dfs": ["-O3", "-DSAFETY"]}
    for mode, flags in modes.items():
        command = [cc, "-w", *flags, f"-DMEMLIM={SPIN_MEMORY_MB}", "-o", mode, "pan.c"]
        subprocess.run(command, cwd=folder, check=True)
    return folder / "bfs", folder / "dfs"


def compare(name: str, runs: int) -> bool:
    """Measure all sides on one model and return whether their counts agree."""
    subject = SUBJECTS[name]
    text = Promela(ColumnReading(subject.system, subject.scope))
    bfs, dfs, fast, columns = Side("spin bfs"), Side("spin dfs"), Side("c"), Side("numpy")
    sides, alike = [bfs, dfs, fast, columns], Side("c symmetry")
    with tempfile.TemporaryDirectory() as folder:
        programs = spin_programs(Path(folder), text)
        for _ in range(runs):
            fast.runs.append(start_own_run(name, "compiled"))
            states = fast.runs[0].states
            bfs.runs.append(spin_run(programs[0], text, states))
            dfs.runs.append(spin_run(programs[1], text, states))
            columns.runs.append(start_own_run(name, "columns"))
            if subject.symmetric:
                alike.runs.append(start_own_run(name, "compiled", subject.symmetric))
    print(f"{name}: {subject.scope}")
    for side in sides:
        print(side.line())
    if alike.runs:
        whole = f"  {'':10} {alike.runs[0].whole:>12,} states that these stand for"
        print(f"{alike.line()}\n{whole}, up to the names of {subject.symmetric}")
    made = [run for side in sides for run in side.runs]
    equal = all(run.states == states for run in made)
    equal &= all(_same_to_eight_digits(run.transitions, made[0].transitions) for run in made)
    equal &= all(run.whole == states for run in alike.runs)
    print("counts equal" if equal else "COUNTS DIFFER")
    print(f"ratio bfs {fast.rate / bfs.rate:.1f}")
    print(f"ratio dfs {fast.rate / dfs.rate:.1f}")
    print(f"ratio numpy bfs {columns.rate / bfs.rate:.1f}")
    return equal


def main() -> None:
    """Compare the counters once, all models, or one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="the counters, once (the default)")
    which.add_argument("--full", action="store_true", help="both models, three times")
    which.add_argument("--model", choices=SUBJECTS)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--own", choices=["compiled", "columns"], help=argparse.SUPPRESS)
    parser.add_argument("--symmetry", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.own:
        own_run(given.model, given.own, given.symmetry)
        return
    names = [given.model] if given.model else FULL if given.full else QUICK
    runs = given.runs or (3 if given.full else 1)
    equal = [compare(name, runs) for name in names]
    if not all(equal):
        sys.exit(1)


if __name__ == "__main__":
    main()

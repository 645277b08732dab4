"""Measure what the gate finds, and how soon: planted faults and mutants, in three forms.

The forms are a Python object, a driver, and a driver behind a loopback socket on which each round
trip takes at least 0.2 ms. A fault counts as found when the requirement of its record is broken, a
mutant of the reference when any binding requirement is. Faults that only a look inside shows, and
those that the driver's protocol cannot express, are hunted as objects alone. Mutants that
`docs/findings/mutants.md` explains are left out.

Prints a line for each one missed or found late, and a table with a row for each form and effort:
how many were found; how many under the right name and no other; the processor's seconds of the gate
to the trace (median, 95 %, worst); operations (median); and how many traces are longer than the
shortest known. The seconds of the driver's own process are not counted.

    python benchmarks/kill_rate.py [--form driver] [--effort normal] [--every 5] [--seeds 0,1,2]
    python benchmarks/kill_rate.py --keep FILE
    python benchmarks/kill_rate.py --mutants 50
    python benchmarks/kill_rate.py --beside OLD/bin/python

All faults in all forms take hours on two cores; `--every N` takes every N-th, and with `--first M`
they begin behind M others, as mutants do. `--keep FILE` writes each result as a line of JSON, and a
case that FILE already has is not hunted again. It belongs to one state of the sources. A search
does the same with each seed, so what it finds with the first seed counts for the others too.
`--beside` gives the same faults, behind a driver, to the `check` of another brokerproof with its
default options: the Python that it is installed for. Its seconds are those of the whole check.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, get_args

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from brokerproof.checks.gate.gate_run import EFFORTS, Effort
from brokerproof.checks.inside.state_invariants import INSIDE
from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.spec.requirements import Level, catalogue
from tests.candidates.driver.serving import command_of, mutant_named
from tests.faults.catalogue import faults
from tests.faults.kill_table import Hunted, hunt, seen_aside, subject_of, table_of
from tests.faults.overlay import plant
from tests.mutants.mutations import mutants
from tests.mutants.page import explanations

FORMS: Final = ("object", "driver", "socket")
HEADINGS: Final = (
    "what",
    "form",
    "effort",
    "found",
    "of",
    "share",
    "right name",
    "s median",
    "s 95 %",
    "s worst",
    "operations",
    "longer",
)
NOT_IN_JSON: Final = (
    "negative-window-from-the-start",
    "acknowledged-in-both-and-subtracted-by-neither",
)
"""Faults that the driver's protocol cannot show: by an answer that it does not have (rule 22), or
by a loss of power during an operation.
"""
ELSEWHERE: Final = (
    *("activemq/", "rabbitmq/", "qpid/pull/", "qpid/counters.py", "qpid/looks.py"),
    *("qpid/push/published_pointer.py", "qpid/push/stealing.py"),
    *("durable_broker.py", "front/storage.py", "shared/disk.py"),
)
"""What `reference:qpid-push` does not run, or only for views of its inside."""
BESIDE_S_MAX: Final = 600
CASE_S_MAX: Final = 200
IS_LATE_AFTER_S: Final = {"quick": 10.0, "normal": 60.0, "deep": 600.0}
CASES_PER_PROCESS: Final = 40
"""A process keeps some 30 MB of each broker that it has loaded."""


@dataclass(frozen=True)
class Case:
    """A fault (`fault:ID`) or mutant (`mutant:NAME`) in one form, for one effort and seed.

    `beside` is the Python of another brokerproof, which then is the hunter.
    """

    served: str
    form: str
    effort: Effort
    seed: int
    beside: str = ""

    @property
    def kind(self) -> str:
        """The word `fault` or `mutant`."""
        return self.served.partition(":")[0]

    @property
    def name(self) -> str:
        """The id of the fault, or the name of the mutant."""
        return self.served.partition(":")[2]


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of the first seed."""
    for form in chosen.form or FORMS:
        for effort in chosen.effort or ("quick", "normal"):
            for served in _hunted_in(form, chosen):
                yield Case(served, form, effort, chosen.seeds[0])
    if chosen.beside:
        yield from (
            Case(s, "driver", "normal", 0, chosen.beside) for s in _hunted_in("driver", chosen)
        )


def _hunted_in(form: str, chosen: argparse.Namespace) -> Iterator[str]:
    if chosen.mutants:
        known = explanations()
        names = [
            each.name
            for each in mutants()
            if each.name not in known and not each.file.startswith(ELSEWHERE)
        ]
        yield from (
            f"mutant:{name}" for name in names[chosen.first :: max(1, len(names) // chosen.mutants)]
        )
        return
    for fault in [*faults().values()][chosen.first :: chosen.every]:
        by_answers = fault.requirement not in (*INSIDE, REQUIREMENT) and fault.id not in NOT_IN_JSON
        if form == "object" or by_answers:
            yield f"fault:{fault.id}"


def wanted_of(case: Case) -> frozenset[str]:
    """Return the requirements; a case is found if one of them is broken."""
    if case.kind == "fault":
        return frozenset((faults()[case.name].requirement,))
    return frozenset(name for name, each in catalogue().items() if each.level is Level.MUST)


def subject_for(case: Case) -> Subject:
    """Return the broker of a case in its form."""
    if case.form != "object":
        return open_subject(f"exec:{command_of(case.served, over_socket=case.form == 'socket')}")
    if case.kind == "fault":
        return subject_of(faults()[case.name])
    start = plant([mutant_named(case.name).edit], "qpid-push")
    return Subject(case.name, start().hello(), start, in_process=True)


def hunted(case: Case) -> Hunted | str:
    """Hunt one case; return a line if it cannot even be started."""
    if case.beside:
        return _hunted_by_another(case)
    try:
        subject = subject_for(case)
    except Exception as error:  # noqa: BLE001 (a mutant may be no broker at all)
        return f"cannot be started: {error}"
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, CASE_S_MAX)
    try:
        return hunt(subject, EFFORTS[case.effort], case.seed, wanted_of(case))
    except _NoEndError:
        return f"not decided in {CASE_S_MAX} s of processor time"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        subject.close()
        gc.collect()  # Parts of a search refer to each other, and would stay through many cases.


class _NoEndError(BaseException):
    """A mutant loops forever within one call. A broker may raise any `Exception` by itself."""


def _give_up(_signal: int, _frame: object) -> NoReturn:
    raise _NoEndError


class _Verdict(msgspec.Struct):
    requirement: str
    verdict: str


class _Candidate(msgspec.Struct):
    verdicts: list[_Verdict]


class _Report(msgspec.Struct):
    candidates: list[_Candidate]


def _hunted_by_another(case: Case) -> Hunted | str:
    """Return what another brokerproof's `check` says of a driver, with its default options."""
    driver = f"exec:{command_of(case.served)}"
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with tempfile.TemporaryDirectory() as folder:
        command = [case.beside, "-m", "brokerproof", "check", "--report", folder, driver]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=BESIDE_S_MAX
        )
        path = Path(folder) / "verdict.json"
        if not path.is_file():
            return f"no verdict: {done.stderr.strip()}"
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    broken = {v.requirement for v in report.candidates[0].verdicts if v.verdict == "broken"}
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    own = broken & wanted_of(case)
    return Hunted(seconds, 0, 0 if own else None, frozenset(broken - own), is_drawn=False)


class _Kept(msgspec.Struct):
    case: Case
    came: Hunted | str


def _kept_in(file: Path | None) -> dict[Case, Hunted | str]:
    lines = file.read_bytes().splitlines() if file and file.exists() else ()
    return {
        kept.case: kept.came for kept in (msgspec.json.decode(line, type=_Kept) for line in lines)
    }


_Came: TypeAlias = tuple[Case, Hunted | str]


def _with_all_seeds(chosen: argparse.Namespace) -> Iterator[_Came]:
    """Yield each case and its result with each seed. Only drawn runs depend on the seed."""
    searched: list[tuple[Case, Hunted]] = []
    drawn: list[Case] = []
    for case, each in _all_hunted([*cases(chosen)], chosen.jobs, chosen.keep):
        yield case, each
        if isinstance(each, Hunted) and each.is_drawn:
            drawn.append(case)
        elif isinstance(each, Hunted) and not case.beside:
            searched.append((case, each))
    for seed in chosen.seeds[1:]:
        yield from ((replace(case, seed=seed), each) for case, each in searched)
        again = [replace(case, seed=seed) for case in drawn]
        yield from _all_hunted(again, chosen.jobs, chosen.keep)


def _all_hunted(every: Sequence[Case], jobs: int, keep: Path | None) -> Iterator[_Came]:
    """Yield each case and what came of it: those kept in a file, then the others in order."""
    kept = _kept_in(keep)
    yield from ((case, kept[case]) for case in every if case in kept)
    left = [case for case in every if case not in kept]
    for start in range(0, len(left), CASES_PER_PROCESS):
        some = left[start : start + CASES_PER_PROCESS]
        with ProcessPoolExecutor(jobs) as pool:
            for case, came in zip(some, pool.map(hunted, some), strict=True):
                if keep:
                    with keep.open("ab") as lines:
                        lines.write(msgspec.json.encode(_Kept(case, came)) + b"\n")
                yield case, came


def row_of(key: tuple[str, str, str], came: Sequence[tuple[Case, Hunted]]) -> list[str]:
    """Return the cells of a kind, form and effort."""
    found = [(case, each) for case, each in came if each.is_found]
    seconds = sorted(each.seconds for _, each in found)
    at = (seconds[int(part * (len(seconds) - 1))] for part in (0.5, 0.95, 1.0)) if found else ()
    right = sum(_is_named(case, each) for case, each in found)
    return [
        *key,
        f"{len(found)}",
        f"{len(came)}",
        f"{len(found) / len(came):.1%}",
        f"{right}" if key[0] == "fault" else "",
        *(f"{s:.1f}" for s in at),
        f"{statistics.median(each.operations for _, each in came):,.0f}",
        f"{sum(_is_longer(case, each) for case, each in found)}" if key[0] == "fault" else "",
    ]


def _is_named(case: Case, came: Hunted) -> bool:
    if case.kind != "fault":
        return True
    fault = faults()[case.name]
    binding = {each for each in came.others if catalogue()[each].level is Level.MUST}
    return binding - seen_aside(fault) <= {*fault.also}


def _is_longer(case: Case, came: Hunted) -> bool:
    return case.kind == "fault" and (came.steps or 0) > faults()[case.name].length


def _said_of(case: Case, came: Hunted) -> str:
    """Return a line about a case that was missed, or found late, and otherwise nothing."""
    late = came.is_found and came.seconds > IS_LATE_AFTER_S[case.effort]
    if came.is_found and not late:
        return ""
    seen = ", ".join(sorted(came.others)) or "nothing"
    about = ""
    if case.kind == "fault":
        fault = faults()[case.name]
        about = f" ({fault.requirement}, {fault.length} steps)"
    how = "another" if case.beside else f"{case.effort} seed {case.seed}"
    verdict = "late" if late else "missed"
    seen_too = f"broken{' too' if late else ''}: {seen}"
    return f"{verdict} {case.form} {how}: {case.name}{about}, {seen_too}, {came.seconds:.0f} s"


def main() -> None:
    """Hunt the chosen cases and print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--form", action="append", choices=FORMS)
    options.add_argument("--effort", action="append", choices=get_args(Effort))
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--first", type=int, default=0, help="how many to leave out before these")
    options.add_argument(
        "--mutants", type=int, default=0, help="hunt about so many mutants instead"
    )
    options.add_argument("--beside", default="", help="the Python of another brokerproof")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument(
        "--keep", type=lambda text: Path(text).absolute(), help="a file of results"
    )
    options.add_argument(
        "--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[0]
    )
    chosen = options.parse_args()
    os.chdir(Path(__file__).parents[1])  # Drivers are started here, and import the tests.
    came: dict[tuple[str, str, str], list[tuple[Case, Hunted]]] = {}
    for case, each in _with_all_seeds(chosen):
        if isinstance(each, str):
            print(f"left out: {case.served} {case.form}: {each}", flush=True)
            continue
        effort = "another" if case.beside else case.effort
        came.setdefault((case.kind, case.form, effort), []).append((case, each))
        if said := _said_of(case, each):
            print(said, flush=True)
    sys.stdout.write(table_of((row_of(key, each) for key, each in came.items()), HEADINGS) + "\n")


if __name__ == "__main__":
    main()

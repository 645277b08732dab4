"""The report on a history: the gate's verdicts, counterexamples, and tables of all findings.

A requirement is judged if a rule checks it and the history exercises it. A requirement that the
history does not exercise is reported as such, not as kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from brokerproof.checks.gate.gate_run import Report, Stage
from brokerproof.checks.report.verdict_file import TrafficRecord
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.pipeline.explain.explanations import counterexample_of
from brokerproof.pipeline.explain.recorded_facts import RecordedFacts
from brokerproof.pipeline.explain.witnesses import Witness, first_of
from brokerproof.pipeline.intervals.control import named
from brokerproof.pipeline.intervals.traffic import BINS, COUNTS, cells
from brokerproof.pipeline.names import numbers
from brokerproof.pipeline.readers.rejected_rows import Account, Category
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.rules.violations import KEY
from brokerproof.pipeline.tables import file_and_line
from brokerproof.spec.histories import VERSION
from brokerproof.spec.requirements import Requirement, catalogue

VIOLATIONS_FILE: Final = "violations.parquet"
COVERAGE_FILE: Final = "coverage.parquet"
ASIDE_FILE: Final = "rejected.parquet"
WITNESS_FILE: Final = "witness_file"
"""The column with the file of a violation's records."""

HANGS_ON_THE_ORDER: Final = frozenset(
    case.requirement for rule in RULES.values() if rule.by_order for case in rule.cases
)
"""The requirements that are checked only for queues of known order."""

COUNTED: Final = frozenset(
    case.requirement for rule in RULES.values() for case in rule.cases if case.exercised
)
"""The requirements whose cases are counted."""

EXCUSED_MAX: Final = 0.5
"""The largest share of its cases that may be excused of a requirement that is kept."""

NAMES_SHOWN: Final = 5


def judged_requirements(*, by_time: bool = False) -> dict[str, Requirement]:
    """Return the requirements that a history is checked against, in the order of the catalogue.

    `by_time` is whether a limit on the wait of a message is given.
    """
    rules = [each for each in RULES.values() if by_time or not each.by_time]
    names = {case.requirement for rule in rules for case in rule.cases}
    return {name: each for name, each in catalogue().items() if name in names}


def report_on(
    source: str,
    judgement: Judgement,
    account: Account,
    how: str,
    chosen: Iterable[str] = (),
    witnesses: Mapping[str, Witness] | None = None,
    files: Sequence[str] = (),
) -> Report:
    """Return the report on a history, in the gate's form.

    With `witnesses` it includes the recorded events, each with its line in `files`.
    """
    names = set(chosen)
    known = witnesses or {}
    verdicts = tuple(
        _verdict(requirement, source, judgement, known.get(name), files)
        for name, requirement in judged_requirements(
            by_time=judgement.stalled_after is not None
        ).items()
        if not names or name in names
    )
    did = f"{account}, {how}"
    if judgement.undeclared:
        did += f"; {order_not_checked(judgement)}"
    stage = Stage("history", did, complete=True, operations=account.checked)
    return Report(source, "a recorded history", f"form {VERSION}", 0, verdicts, [stage])


def _verdict(
    requirement: Requirement,
    source: str,
    judgement: Judgement,
    witness: Witness | None,
    files: Sequence[str],
) -> Verdict:
    asked = judgement.coverage.asked.get(requirement.id, 0)
    excused = judgement.coverage.excused.get(requirement.id, {})
    said = excused_of(excused, asked)
    table = judgement.violations
    many = pc.sum(pc.equal(table.column("requirement"), requirement.id)).as_py() or 0
    if many:
        found = _explained(requirement.id, source, judgement, witness, files)
        reason = f"{many:,} violations; one of them: " if many > 1 else ""
        reason += found.summary
        if witness is not None:
            reason += f"; recorded in {witness.file}"
        reason += f"; {said}" if said else ""
        return Verdict(requirement, Outcome.BROKEN, max(asked, many), reason, found)
    if sum(excused.values()) > EXCUSED_MAX * asked:
        return Verdict(requirement, Outcome.INCONCLUSIVE, asked, f"most of it was excused: {said}")
    if asked:
        return Verdict(requirement, Outcome.KEPT, asked, said)
    reason = "nothing in the history puts it to the test"
    if requirement.id not in COUNTED:
        reason = "its cases are not counted: a history shows only that it is broken"
    if judgement.undeclared and requirement.id in HANGS_ON_THE_ORDER:
        reason = order_not_checked(judgement)
    return Verdict(requirement, Outcome.NOT_CLAIMED, 0, reason)


def excused_of(excused: Mapping[str, int], asked: int) -> str:
    """Return how many cases of a requirement were excused, and by what; nothing without any.

    >>> excused_of({"crashes": 2, "purges": 1}, 1_000)
    '3 of 1,000 excused: 2 by crashes, 1 by purges'
    """
    if not excused:
        return ""
    causes = ", ".join(f"{many:,} by {cause}" for cause, many in excused.items())
    return f"{sum(excused.values()):,} of {asked:,} excused: {causes}"


def _explained(
    requirement: str,
    source: str,
    judgement: Judgement,
    witness: Witness | None,
    files: Sequence[str],
) -> Counterexample:
    if witness is None:
        return counterexample_of(first_of(judgement.violations, requirement), source)
    facts = RecordedFacts.of(witness.violation, witness.records, files)
    return counterexample_of(witness.violation, source, facts, witness.file, witness.remark)


def order_not_checked(judgement: Judgement) -> str:
    """Return in a few words the queues of unknown order."""
    names = list(dict.fromkeys(name for _, name in judgement.undeclared))
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    verb = "was" if len(names) == 1 else "were"
    return f"order not checked: {', '.join(names[:NAMES_SHOWN])}{more} {verb} never declared"


def traffic_of(judgement: Judgement) -> tuple[TrafficRecord, ...]:
    """Return the traffic of the busiest queues, and how many violations happened in each bin."""
    bins, table = judgement.bins, judgement.violations
    queue = named(table, "queue")
    number = bins.numbers_of(queue.keys)[queue.number]
    rows = np.flatnonzero(number >= 0)
    at = cells(bins, number[rows], numbers(table, "late_end")[rows])
    size = len(bins.keys)
    begun, ended, given, slowest = (
        numbers(judgement.traffic, name).reshape(size, BINS) for name in COUNTS.names
    )
    depth = np.cumsum(begun - ended, axis=1)
    wrong = np.bincount(at, minlength=size * BINS).reshape(size, BINS)
    of_queue = zip(
        bins.keys,
        bins.first,
        bins.width,
        *(each.tolist() for each in (depth, given, slowest, wrong)),
        strict=True,
    )
    return tuple(
        TrafficRecord(
            run=run,
            queue=name,
            first=first,
            bin_width=width,
            depth=tuple(waited),
            deliveries=tuple(seen),
            longest_wait=tuple(longest),
            violations=tuple(violations),
        )
        for (run, name), first, width, waited, seen, longest, violations in of_queue
    )


def with_rows_aside(account: Account, judgement: Judgement) -> Account:
    """Return the row counts of a reading, with the rows that the judgement rejected."""
    result = Account(account.rows, account.checked, account.by_category.copy())
    for row in judgement.aside.column("category").value_counts().to_pylist():
        category: Category = row["values"]
        result.by_category[category] += row["counts"]
        result.checked -= row["counts"]
    return result


def rows_aside(judgement: Judgement, files: Sequence[str]) -> pa.Table:
    """Return the rows that the judgement rejected, each with its file and line or row."""
    aside = judgement.aside.sort_by("place")
    at = [file_and_line(place) for place in aside.column("place").to_pylist()]
    columns = {
        "file": pa.array([files[file] for file, _ in at], pa.string()),
        "line": pa.array([line for _, line in at], pa.int64()),
        "category": aside.column("category"),
        "reason": aside.column("reason"),
    }
    return pa.table(columns)


def write_tables(
    judgement: Judgement,
    files: Sequence[str],
    folder: Path,
    witnesses: Mapping[str, Witness] | None = None,
) -> None:
    """Write all violations, the coverage, and the rows that the judgement rejected, as Parquet.

    A violation with written records gets the name of their file, below the same folder.
    """
    asked = judgement.coverage.asked
    excused = [judgement.coverage.excused.get(name, {}) for name in asked]
    causes = (excused_of(each, asked[name]) for name, each in zip(asked, excused, strict=True))
    coverage = {
        "requirement": pa.array(list(asked), pa.string()),
        "asked": pa.array(list(asked.values()), pa.int64()),
        "excused": pa.array([sum(each.values()) for each in excused], pa.int64()),
        "causes": pa.array(list(causes), pa.string()),
    }
    tables = {
        VIOLATIONS_FILE: _with_files(judgement.violations, witnesses or {}),
        COVERAGE_FILE: pa.table(coverage),
        ASIDE_FILE: rows_aside(judgement, files),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        unfinished = folder / f".{name}.unfinished"
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(folder / name)


def _with_files(violations: pa.Table, witnesses: Mapping[str, Witness]) -> pa.Table:
    """Return violations with the file of the records of each; null without one."""
    files = pa.nulls(violations.num_rows, pa.string())
    for each in witnesses.values():
        is_it = pa.array(np.ones(violations.num_rows, dtype=np.bool_))
        for name in KEY:
            same = pc.equal(violations.column(name), getattr(each.violation, name))
            is_it = pc.and_(is_it, same)
        files = pc.if_else(is_it, each.file, files)
    return violations.append_column(WITNESS_FILE, files)

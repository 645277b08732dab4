"""The report on a history: verdicts as the gate's own, counterexamples, and tables of all found.

A requirement is judged where a rule is about it and the history put it to the test; where nothing
in it did, that is said, and not that it was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from brokerproof.checks.gate_run import Report, Stage
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.pipeline.explanations import Violation, counterexample_of
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.set_aside import Account, Category
from brokerproof.pipeline.tables import PLACE, SCHEMA, file_and_line, records_of
from brokerproof.spec.histories import CONTROL, VERSION, Record
from brokerproof.spec.requirements import Requirement, catalogue

VIOLATIONS_FILE: Final = "violations.parquet"
COVERAGE_FILE: Final = "coverage.parquet"
ASIDE_FILE: Final = "set_aside.parquet"
WITNESSES: Final = "witnesses"
"""The folder of small histories, one for each broken requirement."""

JUDGED: Final = (
    "nothing-lost",
    "nothing-twice",
    "settled-once",
    "nothing-invented",
    "fifo-order",
    "priority-order",
    "release-rewinds",
    "redelivered-flag",
    "get-finds",
    "close-releases",
    "credit-not-exceeded",
    "browser-takes-nothing",
    "browser-sees-available",
    "browser-in-order",
    "browser-once",
    "browser-never-rewound",
    "purge-drops",
    "delete-drops",
    "survives-restart",
    "transient-is-lost",
)
"""The requirements that rules on histories are about."""


def judged_requirements() -> dict[str, Requirement]:
    """Return the requirements that a history is held against, in the order of the catalogue."""
    return {name: each for name, each in catalogue().items() if name in JUDGED}


def report_on(
    source: str, judgement: Judgement, account: Account, how: str, chosen: Iterable[str] = ()
) -> Report:
    """Return what is said of a history, as the gate says it of a candidate."""
    names = set(chosen)
    verdicts = tuple(
        _verdict(requirement, source, judgement)
        for name, requirement in judged_requirements().items()
        if not names or name in names
    )
    stage = Stage("history", f"{account}, {how}", complete=True, operations=account.checked)
    return Report(source, "a recorded history", f"form {VERSION}", 0, verdicts, [stage])


def _verdict(requirement: Requirement, source: str, judgement: Judgement) -> Verdict:
    asked = judgement.coverage.get(requirement.id, 0)
    table = judgement.violations
    wrong = table.filter(pc.equal(table.column("requirement"), requirement.id))
    if wrong.num_rows:
        found = counterexample_of(first_of(wrong), source)
        many = f"{wrong.num_rows:,} violations; the first: " if wrong.num_rows > 1 else ""
        reason = many + found.summary
        return Verdict(requirement, Outcome.BROKEN, max(asked, 1), reason, found)
    if asked:
        return Verdict(requirement, Outcome.KEPT, asked)
    return Verdict(
        requirement, Outcome.NOT_CLAIMED, 0, "nothing in the history puts it to the test"
    )


def first_of(violations: pa.Table) -> Violation:
    """Return the violation that was seen first; of several, the first by its names."""
    keys = [("late_end", "ascending"), ("run", "ascending")]
    keys += [("queue", "ascending"), ("message", "ascending")]
    order = pc.sort_indices(violations, sort_keys=keys)
    return Violation.of(violations.take(order[:1]).to_pylist()[0])


def with_rows_aside(account: Account, judgement: Judgement) -> Account:
    """Return the account of a reading with what the judgement set aside besides."""
    result = Account(account.rows, account.checked, account.by_category.copy())
    for row in judgement.aside.column("category").value_counts().to_pylist():
        category: Category = row["values"]
        result.by_category[category] += row["counts"]
        result.checked -= row["counts"]
    return result


def rows_aside(judgement: Judgement, files: Sequence[str]) -> pa.Table:
    """Return what the judgement set aside, each row with its file and its line or row in it."""
    aside = judgement.aside.sort_by("place")
    at = [file_and_line(place) for place in aside.column("place").to_pylist()]
    columns = {
        "file": pa.array([files[file] for file, _ in at], pa.string()),
        "line": pa.array([line for _, line in at], pa.int64()),
        "category": aside.column("category"),
        "reason": aside.column("reason"),
    }
    return pa.table(columns)


def write_tables(judgement: Judgement, files: Sequence[str], folder: Path) -> None:
    """Write all violations, the coverage, and what the judgement set aside, as Parquet."""
    coverage = {
        "requirement": pa.array(list(judgement.coverage), pa.string()),
        "asked": pa.array(list(judgement.coverage.values()), pa.int64()),
    }
    tables = {
        VIOLATIONS_FILE: judgement.violations,
        COVERAGE_FILE: pa.table(coverage),
        ASIDE_FILE: rows_aside(judgement, files),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        unfinished = folder / f".{name}.unfinished"
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(folder / name)


def write_witnesses(
    report: Report, judgement: Judgement, parts: Sequence[Path], folder: Path
) -> None:
    """Write, for each broken requirement, the records of the messages that witness it first.

    Each is a history of its own, with all that is about no single message, and breaks the same.
    """
    place = folder / WITNESSES
    for old in place.glob("*.jsonl"):
        old.unlink()
    for verdict in report.verdicts:
        if verdict.outcome is not Outcome.BROKEN:
            continue
        table = judgement.violations
        chosen = pc.equal(table.column("requirement"), verdict.requirement.id)
        found = first_of(table.filter(chosen))
        place.mkdir(parents=True, exist_ok=True)
        lines = [msgspec.json.encode({"brokerproof_history": VERSION})]
        lines += [msgspec.json.encode(record) for record in _records_about(found, parts)]
        path = place / f"{verdict.requirement.id}.jsonl"
        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.write_bytes(b"\n".join(lines) + b"\n")
        unfinished.replace(path)


def _records_about(found: Violation, parts: Sequence[Path]) -> Iterator[Record]:
    field = ds.field
    history = ds.dataset([str(part) for part in parts])
    names = [found.message, *([found.witness] if found.witness else [])]
    if found.rule == "more-than-the-window":
        given = (field("consumer") == found.witness) & (field("start") <= found.late[1])
        taken = history.to_table(columns=["message"], filter=(field("run") == found.run) & given)
        names += taken.column("message").unique().to_pylist()
    of_messages = (field("queue") == found.queue) & field("message").isin(names)
    of_takers = (field("op") == "empty") & (field("queue") == found.queue)
    about = field("op").isin(sorted(CONTROL)) | of_messages
    if found.rule == "found-nothing":
        about |= of_takers & (field("start") == found.late[0])
    table = history.to_table(columns=SCHEMA.names, filter=(field("run") == found.run) & about)
    ordered = table.sort_by([("start", "ascending"), (PLACE, "ascending")])
    for batch in ordered.cast(SCHEMA).to_batches():
        yield from records_of(batch)

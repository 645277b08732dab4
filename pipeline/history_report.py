"""The report on a history: verdicts as the gate's own, counterexamples, and tables of all found.

A requirement is judged where a rule is about it and the history put it to the test; where nothing
in it did, that is said, and not that it was kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from brokerproof.checks.gate_run import Report, Stage
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.pipeline.explanations import Violation, counterexample_of
from brokerproof.pipeline.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.set_aside import Account, Category
from brokerproof.pipeline.several_messages import FOUND_NOTHING_OF_SEVERAL, IN_TURNS
from brokerproof.pipeline.stalls import RULE as STALLED
from brokerproof.pipeline.subscriptions import NUMBERED
from brokerproof.pipeline.tables import PLACE, SCHEMA, file_and_line, records_of
from brokerproof.pipeline.turns import who_took_turns
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

BY_TIME: Final = "quiescence"
"""The one that is judged only where it is said how long a message may wait."""

HANGS_ON_THE_ORDER: Final = frozenset(
    {
        "fifo-order",
        "priority-order",
        "release-rewinds",
        "browser-in-order",
        "browser-once",
        "browser-never-rewound",
    }
)
"""Those that are asked of queues only whose order is known."""

NAMES_SHOWN: Final = 5


def judged_requirements(*, by_time: bool = False) -> dict[str, Requirement]:
    """Return the requirements that a history is held against, in the order of the catalogue.

    `by_time` is whether it is said how long a message may wait.
    """
    names = {*JUDGED, *([BY_TIME] if by_time else [])}
    return {name: each for name, each in catalogue().items() if name in names}


def report_on(
    source: str,
    judgement: Judgement,
    account: Account,
    how: str,
    chosen: Iterable[str] = (),
    parts: Sequence[Path] = (),
    known: KnownQueues = NOTHING_SAID,
) -> Report:
    """Return what is said of a history, as the gate says it of a candidate.

    Where its `parts` are given, those that took turns are named one by one.
    """
    names = set(chosen)

    def explained(found: Violation) -> Violation:
        return _with_turns(found, parts, known) if parts else found

    verdicts = tuple(
        _verdict(requirement, source, judgement, explained)
        for name, requirement in judged_requirements(by_time=BY_TIME in judgement.coverage).items()
        if not names or name in names
    )
    did = f"{account}, {how}"
    if judgement.undeclared:
        did += f"; {order_not_checked(judgement)}"
    stage = Stage("history", did, complete=True, operations=account.checked)
    return Report(source, "a recorded history", f"form {VERSION}", 0, verdicts, [stage])


def _with_turns(found: Violation, parts: Sequence[Path], known: KnownQueues) -> Violation:
    """Return a violation with all messages that took turns, where that is what it is about."""
    if found.rule not in IN_TURNS:
        return found
    return replace(found, turns=who_took_turns(found, parts, known))


def _verdict(
    requirement: Requirement,
    source: str,
    judgement: Judgement,
    explained: Callable[[Violation], Violation],
) -> Verdict:
    asked = judgement.coverage.get(requirement.id, 0)
    table = judgement.violations
    wrong = table.filter(pc.equal(table.column("requirement"), requirement.id))
    if wrong.num_rows:
        found = counterexample_of(explained(first_of(wrong)), source)
        many = f"{wrong.num_rows:,} violations; the first: " if wrong.num_rows > 1 else ""
        reason = many + found.summary
        return Verdict(requirement, Outcome.BROKEN, max(asked, 1), reason, found)
    if asked:
        return Verdict(requirement, Outcome.KEPT, asked)
    reason = "nothing in the history puts it to the test"
    if judgement.undeclared and requirement.id in HANGS_ON_THE_ORDER:
        reason = order_not_checked(judgement)
    return Verdict(requirement, Outcome.NOT_CLAIMED, 0, reason)


def order_not_checked(judgement: Judgement) -> str:
    """Return in a few words of which queues no order is known."""
    names = list(dict.fromkeys(name for _, name in judgement.undeclared))
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    verb = "was" if len(names) == 1 else "were"
    return f"order not checked: {', '.join(names[:NAMES_SHOWN])}{more} {verb} never declared"


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
    report: Report,
    judgement: Judgement,
    parts: Sequence[Path],
    known: KnownQueues,
    folder: Path,
) -> None:
    """Write, for each broken requirement, the records of the messages that witness it first.

    Each is a history of its own, with what its queue went through, and breaks the same: a queue
    that the recording does not declare and `known` does is declared in it.
    """
    place = folder / WITNESSES
    for old in place.glob("*.jsonl"):
        old.unlink()
    for verdict in report.verdicts:
        if verdict.outcome is not Outcome.BROKEN:
            continue
        table = judgement.violations
        chosen = pc.equal(table.column("requirement"), verdict.requirement.id)
        found = _with_turns(first_of(table.filter(chosen)), parts, known)
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{verdict.requirement.id}.jsonl"
        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.write_bytes(b"".join(lines_of(_records_about(found, parts, known))))
        unfinished.replace(path)


def _records_about(found: Violation, parts: Sequence[Path], known: KnownQueues) -> Iterator[Record]:
    history = ds.dataset([str(part) for part in parts])
    about = _of_messages(found, history) | _of_taker(found)
    messages = list(_ordered(history, found.run, about))
    control = list(_ordered(history, found.run, ds.field("op").isin(sorted(CONTROL))))
    concerned = [
        each
        for each in control
        if _concerns(each, found.queue, [*messages, *control])
        or (found.rule == STALLED and each.start == found.late[1])
    ]
    facts = known.facts(found.queue)
    if facts.declared and not any(each.op == "declare" for each in concerned):
        yield facts.declaration(found.run, found.queue)
    yield from heapq.merge(concerned, messages, key=attrgetter("start"))


def _of_messages(found: Violation, history: ds.Dataset) -> pc.Expression:
    field = ds.field
    names = [found.message, *([found.witness] if found.witness else []), *found.turns]
    if found.rule == "more-than-the-window":
        taker = found.witness or ""
        # Of a name that comes again the witness may be a later one.
        takers = [taker, taker.partition(NUMBERED)[0]]
        given = field("consumer").isin(takers) & (field("start") <= found.late[1])
        taken = history.to_table(columns=["message"], filter=(field("run") == found.run) & given)
        names += taken.column("message").unique().to_pylist()
    about = (field("queue") == found.queue) & field("message").isin(names)
    if found.rule == STALLED:
        # What its consumer did, and the last that is known of the run, by which it had to be given.
        other = ~field("op").isin(sorted(CONTROL))
        about |= other & ((field("consumer") == found.witness) | (field("start") == found.late[1]))
    return about


def _of_taker(found: Violation) -> pc.Expression:
    """Return what the get that found nothing is known by."""
    field = ds.field
    is_it = (field("op") == "empty") & (field("queue") == found.queue)
    return (
        is_it
        & (field("start") == found.late[0])
        & (found.rule in {"found-nothing", FOUND_NOTHING_OF_SEVERAL})
    )


def _ordered(history: ds.Dataset, run: str, about: pc.Expression) -> Iterator[Record]:
    table = history.to_table(columns=SCHEMA.names, filter=(ds.field("run") == run) & about)
    ordered = table.sort_by([("start", "ascending"), (PLACE, "ascending")])
    for batch in ordered.cast(SCHEMA).to_batches():
        yield from records_of(batch)


def _concerns(record: Record, queue: str, others: Sequence[Record]) -> bool:
    """Whether a record about no single message says something of a queue."""
    match record.op:
        case "crash" | "restart":
            return True
        case "cancel":
            return any(each.queue == queue and each.consumer == record.consumer for each in others)
        case "close":
            on_it = [each for each in others if each.channel == record.channel]
            # One that was lost may have taken an answer with it, of any queue.
            unknown = not any(each.op == "consume" for each in on_it) and record.outcome != "ok"
            return unknown or any(each.queue == queue for each in on_it)
        case _:
            return record.queue == queue

"""The witness of a violation: a small part of the history that breaks the same requirement.

A reader that doubts a verdict can have these records judged again. Each choice is therefore judged
first: it must show the same violation, and break no other requirement. If the records of the
messages concerned break more, some are left out. That is sound: the violation was found with all of
them present. Owns the choice; `explanations.py` explains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explain.covering_chain import covering_chain_of
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.intervals.known_queues import KnownQueues
from brokerproof.pipeline.intervals.subscriptions import NUMBERED
from brokerproof.pipeline.names import Ints, Marks, numbers
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.tables import PLACE, SCHEMA, batch_of, records_of
from brokerproof.spec.histories import CONTROL, Record

FOLDER: Final = "witnesses"
"""The folder of witnesses, one file for each broken requirement."""

ROWS_JUDGED_MAX: Final = 500_000
"""The limit of rows judged, over all trials, to find rows that can be left out."""
TRIALS_MAX: Final = 40
"""The limit of trials with rows left out."""
ROWS_SMALL: Final = 10_000
"""More rows than that are judged only if fewer do not show the violation."""
ROWS_OF_QUEUE_MAX: Final = 200_000
"""If fewer do not show it, the records of a whole queue are taken, up to this number."""

NOWHERE: Final = 0
"""The place of a record that is in no file: a queue's declaration by option."""

_Found: TypeAlias = tuple[bool, frozenset[str]]
"""Whether the violation is shown, and the other requirements that are broken."""


@dataclass(frozen=True)
class Witness:
    """A violation, with the records that show it.

    `is_shown` is whether the records alone show it. `besides` are the further requirements that
    they break, if possible none. `begins_late` is whether they must be judged as a recording that
    began late.
    """

    violation: Violation
    records: pa.Table
    is_shown: bool
    besides: frozenset[str]
    begins_late: bool = False

    @property
    def file(self) -> str:
        """The path of the records, below the folder of the report."""
        return f"{FOLDER}/{self.violation.requirement}.jsonl"

    @property
    def remark(self) -> str:
        """A note for judging the records again; usually empty."""
        if not self.is_shown:
            return "by themselves its records do not show it"
        said = []
        if self.besides:
            said.append(f"its records break {', '.join(sorted(self.besides))} too")
        if self.begins_late:
            said.append("its records are to be judged with --begins-late")
        return "; ".join(said)


def witnesses_of(
    judgement: Judgement,
    parts: Sequence[Path],
    known: KnownQueues,
    chosen: Collection[str] = (),
    shown_run: str | None = None,
) -> dict[str, Witness]:
    """Return a witness of the first violation of each broken requirement.

    `chosen` limits the requirements; empty means all. A violation in `shown_run` is taken, if there
    is one.
    """
    table, source = judgement.violations, _Source(parts)
    names = table.column("requirement").unique().to_pylist()
    found = {}
    for name in sorted(names):
        if chosen and name not in chosen:
            continue
        of_run = table.filter(pc.equal(table.column("run"), shown_run)) if shown_run else table
        is_there = pc.any(pc.equal(of_run.column("requirement"), name)).as_py()
        first = first_of(of_run if is_there else table, name)
        found[name] = _witness(_with_turns(first, parts, known), judgement, source, known)
    return found


def first_of(violations: pa.Table, requirement: str) -> Violation:
    """Return the earliest violation of a requirement; of several, the first by name.

    A violation whose messages have no other violation comes first: it can be shown without breaking
    anything else.
    """
    whose = ["run", "queue", "message"]
    many = violations.group_by(whose).aggregate([([], "count_all")])
    asked = violations.filter(pc.equal(violations.column("requirement"), requirement))
    asked = asked.join(many, whose)
    of_witness = many.rename_columns(["run", "queue", "witness", "of_witness"])
    asked = asked.join(of_witness, ["run", "queue", "witness"])
    besides = pc.add(asked.column("count_all"), pc.fill_null(asked.column("of_witness"), 0))
    asked = asked.append_column("besides", besides)
    keys = ["besides", "late_end", *whose]
    order = pc.sort_indices(asked, sort_keys=[(name, "ascending") for name in keys])
    return Violation.of(asked.take(order[:1]).to_pylist()[0])


def _with_turns(found: Violation, parts: Sequence[Path], known: KnownQueues) -> Violation:
    """Return a violation with its covering chain, if its rule has one."""
    if not RULES[found.rule].each_moment:
        return found
    return replace(found, chain=covering_chain_of(found, parts, known))


def write_witnesses(witnesses: Mapping[str, Witness], report: Path) -> None:
    """Write the records of each witness below the folder of the report, and remove old ones."""
    place = report / FOLDER
    for old in place.glob("*.jsonl"):
        old.unlink()
    for each in witnesses.values():
        place.mkdir(parents=True, exist_ok=True)
        path = report / each.file
        unfinished = path.with_name(f".{path.name}.unfinished")
        records = (r for batch in each.records.to_batches() for r in records_of(batch))
        unfinished.write_bytes(b"".join(lines_of(records)))
        unfinished.replace(path)


class _Source:
    """The parts of a history; the control records of a run are read once."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self.history = ds.dataset([str(part) for part in parts])
        self._control: dict[str, tuple[pa.Table, list[Record]]] = {}

    def control(self, run: str) -> tuple[pa.Table, list[Record]]:
        """Return the control records of a run, as rows and decoded."""
        if run not in self._control:
            table = _read(self.history, (ds.field("run") == run) & _is_control())
            records = [record for batch in table.to_batches() for record in records_of(batch)]
            self._control[run] = table, records
        return self._control[run]


def _witness(
    found: Violation, judgement: Judgement, source: _Source, known: KnownQueues
) -> Witness:
    """Return the records that show a violation, with as few others as possible.

    The records of the messages concerned are enough, except for rules about a whole queue.
    """
    tried: list[tuple[_Trial, _Found]] = []
    for records in _choices(found, source, known):
        if records.num_rows > ROWS_SMALL and any(said[0] for _, said in tried):
            break
        for begins_late in (False, True)[: 1 + judgement.begins_late]:
            asked = records if begins_late else _published(records, found, judgement)
            trial = _Trial(found, asked, judgement.stalled_after, begins_late)
            said = trial.judged(trial.everything)
            if said[0] and not said[1]:
                return _tidied(trial, trial.everything, said)
            tried.append((trial, said))
    return _reduced(*next((each for each in tried if each[1][0]), tried[0]))


# The records of a violation.


def _about(found: Violation, history: ds.Dataset) -> pc.Expression:
    """Return the condition for the records of a violation's messages, and of its get."""
    field = ds.field
    of_run, of_queue = field("run") == found.run, field("queue") == found.queue
    rule = RULES[found.rule]
    names = {found.message, *([found.witness] if found.witness else []), *found.chain}
    if rule.by_count:
        names |= _never_given(history, of_run & of_queue)
    if rule.of_subscriber:
        subscriber = found.witness or ""
        # The witness of a reused name may be a later subscription.
        subscribers = [subscriber, subscriber.partition(NUMBERED)[0]]
        had = of_run & of_queue & field("consumer").isin(subscribers) & field("message").is_valid()
        if not rule.by_time:
            had &= field("start") <= found.late[1]
        names |= set(history.to_table(columns=["message"], filter=had)["message"].to_pylist())
    about = of_queue & field("message").isin(sorted(names))
    if rule.concerns_a_get:
        about |= of_queue & (field("op") == "empty") & (field("start") == found.late[0])
    if rule.by_time:
        # The last known record of the run, by which the message had to be delivered.
        last = of_run & (field("start") == found.late[1])
        about |= last & (field("op") == "empty")
        for row in history.to_table(columns=["queue", "message"], filter=last).to_pylist():
            about |= (field("queue") == row["queue"]) & (field("message") == row["message"])
    return of_run & about & ~_is_control()


def _never_given(history: ds.Dataset, of_queue: pc.Expression) -> set[str]:
    """Return the messages of a queue without a delivery."""
    published, given = (
        set(history.to_table(columns=["message"], filter=of_queue & (ds.field("op") == kind))[0])
        for kind in ("publish", "deliver")
    )
    return {each.as_py() for each in published - given}


def _choices(found: Violation, source: _Source, known: KnownQueues) -> Iterator[pa.Table]:
    """Yield records that may show a violation, few first.

    First come those of its messages, with the control records of their subscribers; then with those
    of all subscribers of the queue; then all records of the queue, if these are not too many.
    """
    of_run, of_queue = ds.field("run") == found.run, ds.field("queue") == found.queue
    history, control = source.history, source.control(found.run)
    messages = _read(history, _about(found, history))
    yield _together(found, messages, control, known, of_messages=True)
    yield _together(found, messages, control, known, of_messages=False)
    every = of_run & of_queue & ~_is_control()
    if history.count_rows(filter=every) <= ROWS_OF_QUEUE_MAX:
        yield _together(found, _read(history, every), control, known, of_messages=False)


def _read(history: ds.Dataset, about: pc.Expression) -> pa.Table:
    return history.to_table(columns=SCHEMA.names, filter=about).cast(SCHEMA)


def _is_control() -> pc.Expression:
    return ds.field("op").isin(sorted(CONTROL))


def _together(
    found: Violation,
    messages: pa.Table,
    control: tuple[pa.Table, list[Record]],
    known: KnownQueues,
    *,
    of_messages: bool,
) -> pa.Table:
    """Return records with their queue's control records and declaration, by time.

    `of_messages` leaves out those of subscribers that have nothing to do with the records.
    """
    table, records = control
    concerned = _concerned(found, records, messages, of_messages=of_messages)
    concerned_rows = table.filter(pa.array(concerned, pa.bool_()))
    facts, made = known.facts(found.queue), []
    is_declared = pc.any(pc.equal(concerned_rows.column("op"), "declare")).as_py()
    if facts.declared and not is_declared:
        said = batch_of([facts.declaration(found.run, found.queue)], [NOWHERE])
        made = [pa.Table.from_batches([said])]
    table = pa.concat_tables([*made, concerned_rows, messages])
    return table.sort_by([("start", "ascending"), (PLACE, "ascending")])


def _concerned(
    found: Violation, rows: Sequence[Record], messages: pa.Table, *, of_messages: bool
) -> list[bool]:
    """Return which control records concern the queue, or only the subscribers of the messages."""
    columns = (messages.column(name).to_pylist() for name in ("queue", "consumer", "channel"))
    there = [*zip(*columns, strict=True)]
    # A get without an answer may have taken a message until its channel is closed.
    others = (r for r in rows if not of_messages or r.op == "get")
    there += ((r.queue, r.consumer, r.channel) for r in others)
    subscribers = {
        subscriber for queue, subscriber, _ in there if queue == found.queue and subscriber
    }
    # A reused name stands for several subscriptions, to other queues too.
    of_subscribers = [(r.queue, r.consumer, r.channel) for r in rows if r.consumer in subscribers]
    channels = {
        channel
        for queue, _, channel in (*there, *of_subscribers)
        if queue == found.queue and channel
    } | {channel for _, _, channel in of_subscribers if channel}
    subscribed = {each.channel for each in rows if each.op == "consume"}

    def concerns(record: Record) -> bool:
        match record.op:
            case "crash" | "restart":
                return True
            case "consume" | "cancel":
                return record.consumer in subscribers
            case "close":
                # A lost channel may have taken an answer with it, of any queue.
                is_open = record.channel not in subscribed and record.outcome != "ok"
                return (is_open and not of_messages) or record.channel in channels
            case _:
                # The last known record of a run may be about another queue.
                is_last = RULES[found.rule].by_time and record.start == found.late[1]
                return record.queue == found.queue or is_last

    return [concerns(each) for each in rows]


def _published(records: pa.Table, found: Violation, judgement: Judgement) -> pa.Table:
    """Return records without the messages published before the recording."""
    if not judgement.begins_late:
        return records
    messages = records.column("message")
    published = messages.filter(pc.equal(records.column("op"), "publish"))
    names = pa.array(sorted({*published.to_pylist(), found.message}), pa.string())
    return records.filter(pc.or_(pc.is_null(messages), pc.is_in(messages, value_set=names)))


# The judgement of the records alone.


@dataclass
class _Trial:
    """Records that should show a violation, and the judgements used to choose among them."""

    violation: Violation
    records: pa.Table
    stalled_after: int | None
    begins_late: bool
    trials: int = 0
    rows: int = 0
    last: tuple[bytes, Judgement] | None = None
    """The last choice and its judgement: what is rejected is asked of the choice just judged."""

    @property
    def everything(self) -> Marks:
        """The choice of all records."""
        return np.ones(self.records.num_rows, dtype=np.bool_)

    def _judgement(self, kept: Marks) -> Judgement:
        if self.last is not None and self.last[0] == kept.tobytes():
            return self.last[1]
        table = self.records.filter(pa.array(kept))
        self.trials += 1
        self.rows += table.num_rows
        # The limit on the wait applies only to violations by time.
        bound = self.stalled_after if RULES[self.violation.rule].by_time else None
        judgement = judged_alone(table, begins_late=self.begins_late, stalled_after=bound)
        self.last = kept.tobytes(), judgement
        return judgement

    def judged(self, kept: Marks) -> _Found:
        """Return whether a choice shows the violation, and its other broken requirements."""
        rows = self._judgement(kept).violations.to_pylist()
        is_shown = any(_is_same(self.violation, row) for row in rows)
        return is_shown, frozenset(row["requirement"] for row in rows) - {
            self.violation.requirement
        }

    def reject(self, kept: Marks) -> Ints:
        """Return the places of the records of a choice that would be rejected."""
        return numbers(self._judgement(kept).aside, "place")

    def is_over(self) -> bool:
        """Return whether a limit of trials is reached."""
        return self.trials >= TRIALS_MAX or self.rows >= ROWS_JUDGED_MAX

    def witness(self, kept: Marks, said: _Found) -> Witness:
        """Return the witness of a choice."""
        table = self.records.filter(pa.array(kept))
        return Witness(self.violation, table, *said, self.begins_late)


def _is_same(found: Violation, row: dict[str, Any]) -> bool:
    other = Violation.of(row)
    by = [(each.witness or "").partition(NUMBERED)[0] for each in (found, other)]
    return by[0] == by[1] and all(
        getattr(found, name) == getattr(other, name)
        for name in ("requirement", "run", "queue", "message", "rule")
    )


def _reduced(trial: _Trial, at_first: _Found) -> Witness:
    """Return the records, without some since they also break other requirements at first.

    It leaves out one unit at a time that is not needed, a whole message first, then single records,
    until no other requirement is broken. If that never happens, nothing is left out.
    """
    everything = kept = trial.everything
    said = at_first
    if not said[0]:
        return _tidied(trial, kept, said)
    for unit in _units(trial):
        if trial.is_over() or not said[1]:
            break
        if not kept[unit].any():
            continue
        fewer = kept.copy()
        fewer[unit] = False
        then = trial.judged(fewer)
        if then[0] and len(then[1]) <= len(said[1]):
            kept, said = fewer, then
    if said[1] == at_first[1]:
        return _tidied(trial, everything, at_first)
    return _tidied(trial, kept, said)


def _tidied(trial: _Trial, kept: Marks, said: _Found) -> Witness:
    """Return the records without those that would be rejected, unless they then show less."""
    aside = trial.reject(kept)
    fewer = kept & ~np.isin(numbers(trial.records, PLACE), aside)
    if (fewer == kept).all():
        return trial.witness(kept, said)
    then = trial.judged(fewer)
    return trial.witness(fewer, then) if then == said else trial.witness(kept, said)


def _units(trial: _Trial) -> Iterator[Ints]:
    """Yield the units to leave out: the rows of each other message, then each single row.

    Control records stay: there are many, and few of them matter.
    """
    of_message: dict[str, list[int]] = {}
    names = trial.records.column("message").to_pylist()
    for row, name in enumerate(names):
        if name is not None:
            of_message.setdefault(name, []).append(row)
    for name, rows in of_message.items():
        if name != trial.violation.message:
            yield np.array(rows, dtype=np.int64)
    for row in (row for rows in of_message.values() for row in rows):
        yield np.array([row], dtype=np.int64)

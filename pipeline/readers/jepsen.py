"""Histories of Jepsen's tests of queues: maps in EDN, one a line or all in a vector.

An invocation and the next completion of its process are one operation (jepsen.history). An
`enqueue` is a publish; `:info` leaves open whether it happened. A `dequeue` is a get that settles
at once; `:fail` says that it took nothing, and that the queue was empty only if it says
*exhausted*. A `drain` is as many gets as it has values, in their order, after which the queue was
empty. Times are `:time`, or the numbers of the rows without one.

A dequeue or a drain without a known answer may have taken any message, for good or to return it at
any later time. So a message without a delivery before the first of these began is left open: its
publish may have happened, without an end, whatever the answer. Such a message can never be missing,
and its order is unknown. A row that cannot be read may be such an operation, or the only trace of a
publish. For this, a history is read twice. Values enqueued more than once are ambiguous and
rejected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from brokerproof.pipeline.readers.edn import Keyword, Unreadable, Value, forms, text_of
from brokerproof.pipeline.readers.rejected_rows import Category, Rejected, reject
from brokerproof.pipeline.readers.rows import Used, name_of
from brokerproof.spec.histories import NEVER, Record, Result

QUEUE: Final = "queue"
"""The name of a test's only queue."""

EXHAUSTED: Final = frozenset({"exhausted", "empty"})
"""The values or errors of a dequeue that found the queue empty."""

Work: TypeAlias = Literal["enqueue", "dequeue", "drain"]
_WORK: Final[dict[str, Work]] = {
    ":enqueue": "enqueue",
    ":dequeue": "dequeue",
    ":drain": "drain",
}
_RESULTS: Final[dict[str, Result]] = {":ok": "ok", ":fail": "failed", ":info": "unknown"}


class Operation(NamedTuple):
    """An operation of a process, from its invocation to its completion, if any."""

    work: Work
    process: int
    line: int
    start: int
    end: int | None
    result: Result
    value: Value
    error: Value


_SOMETIME: Final = Operation("enqueue", 0, 0, 0, None, "unknown", None, None)
"""An enqueue without any known fact."""


class _Row(NamedTuple):
    """A row about the queue."""

    line: int
    work: Work
    process: int
    time: int
    result: Result | None
    value: Value
    error: Value


class _Known(NamedTuple):
    """The facts about a whole history that the translation of a row needs."""

    published: Counter[str]
    given_first: dict[str, int]
    unknown_from: float
    is_damaged: bool


def read(path: Path) -> Iterator[Used | Rejected]:
    """Yield the content of a history's rows; raises `UnreadableHistory`."""
    known = _look_through(path)
    run = name_of(str(path))
    positions: Counter[int] = Counter()
    is_first = True
    for found in _operations(path):
        if not isinstance(found, Operation):
            yield found
            continue
        said = _records(run, found, known, positions)
        if isinstance(said, str):
            yield reject("not told apart", said, str(path), found.line)
            continue
        if is_first:
            is_first = False
            said = [_declared(run), *said]
        yield Used(found.line, tuple(said))


def _declared(run: str) -> Record:
    return Record(op="declare", run=run, queue=QUEUE, start=0, end=0, returns="elsewhere")


def _look_through(path: Path) -> _Known:
    published: Counter[str] = Counter()
    given_first: dict[str, int] = {}
    unknown_from: float = math.inf
    is_damaged = False
    for found in _operations(path):
        if isinstance(found, Rejected) and found.category != "about something else":
            is_damaged, unknown_from = True, 0
        if not isinstance(found, Operation):
            continue
        if found.work == "enqueue":
            published[_name(found.value)] += 1
        elif found.result == "unknown":
            unknown_from = min(unknown_from, found.start)
        elif found.end is not None:
            for value in _taken(found):
                given_first.setdefault(_name(value), found.end)
    return _Known(published, given_first, unknown_from, is_damaged)


def _records(
    run: str, found: Operation, known: _Known, positions: Counter[int]
) -> list[Record] | str:
    """Return the records of an operation, or why its message is ambiguous."""
    names = [_name(found.value)] if found.work == "enqueue" else list(map(_name, _taken(found)))
    told_apart = [name for name in names if known.published[name] <= 1]
    if names and not told_apart:
        return f"{names[0]} was enqueued more than once"
    if found.work == "enqueue":
        return [_published(run, found, names[0], known)]
    consumer = f"process {found.process}"
    records = []
    for name in told_apart:
        if known.is_damaged and not known.published[name]:
            records.append(_published(run, _SOMETIME, name, known))
        records.append(
            Record(
                op="deliver",
                run=run,
                queue=QUEUE,
                message=name,
                consumer=consumer,
                position=positions[found.process],
                start=found.start,
                end=found.end,
                mode="automatic",
            )
        )
        positions[found.process] += 1
    if found.work == "drain" and found.result == "ok":
        records.append(_at_queue("drained", run, found))
    if found.work == "dequeue" and _found_nothing(found):
        records.append(_at_queue("empty", run, found))
    return records


def _published(run: str, found: Operation, name: str, known: _Known) -> Record:
    given = known.given_first.get(name, NEVER)
    is_open = given >= known.unknown_from and found.result != "failed"
    return Record(
        op="publish",
        run=run,
        queue=QUEUE,
        message=name,
        producer=f"process {found.process}",
        start=found.start,
        end=None if is_open or found.result == "unknown" else found.end,
        outcome="unknown" if is_open else found.result,
    )


def _at_queue(op: Literal["drained", "empty"], run: str, found: Operation) -> Record:
    consumer = f"process {found.process}"
    return Record(op=op, run=run, queue=QUEUE, consumer=consumer, start=found.start, end=found.end)


def _name(value: Value) -> str:
    return name_of(text_of(value))


def _taken(found: Operation) -> list[Value]:
    """Return the values that were certainly delivered."""
    if found.result != "ok" or found.value is None:
        return []
    if found.work == "drain":
        return found.value if isinstance(found.value, list) else [found.value]
    return [found.value]


def _found_nothing(found: Operation) -> bool:
    if found.result == "ok":
        return found.value is None
    words = {text_of(each).strip(':"') for each in (found.value, found.error)}
    return found.result == "failed" and bool(words & EXHAUSTED)


def _operations(path: Path) -> Iterator[Operation | Used | Rejected]:
    """Yield each operation at the line of its completion, and each other row.

    An invocation alone counts as a used row, until the end shows that it was never completed.
    """
    waiting: dict[int, _Row] = {}
    for row in _rows(path):
        if isinstance(row, Rejected):
            yield row
            continue
        before = waiting.pop(row.process, None)
        if before is not None and (row.result is None or row.work != before.work):
            yield _unanswered(before)
            before = None
        if row.result is None:
            waiting[row.process] = row
            continue
        if before is not None:
            yield Used(before.line)
        yield _completed(row, before)
    for row in waiting.values():
        yield _unanswered(row)


def _unanswered(row: _Row) -> Operation:
    return Operation(row.work, row.process, row.line, row.time, None, "unknown", row.value, None)


def _completed(row: _Row, before: _Row | None) -> Operation:
    """Return an operation; without an invocation it may have begun at any earlier time."""
    start = 0 if before is None else before.time
    value = before.value if before is not None and row.work == "enqueue" else row.value
    result: Result = row.result or "unknown"
    end = None if result == "unknown" else max(row.time, start)
    return Operation(row.work, row.process, row.line, start, end, result, value, row.error)


def _rows(path: Path) -> Iterator[_Row | Rejected]:
    has_times: bool | None = None
    for number, (line, form) in enumerate(forms(path)):
        if isinstance(form, dict) and has_times is None:
            has_times = ":time" in form
        row = _row(line, form, None if has_times else number)
        yield row if isinstance(row, _Row) else reject(*row, str(path), line, _text(form))


def _text(form: Value | Unreadable) -> str:
    return "" if isinstance(form, Unreadable) else text_of(form)


def _row(line: int, form: Value | Unreadable, number: int | None) -> _Row | tuple[Category, str]:
    """Return a row, or why it is none; without times its time is its number."""
    if isinstance(form, Unreadable):
        return "unreadable", f"this is not EDN: {form}"
    if not isinstance(form, dict):
        return "unreadable", "this is no map"
    kind, work, process = form.get(":type"), form.get(":f"), form.get(":process")
    time = form.get(":time") if number is None else number
    for name, value in ((":type", kind), (":f", work), (":process", process), (":time", time)):
        if value is None:
            return "missing", f"there is no {name}"
    if isinstance(process, Keyword) or not isinstance(work, Keyword) or work not in _WORK:
        return "about something else", f"{text_of(process)} did {text_of(work)}"
    if kind != ":invoke" and kind not in _RESULTS:
        return "wrong value", f":type is {text_of(kind)}"
    if type(process) is not int or type(time) is not int or not 0 <= time < NEVER:
        return "wrong value", f":process is {text_of(process)}, :time {text_of(time)}"
    return _Row(
        line,
        _WORK[work],
        process,
        time,
        _RESULTS.get(str(kind)),
        form.get(":value"),
        form.get(":error"),
    )

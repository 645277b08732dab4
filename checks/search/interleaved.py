"""The record of a run on threads: the moves made at once, and the order of the steps.

The file owns the form of a schedule in a counterexample's file, and its table in plain text: a
column for each thread, a row for each access. `checks/threads/records.py` runs a schedule again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from brokerproof.checks.trace.moves import Move, text_of, visible

COLUMN_MAX = 60
"""The most characters of an access in a column of plain text; the file has all."""


class Access(msgspec.Struct, frozen=True):
    """One access as it is told: by which thread, of what, and what it came to."""

    thread: str
    cell: str
    what: str

    def __str__(self) -> str:
        return f"{self.cell}.{self.what}" if self.cell else self.what


class Interleaved(msgspec.Struct, frozen=True, kw_only=True):
    """Moves at once, and the schedule that shows what is wrong.

    `case` is what reports call it. `at_once` are the moves of each client, `stirring` those made
    right before, whose jobs are threads too. `choices` are the numbers of the threads that made a
    step each, by which it is run again: clients first, then jobs, then what threads began.
    `accesses` tell what these steps were, `happened` what was answered and told.
    """

    case: str
    at_once: tuple[tuple[Move, ...], ...]
    choices: tuple[int, ...]
    stirring: tuple[Move, ...] = ()
    jobs_at_once: bool = False
    accesses: tuple[Access, ...] = ()
    happened: tuple[str, ...] = ()

    @property
    def threads(self) -> tuple[str, ...]:
        """The names of the threads that made a step, in the order of their first steps."""
        return tuple(dict.fromkeys(access.thread for access in self.accesses))

    @property
    def clients(self) -> tuple[str, ...]:
        """The operations of each client in words, and those right before."""
        stirring = ["; ".join(map(text_of, self.stirring))] if self.stirring else []
        clients = [
            f"client {number}: {'; '.join(map(text_of, moves))}"
            for number, moves in enumerate(self.at_once, start=1)
        ]
        return (*(f"right before: {each}" for each in stirring), *clients)


def lines_of(run: Interleaved) -> Iterator[str]:
    """Yield the lines that show a run on threads in plain text."""
    yield f'  at once, in the case "{visible(run.case)}"'
    yield from (f"      {visible(each)}" for each in run.clients)
    rows = [(access.thread, _cut(visible(str(access)))) for access in run.accesses]
    widths = {
        name: max(len(name), *(len(what) for thread, what in rows if thread == name))
        for name in run.threads
    }
    yield from _row("", {name: visible(name) for name in widths}, widths)
    for number, (thread, what) in enumerate(rows, start=1):
        yield from _row(str(number), {thread: what}, widths)
    yield from (f"      {visible(each)}" for each in run.happened)


def _row(number: str, told: dict[str, str], widths: dict[str, int]) -> Sequence[str]:
    columns = (f"{told.get(name, ''):<{width}}" for name, width in widths.items())
    return [f"  {number:>2}  {'  '.join(columns)}".rstrip()]


def _cut(text: str) -> str:
    return text if len(text) <= COLUMN_MAX else f"{text[: COLUMN_MAX - 1]}…"

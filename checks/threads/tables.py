"""A schedule as a table: a column for each thread, a row for each access, with the values.

The file owns the names of cells and values. An object with a name of its own, as a consumer or an
entry with a message, has that one. Any other has the shortest path from the shared objects at the
time of the access: `head.next's` is the object that the cell `head.next` refers to. An object
without a path is new, and named by its kind.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.table import Table

from brokerproof.checks.search.interleaved import Access
from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.interleavings import Differs
from brokerproof.checks.threads.plain_attributes import attributes
from brokerproof.checks.threads.runs import Failed
from brokerproof.checks.threads.schedules import led
from brokerproof.checks.threads.threads import Cell, Thread, Threads
from brokerproof.reference.shared.atomics import AtomicReference

_PLAIN = (str, bytes, int, float, bool, type(None), enum.Enum)


def accesses(case: Case[Shared], failed: Failed) -> tuple[Access, ...]:
    """Run a schedule again and return the accesses of each thread to the shared objects.

    Raises `Differs` if the run ends differently.
    """
    return seen_again(case, failed)[0]


def seen_again(case: Case[Shared], failed: Failed) -> tuple[tuple[Access, ...], Shared]:
    """Run a schedule again; return each thread's accesses, and the shared objects at the end.

    Raises `Differs` if the run ends differently.
    """
    told: list[Access] = []
    shared: list[Shared] = []

    def make(threads: Threads) -> Shared:
        made = case.make(threads)
        shared.append(made)
        return made

    def watch(
        thread: Thread, method: str, cell: Cell, arguments: tuple[object, ...], result: object
    ) -> None:
        names = _Names(shared[0])
        told.append(Access(thread.name, names.of(cell), _what(method, arguments, result, names)))

    if led(replace(case, make=make), failed.choices, watch) != failed.complaints:
        raise Differs
    return tuple(told), shared[0]


def table(case: Case[Shared], failed: Failed) -> Table:
    """Return the table of a schedule, with its complaints below it."""
    rows = accesses(case, failed)
    names = list(dict.fromkeys(each.thread for each in rows))
    shown = Table("", *names, title=case.name, caption="; ".join(failed.complaints))
    for number, each in enumerate(rows, start=1):
        shown.add_row(str(number), *(str(each) if name == each.thread else "" for name in names))
    return shown


def _what(method: str, arguments: Sequence[object], result: object, names: _Names) -> str:
    match method, [names.of(each) for each in arguments]:
        case "get", _:
            return f"get → {names.of(result)}"
        case "compare_and_set", [expected, value]:
            return f"compare_and_set({expected} → {value}): {'done' if result else 'refused'}"
        case "__enter__", _:
            return "taken"
        case "__exit__", _:
            return "given back"
        case _, told:
            return f"{method}({', '.join(told)})" + (
                "" if result is None else f" → {names.of(result)}"
            )


class _Names:
    """The names of all values reachable from one object, by the shortest path."""

    def __init__(self, root: object) -> None:
        self._known: dict[int, str] = {}
        left = deque([("", root)])
        while left:
            name, value = left.popleft()
            if id(value) in self._known or isinstance(value, (*_PLAIN, Thread, Threads)):
                continue
            name = _own_name(value) or name
            self._known[id(value)] = name
            left.extend(_parts(name, value))

    def of(self, value: object) -> str:
        """Return the name of a value, or the value itself if it is plain."""
        if isinstance(value, enum.Enum):
            return value.name.lower()
        if isinstance(value, _PLAIN):
            return "nothing" if value is None else str(value)
        known = self._known.get(id(value))
        if known is not None:
            return known or f"the {type(value).__name__}"
        return f"a new {type(value).__name__}"


def _own_name(value: object) -> str:
    """Return the name that a value carries, if it carries one."""
    kind = type(value).__name__
    for attribute in ("message", "consumer", "name"):
        carried = getattr(value, attribute, None)
        carried = getattr(carried, "id", carried)
        if isinstance(carried, str):
            return carried if attribute == "message" else f"{kind} {carried}"
    return ""


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the parts of a value, each with its name."""
    if isinstance(value, AtomicReference):
        yield f"{name}'s", value.value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{name}[{key}]", each
    elif isinstance(value, list | tuple | set | frozenset):
        for number, each in enumerate(value):
            yield f"{name}[{number}]", each
    else:
        for attribute, each in attributes(value):
            yield f"{name}.{attribute}" if name else attribute, each

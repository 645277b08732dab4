"""Threads of control that stop before every access to a shared cell, so that others may go first.

Only here is `reference/shared/atomics.py` put under a scheduler: each method of a cell first hands
control back, and is carried out when its thread is chosen. The algorithm itself is unchanged. The
code between two accesses belongs to one thread alone, as `plain_attributes` checks, and runs in one
go.

Threads are greenlets: they switch where they stop and nowhere else. So a list of choices is a
schedule, and the same choices make the same run.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import greenlet

from brokerproof.reference.shared.atomics import (
    ATOMIC_STEPS,
    AtomicFlag,
    AtomicInteger,
    AtomicReference,
    Lock,
)

Cell: TypeAlias = object
"""A cell or lock of `reference/shared/atomics.py`, or an object with atomic steps."""
Body: TypeAlias = Callable[[], object]
Watcher: TypeAlias = "Callable[[Thread, str, Cell, tuple[object, ...], object], None]"
"""Called after an access: with its thread, name, cell, arguments and result."""


class Effect(enum.Enum):
    """The effect of an access on its cell; two to one cell can be exchanged only if both read."""

    READ = "reads"
    WRITE = "writes"
    TAKE = "takes"
    """Takes a lock, and waits until it is free."""
    GIVE_BACK = "gives back"


READ, WRITE, TAKE, GIVE_BACK = Effect.READ, Effect.WRITE, Effect.TAKE, Effect.GIVE_BACK


class Thread:
    """One thread of control, and the access before which it stands.

    Attributes:
        cell: the cell of its next access; None at its start and where it starts another thread.
        effect: the effect of that access; a comparison, which may fail, counts as a write.
        made: the actual effect of its last access: a comparison that failed has only read.
        failure: the exception that ended it, if any.

    """

    __slots__ = ("cell", "effect", "failure", "greenlet", "is_over", "made", "name", "number")

    def __init__(self, number: int, name: str, body: Body) -> None:
        self.number = number
        self.name = name
        self.cell: Cell | None = None
        self.effect = self.made = READ
        self.failure: Exception | SystemExit | None = None
        self.is_over = False
        self.greenlet = greenlet.greenlet(lambda: self._live(body))

    def __repr__(self) -> str:
        return f"<thread {self.name}>"

    def is_blocked(self) -> bool:
        """Whether it waits for a lock that a thread holds."""
        return self.effect is TAKE and isinstance(self.cell, Lock) and self.cell.held

    def _live(self, body: Body) -> None:
        try:
            body()
        # Whatever the code under the checks raises is a finding of this run.
        except (Exception, SystemExit) as failure:  # noqa: BLE001
            self.failure = failure
        self.is_over = True


class _Turn:
    """The running thread; None while no thread runs.

    A thread inside an atomic step is `within` instead: nothing stops it there.
    """

    __slots__ = ("hand_back", "thread", "within")

    def __init__(self) -> None:
        self.thread: Thread | None = None
        self.within: Thread | None = None
        self.hand_back: Callable[[], object] = _to_no_thread


def _to_no_thread() -> None:
    raise AssertionError("no threads have been made")


_turn: Final = _Turn()


def running() -> Thread | None:
    """Return the running thread."""
    return _turn.thread or _turn.within


def is_within_a_step() -> bool:
    """Whether the running thread is within an atomic step."""
    return _turn.within is not None


class Threads:
    """The threads of one run; lets one at a time make one access and run on to its next.

    The caller must close it: threads of an abandoned run stand in the middle of their work. `steps`
    is how many accesses were made.
    """

    __slots__ = ("_hub", "all", "steps")

    def __init__(self) -> None:
        self.all: list[Thread] = []
        self.steps = 0
        self._hub = greenlet.getcurrent()
        _turn.hand_back = self._hub.switch

    def start(self, name: str, body: Body) -> None:
        """Make a thread, which stands at its start.

        If a thread makes another one, this is an access too, of no cell.
        """
        current = _turn.thread
        if current is not None:
            current.cell, current.effect = None, READ
            _turn.hand_back()
        thread = Thread(len(self.all), name, body)
        thread.greenlet.parent = self._hub
        self.all.append(thread)

    def step(self, thread: Thread) -> None:
        """Let a thread make the access before which it stands, and run on to its next."""
        self.steps += 1
        _turn.thread = thread
        thread.made = thread.effect
        thread.greenlet.switch()
        _turn.thread = None

    def close(self) -> None:
        """End the threads that are not over, and the turn of one that Ctrl-C interrupted."""
        _turn.hand_back, _turn.thread, _turn.within = _to_no_thread, None, None
        for thread in self.all:
            if not thread.greenlet.dead:
                thread.greenlet.throw()
        # The frame of a stopped thread's body refers to the thread, which would stay alive.
        self.all.clear()


@contextmanager
def scheduled(watcher: Watcher | None = None) -> Iterator[None]:
    """Put the methods of all cells under the scheduler while the body runs.

    Calling a `watcher` for each access takes time; most runs have none.
    """
    assert _turn.thread is None, "threads do not schedule threads"
    methods = _METHODS | {
        kind: {name: READ if reads else WRITE for name, reads in steps.items()}
        for kind, steps in ATOMIC_STEPS.items()
    }
    before = {(kind, name): getattr(kind, name) for kind in methods for name in methods[kind]}
    own = {key for key in before if key[1] in vars(key[0])}
    try:
        for (kind, name), plain in before.items():
            step = _in_one_step(plain) if kind in ATOMIC_STEPS else plain
            setattr(kind, name, _stopping(step, name, methods[kind][name], watcher))
        yield
    finally:
        for (kind, name), plain in before.items():
            if (kind, name) in own:
                setattr(kind, name, plain)
            else:
                delattr(kind, name)


_METHODS: Final[dict[type, dict[str, Effect]]] = {
    AtomicReference: {
        "get": READ,
        "set": WRITE,
        "get_and_set": WRITE,
        "compare_and_set": WRITE,
    },
    AtomicInteger: {
        "get": READ,
        "set": WRITE,
        "increment_and_get": WRITE,
        "decrement_and_get": WRITE,
    },
    AtomicFlag: {"get": READ, "compare_and_set": WRITE},
    Lock: {"__enter__": TAKE, "__exit__": GIVE_BACK},
}
"""Every method of a cell; a test checks that none is missing."""


def _in_one_step(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method in which nothing stops a thread, nor in other such methods that it calls."""

    def method(self: Cell, *arguments: object) -> Any:
        thread = _turn.thread
        if thread is None:
            return plain(self, *arguments)
        _turn.thread, _turn.within = None, thread
        try:
            return plain(self, *arguments)
        finally:
            _turn.thread, _turn.within = thread, None

    return method


def _stopping(
    plain: Callable[..., Any],
    name: str,
    effect: Effect,
    watcher: Watcher | None,
) -> Callable[..., Any]:
    """Return a method that lets other threads go first when a thread calls it."""
    turn, compares = _turn, name == "compare_and_set"

    def method(self: Cell, *arguments: object) -> Any:
        thread = turn.thread
        if thread is None:
            return plain(self, *arguments)
        thread.cell, thread.effect = self, effect
        turn.hand_back()
        result = plain(self, *arguments)
        if compares and not result:
            thread.made = READ
        if watcher is not None:
            turn.thread = None
            watcher(thread, name, self, arguments, result)
            turn.thread = thread
        return result

    return method

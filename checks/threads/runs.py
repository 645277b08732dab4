"""One run of a case: its threads, one access after another, and its failure.

The file decides when a run has ended and how: all threads over, some waiting for ever, or one that
does not end. The caller chooses the next thread.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from types import FrameType, TracebackType
from typing import Final, Self

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.plain_attributes import Touches, attributes
from brokerproof.checks.threads.threads import Cell, Thread, Threads

STEPS_MAX: Final = 2_000
"""After so many steps a run is checked for a return to an earlier state."""


class Wrong(enum.Enum):
    """The kind of failure of a run; of several, the first of these."""

    RAISED = "a thread raised something"
    STUCK = "a thread does not come to its end"
    RACE = "two threads touch something that nothing orders"
    JUDGED = "the case says so"


@dataclass(frozen=True)
class Failed:
    """A run that failed: its choices, by which it can be run again, and its complaints."""

    choices: tuple[int, ...]
    complaints: tuple[str, ...]
    wrong: Wrong

    @property
    def switches(self) -> int:
        """How often the thread changes along the way."""
        return sum(a != b for a, b in pairwise(self.choices))


class Run:
    """A case that has begun; the caller must close it.

    Attributes:
        all: its threads.
        step: lets one of them make its access and run on to its next.

    """

    __slots__ = ("_judge", "_threads", "_touches", "all", "step")

    def __init__(self, case: Case[Shared]) -> None:
        self._threads = Threads()
        self.all = self._threads.all
        self.step: Callable[[Thread], None] = self._threads.step
        self._touches = Touches()
        if case.watches:
            self.step = self._watched_step
        shared = case.begin(self._threads)
        self._judge: Callable[[], Iterable[str]] = lambda: case.judge(shared)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.close()

    def ready(self) -> list[Thread]:
        """Return the threads that can make a step."""
        return [each for each in self.all if not each.is_over and not each.is_blocked()]

    def failed(self, choices: Sequence[int]) -> Failed | None:
        """Return the failure of a run that has ended, or has been led so far.

        If a thread could still go on, all ready threads take turns for `STEPS_MAX` rounds: a run
        that returns to an earlier state may go round for ever.
        """
        found: dict[Wrong, list[str]] = {each: [] for each in Wrong}
        if self.ready() and _goes_round(self):
            names = ", ".join(each.name for each in self.ready())
            what = f"{names}: goes round for ever, and nothing changes"
            return Failed(tuple(choices), (what,), Wrong.STUCK)
        for thread in self.all:
            if thread.failure is not None:
                raised = thread.failure
                what = f"{thread.name} raised {type(raised).__name__}: {raised}".rstrip(": ")
                found[Wrong.RAISED].append(what)
            elif not thread.is_over and thread.is_blocked():
                found[Wrong.STUCK].append(f"{thread.name} waits for ever for a lock")
            elif not thread.is_over:
                what = f"{thread.name} has not ended after {2 * STEPS_MAX} steps"
                found[Wrong.STUCK].append(what)
        found[Wrong.RACE] += self._touches.races
        if not any(found.values()):
            found[Wrong.JUDGED] += self._judge()
        wrong = next((each for each in Wrong if found[each]), None)
        if wrong is None:
            return None
        return Failed(tuple(choices), tuple(chain.from_iterable(found.values())), wrong)

    def meets_itself(self) -> bool:
        """Whether two of its threads have touched a watched attribute, one of them to change it."""
        return self._touches.any_shared()

    def _watched_step(self, thread: Thread) -> None:
        cell, many = thread.cell, len(self.all)
        self._threads.step(thread)
        self._touches.stepped(thread, cell, self.all[many:])


def _goes_round(run: Run) -> bool:
    """Let all ready threads take turns; return whether the run comes back to an earlier state."""
    seen = set()
    cells: dict[int, Cell] = {}
    for _ in range(STEPS_MAX):
        ready = run.ready()
        if not ready:
            return False
        for thread in ready:
            if thread.cell is not None:
                cells[id(thread.cell)] = thread.cell
        state = (*map(_where, run.all), *((each, _told(cell)) for each, cell in cells.items()))
        if state in seen:
            return True
        seen.add(state)
        for thread in ready:
            if not thread.is_over and not thread.is_blocked():
                run.step(thread)
    return False


def _where(thread: Thread) -> tuple[object, ...]:
    """Return where a thread stands in its code, and the values of its variables."""
    frame: FrameType | None = thread.greenlet.gr_frame
    found = []
    while frame is not None:
        variables = {name: _known(value) for name, value in frame.f_locals.items()}
        found.append((frame.f_code, frame.f_lasti, *variables.items()))
        frame = frame.f_back
    return tuple(found)


def _told(cell: Cell) -> object:
    """Return the content of a cell; of an object with atomic steps, all of it."""
    return tuple([(name, _known(value)) for name, value in attributes(cell)])


def _known(value: object) -> object:
    return value if isinstance(value, int | str) else id(value)

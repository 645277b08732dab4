"""Every interleaving of a case, up to the order of accesses that can be exchanged.

The file owns the search. Two neighbouring accesses can be exchanged if they touch different cells
or both read. Runs that differ only by such exchanges end alike, so one of each class suffices. The
search makes a first run, looks for accesses whose order could be reversed, and goes back to try
that; a tried access sleeps until another touches its cell. No thread state is kept: each run begins
from the start and follows the choices made so far.

Source: Abdulla, Aronis, Jonsson, Sagonas, Optimal dynamic partial order reduction (POPL 2014),
algorithm 1 (source sets with sleep sets). Locks as in section 7 there: the accesses that race are
two takings of a lock, and a thread that waits for ever is treated as if it had taken the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.orders import Orders
from brokerproof.checks.threads.runs import STEPS_MAX, Failed, Run
from brokerproof.checks.threads.threads import READ, Cell, Effect, Thread


class Differs(Exception):
    """The same choices do not make the same run."""

    def __str__(self) -> str:
        return "the same steps of its threads do not make the same run"


@dataclass
class Explored:
    """What a search of the interleavings of a case has found.

    Attributes:
        runs: classes of interleavings that were run to their end.
        asleep: runs given up because the rest of them was run elsewhere.
        steps: accesses made in all, those of repeated beginnings included.
        longest: the steps of the longest run.
        failed: the runs that failed.
        complete: whether nothing is left.
        overlapping: runs in which a thread went on after another had run in between.
        contended: runs in which two threads took one lock, or a comparison was refused.
        meeting: runs in which two threads touched a watched attribute, one to change it.

    """

    runs: int = 0
    asleep: int = 0
    steps: int = 0
    longest: int = 0
    overlapping: int = 0
    contended: int = 0
    meeting: int = 0
    failed: list[Failed] = field(default_factory=list)
    complete: bool = False


class _Place:
    """A point of the run at which a thread was chosen, with the choices made and still to make.

    `sleeping` are the threads whose next access needs no trying here. `tried` are those that were
    tried, each with the effect of its access.
    """

    __slots__ = ("choice", "made", "sleeping", "to_try", "tried")

    def __init__(self, choice: int, sleeping: dict[int, Effect]) -> None:
        self.choice = choice
        self.made = READ
        self.to_try = {choice}
        self.tried: dict[int, Effect] = {}
        self.sleeping = sleeping

    def turn_to_next(self) -> bool:
        """Choose the next thread to try here; return whether there is one."""
        self.tried[self.choice] = self.made
        left = [n for n in self.to_try if n not in self.tried and n not in self.sleeping]
        if left:
            self.choice = min(left)
        return bool(left)


def explore(
    case: Case[Shared],
    *,
    runs_max: int = 1_000_000,
    failures_max: int = 1,
    wanted: Callable[[Failed], bool] = lambda _: True,
    stopped: Callable[[], object] = lambda: False,
    found: Explored | None = None,
) -> Explored:
    """Run a case under every interleaving, up to equivalence.

    Ends early after so many failures that are `wanted`, after so many runs, or when `stopped` says
    so; the result records it. The result is `found` if that is given, and is filled even if an
    exception ends the search. Raises `Differs` if the same choices do not make the same run.
    """
    found = Explored() if found is None else found
    places: list[_Place] = []
    with case.scheduled():
        while True:
            _run_once(case, places, found, wanted)
            while places and not places[-1].turn_to_next():
                places.pop()
            if not places:
                found.complete = True
                return found
            enough = found.runs + found.asleep >= runs_max or len(found.failed) >= failures_max
            if enough or stopped():
                return found


def _run_once(
    case: Case[Shared],
    places: list[_Place],
    found: Explored,
    wanted: Callable[[Failed], bool],
) -> None:
    """Make one run, note which other choices to try, and file its failure."""
    with Run(case) as run:
        search = _Search(run, places)
        is_whole = search.to_the_end()
        found.steps += len(search.orders.before)
        if not is_whole:
            found.asleep += 1
            return
        found.runs += 1
        found.longest = max(found.longest, len(places))
        choices = [place.choice for place in places]
        found.overlapping += overlap(choices)
        found.contended += search.orders.contended
        failed = run.failed(choices)
        found.meeting += bool(case.watches) and run.meets_itself()
        if failed is not None and wanted(failed):
            found.failed.append(failed)


def overlap(choices: Sequence[int]) -> bool:
    """Whether a thread goes on after another has run in between."""
    seen = set()
    last = -1
    for each in choices:
        if each != last:
            if each in seen:
                return True
            seen.add(each)
            last = each
    return False


class _Search:
    """One run: along the places so far, then on by itself to the end."""

    def __init__(self, run: Run, places: list[_Place]) -> None:
        self._run, self._places = run, places
        self.orders = Orders()

    def to_the_end(self) -> bool:
        """Run to the end; return whether it was reached, or the rest was run elsewhere."""
        places, run, orders = self._places, self._run, self.orders
        threads = run.all
        # The races before the last place were found when the run first passed there.
        new = len(places) - 1
        sleeping: dict[int, Effect] = {}
        last: Thread | None = None
        for depth in range(STEPS_MAX):
            if depth >= len(places):
                ready = run.ready()
                awake = [t for t in ready if t.number not in sleeping]
                if not awake:
                    self._try_the_waiting()
                    return not ready
                chosen = last if last is not None and last in awake else awake[0]
                places.append(_Place(chosen.number, sleeping))
            place = places[depth]
            many = len(threads)
            if place.choice >= many or threads[place.choice].is_over:
                raise Differs
            last = threads[place.choice]
            cell, effect = last.cell, last.effect
            run.step(last)
            place.made = made = last.made
            races = orders.add(last.number, cell, made)
            if made is not effect:
                orders.contended = True
            for thread in threads[many:]:
                orders.begin_after_last(thread.number)
            if depth >= new:
                for race in races:
                    self._try_other_way_round(race, last.number, depth)
            sleeping = (
                _still_sleeping(place, threads, cell) if place.sleeping or place.tried else {}
            )
        return True

    def _try_the_waiting(self) -> None:
        """Schedule a try in which a thread that waits for ever takes its lock first."""
        for thread in self._run.all:
            if not thread.is_over and thread.is_blocked():
                assert thread.cell is not None, "it waits for a lock"
                race = self.orders.waits_for(thread.number, thread.cell)
                if race is not None:
                    self._try_other_way_round(race, thread.number, len(self._places))

    def _try_other_way_round(self, race: int, thread: int, last: int) -> None:
        """Schedule a try in which a thread's access precedes the one that it races with."""
        place = self._places[race]
        first = self.orders.may_come_first(race, thread, last)
        if not any(each in place.to_try or each in place.sleeping for each in first):
            place.to_try.add(first[-1])


def _still_sleeping(place: _Place, threads: list[Thread], cell: Cell | None) -> dict[int, Effect]:
    """Return the threads that still need no trying after the access made at a place."""
    at_place = place.sleeping | place.tried
    at_place.pop(place.choice, None)
    if cell is None:
        return at_place
    reads = place.made is READ
    return {
        number: effect
        for number, effect in at_place.items()
        if threads[number].cell is not cell or (reads and effect is READ)
    }

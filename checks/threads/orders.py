"""The happens-before order of one run, and which accesses could have come the other way round.

The order covers the accesses of one thread, and those to one cell of which one writes. Sets of
accesses are whole numbers, a bit for each access in the order of the run.

Source: as `interleavings`; the paper's reversible races are the result of `Orders.add`.
"""

from __future__ import annotations

from collections.abc import Sequence

from brokerproof.checks.threads.threads import READ, TAKE, Cell, Effect


class _Touched:
    """The accesses to a cell: its last write, all reads since, the last taking if it is a lock."""

    __slots__ = ("cell", "read", "taken", "written")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.written = self.taken = -1
        self.read: list[int] = []


class Orders:
    """The accesses of one run so far: by whom each was made, and what happened before it.

    `contended` says whether two threads have taken one lock; callers may set it for similar events.
    """

    __slots__ = ("_by", "_of_cell", "_of_thread", "before", "contended")

    def __init__(self) -> None:
        self.before: list[int] = []
        self.contended = False
        self._by: list[int] = []
        self._of_thread: dict[int, int] = {}
        self._of_cell: dict[int, _Touched] = {}

    def add(self, thread: int, cell: Cell | None, made: Effect) -> Sequence[int]:
        """Add an access; return those before it that could have come after it."""
        before = self.before
        index = len(before)
        known = mask = self._of_thread.get(thread, 0)
        races: Sequence[int] = ()
        if cell is not None:
            touched = self._of_cell.get(id(cell))
            if touched is None:
                touched = self._of_cell[id(cell)] = _Touched(cell)
            written = touched.written
            if made is READ:
                if written >= 0 and not known >> written & 1:
                    races = (written,)
                    mask |= before[written]
                touched.read.append(index)
            else:
                candidates: Sequence[int] = touched.read or ((written,) if written >= 0 else ())
                for other in candidates:
                    mask |= before[other]
                if made is TAKE:
                    if touched.taken >= 0:
                        candidates = (touched.taken,)
                        self.contended = self.contended or self._by[touched.taken] != thread
                    else:
                        candidates = ()
                    touched.taken = index
                races = [
                    n for n in candidates if not known >> n & 1 and self._is_next_to(n, candidates)
                ]
                touched.written = index
                if touched.read:
                    touched.read = []
        mask |= 1 << index
        before.append(mask)
        self._by.append(thread)
        self._of_thread[thread] = mask
        return races

    def begin_after_last(self, thread: int) -> None:
        """Note that the last access has started a thread."""
        self._of_thread[thread] = self.before[-1]

    def waits_for(self, thread: int, lock: Cell) -> int | None:
        """Return the last taking of a lock, if a waiting thread's taking could have preceded it."""
        touched = self._of_cell[id(lock)]
        known = self._of_thread.get(thread, 0)
        return None if known >> touched.taken & 1 else touched.taken

    def may_come_first(self, race: int, thread: int, last: int) -> list[int]:
        """Return threads, one of which must be tried first so that a later access precedes a race.

        `race` is the earlier access. The later one is by `thread`, right after the first `last`
        accesses. Each returned thread begins a run in which every access that does not follow from
        the earlier access precedes it.
        """
        before = self.before
        mask, first = 0, []
        for index in range(race + 1, last):
            its = before[index]
            if its >> race & 1:
                continue
            if not its & mask:
                first.append(self._by[index])
            mask |= 1 << index
        if not self._of_thread.get(thread, 0) & mask:
            first.append(thread)
        return first

    def _is_next_to(self, one: int, others: Sequence[int]) -> bool:
        """Whether no other of several accesses comes between one and what follows them all."""
        return not any(other != one and self.before[other] >> one & 1 for other in others)

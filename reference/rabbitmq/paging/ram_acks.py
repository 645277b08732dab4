"""Which pending messages have their body in RAM, the latest first to be asked for.

Owns that one set and its order. Refuses to know messages. Deliveries come in rising order but for
what was requeued, so a dictionary in the order of arrival is nearly always sorted; where it is not,
it is sorted when its largest is asked for.
"""

from __future__ import annotations


class RamAcks:
    """Sequence numbers of pending messages that cost RAM."""

    __slots__ = ("_is_sorted", "_largest", "_seqs")

    def __init__(self) -> None:
        self._seqs: dict[int, None] = {}
        self._largest = -1
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._seqs)

    def __contains__(self, seq: int) -> bool:
        return seq in self._seqs

    def add(self, seq: int) -> None:
        """Note one more."""
        self._seqs[seq] = None
        if seq > self._largest:
            self._largest = seq
        else:
            self._is_sorted = False

    def discard(self, seq: int) -> None:
        """Forget one, if it is here."""
        self._seqs.pop(seq, None)

    def pop_largest(self) -> int:
        """Forget the largest, and return it."""
        if not self._is_sorted:
            self._seqs = dict.fromkeys(sorted(self._seqs))
            self._is_sorted = True
        seq, _ = self._seqs.popitem()
        return seq

    def clear(self) -> None:
        """Forget all."""
        self._seqs.clear()
        self._is_sorted = True
        self._largest = -1

    def seqs(self) -> frozenset[int]:
        """Return all of them."""
        return frozenset(self._seqs)

    def fork(self) -> RamAcks:
        """Return an independent copy."""
        copy = RamAcks()
        copy._seqs = self._seqs.copy()
        copy._largest = self._largest
        copy._is_sorted = self._is_sorted
        return copy

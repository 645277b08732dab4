"""Which messages were seen: for each producer a window of numbers, and not for all producers.

Owns the map from producers to their windows, and which producer is forgotten when there are too
many: the one asked for longest ago, with its whole window. Refuses to know what is done with a
duplicate, and whether a message is still here: a bit says that it was recorded, not where it is.

An id is a producer and a number. `is_duplicate` records as it answers; `rollback` takes that back.
Both are blind outside of the window: a rollback below it does nothing, and one far above it moves
the window there and forgets all (in all releases; a mistake that nobody has reported).

Source: ActiveMQ's message audit of 5.1.0, and of 5.2.0 and later (`bit_array` has what differs).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from brokerproof.reference.activemq.bit_array import WORD_BITS, AuditRules, BitArrayBin

DEPTH: Final = 2048
"""How many numbers of a producer are remembered at least, where nothing else is said."""

PRODUCERS: Final = 64
"""How many producers are remembered, where nothing else is said."""


def split_id(text: str) -> tuple[str, int]:
    """Return the producer and the number of an id that is a text.

    The producer is everything up to the last colon, and the colon.

    >>> split_id("ID:host-1-2:1:7")
    ('ID:host-1-2:1:', 7)
    """
    producer, colon, number = text.rpartition(":")
    if not colon or not (number.isascii() and number.isdigit()):
        raise ValueError(f"an id ends with a colon and a number: {text!r}")
    return producer + colon, int(number)


class MessageAudit:
    """Which ids were recorded, of at most `producers`, for each a window of `depth`.

    A change of `depth` affects producers that come later alone.
    """

    __slots__ = ("_bins", "_producers", "depth", "rules", "word_bits")

    def __init__(
        self,
        depth: int = DEPTH,
        producers: int = PRODUCERS,
        rules: AuditRules = "5.2",
        word_bits: int = WORD_BITS,
    ) -> None:
        self.depth = depth
        self.rules = rules
        self.word_bits = word_bits
        self._producers = 0
        # The one asked for longest ago is the first.
        self._bins: dict[str, BitArrayBin] = {}
        self.set_producers(producers)

    @property
    def producers(self) -> int:
        """How many producers are remembered at most."""
        return self._producers

    def set_producers(self, producers: int) -> None:
        """Remember so many from now on; if they are fewer, those asked for last stay.

        In 5.1.0, and in 5.2.0 as well, all stay: only from then on one is forgotten for each that
        comes.
        """
        if producers < 1:
            raise ValueError("an audit remembers at least one producer")
        self._producers = producers
        while self.rules != "5.1" and len(self._bins) > producers:
            self._forget_one()

    def known(self) -> tuple[str, ...]:
        """Return whose numbers are remembered, the next one to be forgotten first."""
        return tuple(self._bins)

    def is_duplicate(self, producer: str, index: int) -> bool:
        """Record an id, and return whether it had been recorded."""
        return self._asked_for(producer).set(index, True)

    def rollback(self, producer: str, index: int) -> None:
        """Take back that an id was recorded, if anything is remembered of its producer."""
        if producer in self._bins:
            self._asked_for(producer).set(index, False)

    def is_in_order(self, producer: str, index: int) -> bool:
        """Say whether an id follows the one of its producer that was asked for before."""
        return self._asked_for(producer).is_in_order(index)

    def probe(self, producer: str, index: int) -> bool:
        """Return what `is_duplicate` would, without any effect.

        Our own, for whoever only looks. Later releases record and roll back instead, which erases
        what was there.
        """
        known = self._bins.get(producer)
        return known is not None and known.probe(index)

    def first_of(self, producer: str) -> int | None:
        """Return the lowest number covered, or None if there is no window; without any effect."""
        known = self._bins.get(producer)
        return None if known is None else known.first

    def covered(self) -> int:
        """Return how many numbers a window covers."""
        return BitArrayBin(self.depth, self.rules, self.word_bits).size * self.word_bits

    def last_of(self, producer: str) -> int:
        """Return the highest number recorded, or -1; without any effect."""
        known = self._bins.get(producer)
        return -1 if known is None else known.last_set_index

    def _asked_for(self, producer: str) -> BitArrayBin:
        window = self._bins.pop(producer, None)
        if window is None:
            window = BitArrayBin(self.depth, self.rules, self.word_bits)
            if len(self._bins) >= self._producers:
                self._forget_one()
        self._bins[producer] = window
        return window

    def _forget_one(self) -> None:
        del self._bins[next(iter(self._bins))]

    def clear(self) -> None:
        """Forget all producers."""
        self._bins.clear()

    def fork(self) -> MessageAudit:
        """Return an independent copy."""
        copy = object.__new__(MessageAudit)
        copy.depth = self.depth
        copy.rules = self.rules
        copy.word_bits = self.word_bits
        copy._producers = self._producers
        copy._bins = {producer: window.fork() for producer, window in self._bins.items()}
        return copy

    def fingerprint(self) -> Hashable:
        """Return what is equal for audits that answer alike for ever."""
        windows = tuple([(each, window.fingerprint()) for each, window in self._bins.items()])
        return self.depth, self.rules, self.word_bits, self._producers, windows

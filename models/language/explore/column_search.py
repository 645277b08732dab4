"""The search in NumPy: levels of sorted words, and all visited words in one sorted array.

Owns the steps from one level to the next. It needs no compiler, and tests compare the search in C
with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.word_sets import (
    Recent,
    Visited,
    Words,
    distinct,
    same_rows,
)

CHUNK = 1 << 15
"""The number of words expanded at once: few enough for their columns to stay in the cache."""


class ColumnSearch:
    """The levels found so far, and the search for the next."""

    def __init__(self, reading: ColumnReading, wanted: Iterable[str]) -> None:
        self.firings = {action.name: 0 for action in reading.system.actions}
        self._reading = reading
        self._wanted = set(wanted)
        self._levels: list[Words] = []
        self._visited = Visited(reading.words)
        self._known = Recent(reading.words)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of states of each level."""
        return tuple(map(len, self._levels))

    def start(self, words: Words) -> None:
        """Begin with the words of the first level, sorted."""
        self._append(words)

    def level(self, depth: int) -> Words:
        """Return the words of a level, sorted."""
        return self._levels[depth]

    def truncate(self, count: int) -> None:
        """Keep only the smallest words of the last level; no search follows."""
        self._levels[-1] = self._levels[-1][:count]

    def advance(self, limit: int | None) -> int:
        """Find the next level and return how many states it has.

        The search may stop once more than `limit` states are found in all.
        """
        new = self._next(self._levels[-1], limit)
        if len(new):
            self._append(new)
        return len(new)

    def words_up_to(self, limit: int) -> Words:
        """Search from the initial states until `limit` is passed; return the words by levels."""
        self.start(self._reading.initial_words())
        while sum(self.levels) <= limit and self.advance(limit):
            pass
        return np.concatenate(self._levels)

    def first_broken(self) -> tuple[int, Words] | None:
        """Return the earliest invariant that fails in the last level, and its smallest word."""
        found: dict[int, Words] = {}
        for chunk in _chunks(self._levels[-1]):
            for number, holds in enumerate(self._reading.invariants(chunk)):
                if number not in found and not holds.all() and self._is_wanted(number):
                    bad = int(np.argmin(holds))
                    found[number] = chunk[bad : bad + 1]
        return min(found.items(), key=lambda pair: pair[0]) if found else None

    def stuck(self) -> Words | None:
        """Return the smallest word of the last level without a successor."""
        for chunk in _chunks(self._levels[-1]):
            possible = np.zeros(len(chunk), dtype=np.bool_)
            for mask in self._reading.guards(chunk):
                possible |= mask
            if not possible.all():
                at = int(np.argmin(possible))
                return chunk[at : at + 1]
        return None

    def origin(self, depth: int, target: Words) -> Words:
        """Return the smallest word of a level that leads to the target in one transition."""
        for chunk in _chunks(self._levels[depth]):
            sources = []
            for number, mask in enumerate(self._reading.guards(chunk)):
                enabled = chunk[mask]
                after = self._reading.form(self._reading.successors(number, enabled))
                hits = np.flatnonzero(same_rows(after, target))
                sources += [enabled[hits[:1]]] if len(hits) else []
            if sources:
                return distinct(sources)[:1]
        raise AssertionError("a word of a level has no origin in the level before")

    def stands_for(self) -> int:
        """Return the number of states that the found states represent under symmetry."""
        canonical = self._reading.canonical
        if canonical is None:
            return sum(self.levels)
        chunks = (chunk for level in self._levels for chunk in _chunks(level))
        return sum(map(canonical.stands_for, chunks))

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""

    def _is_wanted(self, number: int) -> bool:
        return self._reading.system.invariants[number].name in self._wanted

    def _append(self, level: Words) -> None:
        self._levels.append(level)
        self._visited.add(level)

    def _next(self, level: Words, limit: int | None) -> Words:
        """Return the unvisited words that are one transition away."""
        found: list[Words] = []
        count = 0
        for chunk in _chunks(level):
            seen_now = [level[:0], *map(self._known.unseen, self._expanded(chunk))]
            forms = self._reading.form(np.concatenate(seen_now))
            found.append(self._visited.without(distinct([forms])))
            count += len(found[-1])
            if limit is not None and count > 2 * limit:
                # The same word may come from several chunks; once that cannot matter, stop.
                found = [distinct(found)]
                count = len(found[0])
                if len(self._visited) + count > limit:
                    break
        return distinct(found)

    def _expanded(self, chunk: Words) -> Iterable[Words]:
        """Yield the successors of the words, instance by instance, and count them."""
        instances = self._reading.instances
        for number, mask in enumerate(self._reading.guards(chunk)):
            enabled = np.flatnonzero(mask)
            if len(enabled):
                self.firings[instances[number].action.name] += len(enabled)
                yield self._reading.successors(number, chunk[enabled])


def _chunks(words: Words) -> Iterable[Words]:
    return (words[start : start + CHUNK] for start in range(0, len(words), CHUNK))

"""Reading in batches under a small cursor: the losses of 5.1 step by step, and walks without."""

from __future__ import annotations

import random
import struct
from collections import deque
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq.disk.journaled_store import JournaledStore
from brokerproof.reference.activemq.disk.reference_store import Recovered, ReferenceStore
from brokerproof.reference.activemq.parameters import Reading
from brokerproof.reference.shared.copies import copied
from tests.reference.activemq.disk import test_reference_store
from tests.reference.activemq.disk.test_reference_store import (
    Fixed,
    body,
    go_on_behind_what_was_cached,
    store_with,
)
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

if TYPE_CHECKING:
    from collections.abc import Callable


class Audit51:
    """The audit of 5.1: below its window everything is a duplicate; a slide is one word long."""

    def __init__(self, words: int, word_bits: int) -> None:
        self.words = [set[int]() for _ in range(words)]
        self.word_bits = word_bits
        self.first = 0

    def is_duplicate(self, index: int) -> bool:
        """Say whether an id was seen, and note that it is."""
        word = int((index - self.first) / self.word_bits)
        if index < self.first:
            return True
        if word >= len(self.words):
            self.words = [*self.words[1:], set()]
            self.first += self.word_bits
            word = len(self.words) - 1
        offset = (index - self.first) % self.word_bits
        seen = offset in self.words[word]
        self.words[word].add(offset)
        return seen


class Exact:
    """An audit that forgets nothing and mistakes nothing: an id is one while it is held."""

    def __init__(self) -> None:
        self.held: set[int] = set()
        self.first = 0

    def is_duplicate(self, index: int) -> bool:
        """Say whether an id is held."""
        return index in self.held


class Pager:
    """A small cursor above a store: memory for some messages, a batch, those paged in."""

    def __init__(self, store: JournaledStore, capacity: int, audit: Audit51 | Exact) -> None:
        self.store = store
        self.capacity = capacity
        self.audit = audit
        self.batch: deque[int] = deque()
        self.paged: list[int] = []
        self.delivered: list[int] = []
        self.visited: list[str] = []

    def has_space(self) -> bool:
        """Whether there is memory for one message more."""
        return len(self.batch) + len(self.paged) < self.capacity

    def recover(self, key: str, value: bytes) -> Recovered:
        """Take a message, or say why not, and remember which it was."""
        index = int(key)
        assert value == body(index)
        if not self.has_space() and not isinstance(self.audit, Exact):
            self.visited.append(f"{key} no space")
            return Recovered.NO_ROOM
        if self.audit.is_duplicate(index):
            self.visited.append(f"{key} D")
            return Recovered.DUPLICATE
        if not self.has_space():
            self.visited.append(f"{key} no space")
            return Recovered.NO_ROOM
        self.visited.append(f"{key} ok")
        self.batch.append(index)
        if isinstance(self.audit, Exact):
            self.audit.held.add(index)
        return Recovered.TAKEN

    def page(self, most: int) -> None:
        """Page in up to so many messages, with as many batches as that takes."""
        for _ in range(most):
            if not self.batch:
                self.store.recover_next(most, self)
            if not self.batch:
                return
            self.paged.append(self.batch.popleft())
            self.delivered.append(self.paged[-1])

    def acknowledge(self, index: int) -> None:
        """Be done with a message."""
        self.paged.remove(index)
        self.store.remove(str(index))
        if isinstance(self.audit, Exact):
            self.audit.held.discard(index)

    def position(self) -> int | None:
        """Return the id of the entry on which the position stands."""
        pos = self.store.references.pos
        return None if pos is None else int(self.store.references.container.key_at(pos))


def test_the_smallest_loss_of_5_1() -> None:
    """A message without space is passed, and then behind the position and below the window."""
    pager = Pager(store_with(4, reading="advance", duplicates="counted"), 2, Audit51(1, 2))
    pager.page(2)
    assert (pager.paged, pager.position()) == ([1, 2], 2)
    pager.page(2)
    assert pager.position() == 3
    pager.acknowledge(1)
    pager.page(2)
    assert pager.delivered == [1, 2, 4]
    assert pager.audit.first == 4
    while pager.paged:
        pager.acknowledge(pager.paged[0])
        pager.page(2)
    assert pager.delivered == [1, 2, 4]
    assert pager.store.count() == 1, "3 is stored, and no consumer will ever see it"
    assert pager.store.get("3") == body(3)


def test_the_loop_that_stops_loses_nothing_there() -> None:
    pager = Pager(store_with(4), 2, Audit51(1, 2))
    pager.page(2)
    pager.page(2)
    assert pager.position() == 2
    while pager.paged:
        pager.acknowledge(pager.paged[0])
        pager.page(2)
    assert pager.delivered == [1, 2, 3, 4]
    assert pager.store.count() == 0


STEPS_5_1: tuple[tuple[tuple[int, ...], str, list[int], int | None, int], ...] = (
    ((), "1 ok, 2 ok, 3 ok, 4 no space", [1, 2, 3], 4, 0),
    ((), "5 no space", [1, 2, 3], 5, 0),
    ((), "6 no space", [1, 2, 3], 6, 0),
    ((1,), "7 ok, 8 no space", [2, 3, 7], 8, 0),
    ((2,), "9 ok, 10 no space", [3, 7, 9], 10, 4),
    ((3,), "11 ok, 12 no space", [7, 9, 11], 12, 4),
    ((7,), "13 ok, 14 no space", [9, 11, 13], 14, 8),
    ((9,), "15 ok, 16 no space", [11, 13, 15], 16, 8),
    ((11, 13), "", [15], 16, 8),
    ((15,), "4 D, 5 D, 6 D, 8 ok, 10 ok, 12 ok, 14 no space", [8, 10, 12], 14, 8),
)
"""Acknowledged before a page is read; entries visited; paged; position; audit's first."""


def visited_by(pager: Pager, most: int) -> str:
    """Page in, and return the visited entries, even if the loop itself checked for space."""
    asked: list[str] = []
    references = pager.store.references
    inner = type(references)._recover

    def noting(self: ReferenceStore, entry: int, key: str, *rest: object) -> Recovered:
        before = len(pager.visited)
        said: Recovered = inner(self, entry, key, *rest)  # type: ignore[arg-type]
        asked.extend(pager.visited[before:] or [f"{key} no space"])
        return said

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReferenceStore, "_recover", noting)
        pager.page(most)
    return ", ".join(asked)


def test_the_loss_of_5_1_step_by_step() -> None:
    pager = Pager(store_with(16, reading="advance", duplicates="counted"), 3, Audit51(2, 4))
    for acknowledged, visited, paged, position, first in STEPS_5_1:
        for index in acknowledged:
            pager.acknowledge(index)
        assert visited_by(pager, 4) == visited
        assert (pager.paged, pager.position(), pager.audit.first) == (paged, position, first)
    while pager.paged:
        pager.acknowledge(pager.paged[0])
        pager.page(4)
    assert pager.delivered == [1, 2, 3, 7, 9, 11, 13, 15, 8, 10, 12, 16, 14]
    assert pager.audit.first == 12
    assert [key for key, _ in pager.store.references.container.entries()] == ["4", "5", "6"]


@pytest.mark.parametrize("reading", ["stop", "document"])
def test_the_loop_that_stops_delivers_all_of_it_in_order(reading: Reading) -> None:
    pager = Pager(store_with(16, reading=reading), 3, Audit51(2, 4))
    assert visited_by(pager, 4) == "1 ok, 2 ok, 3 ok, 4 no space"
    assert pager.position() == 3
    for _ in range(2):
        assert visited_by(pager, 4) == "4 no space"
        assert pager.position() == 3
    for index in range(1, 14):
        pager.acknowledge(index)
        assert visited_by(pager, 4) == f"{index + 3} ok" + (
            f", {index + 4} no space" if index < 13 else ""
        )
    while pager.paged:
        pager.acknowledge(pager.paged[0])
        pager.page(4)
    assert pager.delivered == list(range(1, 17))
    assert pager.store.count() == 0


def walk(seed: int, reading: Reading) -> None:
    """Add, page and acknowledge at random: entries not held are ahead of the position (AMQ-I4)."""
    draw = random.Random(seed)  # noqa: S311
    store = store_with(0, reading=reading)
    pager = Pager(store, 3, Exact())
    stored: list[int] = []
    for number in range(1, 60):
        move = draw.random()
        if move < 0.4:
            store.add(str(number), body(number))
            stored.append(number)
        elif move < 0.7:
            pager.page(draw.randrange(1, 5))
        elif pager.paged:
            done = draw.choice(pager.paged)
            pager.acknowledge(done)
            stored.remove(done)
        else:
            store.flush()
        held = {*pager.batch, *pager.paged}
        assert sorted(held | set(ahead(store))) == stored
        assert len(held) <= pager.capacity
    assert pager.delivered == sorted(pager.delivered), "in order (AMQ-I19)"


def ahead(store: JournaledStore) -> list[int]:
    """Return the messages that a cursor with unlimited memory would still read, on a copy."""
    copy = copied(store)
    found = Fixed({})
    while copy.recover_next(99, found):
        pass
    return sorted({int(key) for key in found.seen})


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("reading", ["stop", "document"])
def test_what_is_stored_is_held_or_ahead_of_the_position(seed: int, reading: Reading) -> None:
    walk(seed, reading)


def by_walks() -> None:
    for seed in range(15):
        walk(seed, "stop")


def test_a_loop_that_passes_what_has_no_space_is_found_out() -> None:
    with pytest.raises(AssertionError):  # noqa: PT012 - one of the seeds
        for seed in range(15):
            walk(seed, "advance")


RULES = test_reference_store.test_removing_the_last_recovered_or_where_the_position_is
EMPTY = test_reference_store.test_an_empty_store_is_read_from_the_head


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        ("remove", " or self.pos == offset", "", by_walks),
        ("remove", "self.last_id == key or", "", RULES),
        ("clear", "self.reset_batching()", "pass", EMPTY),
        ("reset_batching", "self.pos = None", "pass", RULES),
        (
            "recover_next",
            "self.pos = entry",
            "self.pos = container.next(entry) or entry",
            by_walks,
        ),
        ("recover_next", "container.next(self.pos)", "self.pos", go_on_behind_what_was_cached),
    ],
)
def test_a_position_that_is_wrong_is_found_out(
    monkeypatch: pytest.MonkeyPatch, function: str, old: str, new: str, check: Callable[[], None]
) -> None:
    check()
    plant(monkeypatch, ReferenceStore, function, old, new)
    with pytest.raises((AssertionError, struct.error)):
        check()

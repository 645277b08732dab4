"""The lists of pending messages: by arrival, by priority, and with returned messages."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from brokerproof.reference.activemq import pending_lists
from brokerproof.reference.activemq.pending_lists import (
    DispatchPendingList,
    OrderedPendingList,
    PrioritizedPendingList,
    level_of,
)
from brokerproof.reference.shared.copies import copied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Letter(NamedTuple):
    """The fields of an entry that the lists read."""

    id: str
    priority: int = 4


def letters(text: str) -> list[Letter]:
    """Return entries such as ``a`` and ``b9``, of which the second has a priority."""
    return [Letter(each[0], int(each[1:] or 4)) for each in text.split()]


def ids(entries: Iterable[Letter]) -> str:
    """Return the ids of entries in order."""
    return "".join(each.id for each in entries)


def level_before_5_4(entry: Letter) -> int:
    """Throw the clamped value away, as releases before 5.4 do."""
    max(0, min(entry.priority, 9))
    return 4


def highest_first(held: PrioritizedPendingList[Letter]) -> None:
    """Demand that levels are served from the highest to the lowest, each in order of arrival."""
    held.add_all(letters("a4 b9 c0 d9 e4 f-3 g12 h"))
    assert ids(held) == "bdgaehcf"


def test_levels_are_served_from_the_highest_each_in_order() -> None:
    highest_first(PrioritizedPendingList())


def test_a_clamped_priority_thrown_away_would_be_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_lists, "level_of", level_before_5_4)
    with pytest.raises(AssertionError):
        highest_first(PrioritizedPendingList())


@pytest.mark.parametrize(
    ("priority", "level"), [(-(2**31), 0), (-1, 0), (0, 0), (4, 4), (9, 9), (10, 9), (127, 9)]
)
def test_a_priority_beyond_the_levels_counts_as_the_nearest(priority: int, level: int) -> None:
    assert level_of(Letter("a", priority)) == level


def test_what_is_put_first_is_first_within_its_level() -> None:
    held = PrioritizedPendingList(letters("a9 b"))
    held.add_first(Letter("c"))
    held.insert_at_head(letters("d e9 f"))
    assert ids(held) == "eadfcb"


class Unordered(PrioritizedPendingList[Letter]):
    """Has its values by level from the lowest, as before AMQ-6128."""

    __slots__ = ()

    def values(self) -> list[Letter]:
        """Return all, the lowest level first."""
        return [each for level in sorted(self._levels) for each in self._levels[level]]


def values_are_in_order(held: PrioritizedPendingList[Letter]) -> None:
    """Demand that values have the order in which entries are served."""
    held.add_all(letters("a4 b9 c0"))
    assert held.values() == list(held)
    assert held.first() == held.values()[0]


def test_values_are_in_the_order_in_which_they_are_served() -> None:
    values_are_in_order(PrioritizedPendingList())
    with pytest.raises(AssertionError):
        values_are_in_order(Unordered())


AnyList: TypeAlias = pending_lists.PendingList[Letter] | DispatchPendingList[Letter]
LISTS: dict[str, Callable[[], AnyList]] = {
    "ordered": OrderedPendingList[Letter],
    "prioritized": PrioritizedPendingList[Letter],
    "dispatch": DispatchPendingList[Letter],
    "dispatch by priority": lambda: DispatchPendingList[Letter](prioritized=True),
}


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_what_is_absent_is_removed_without_effect(
    make: Callable[[], AnyList],
) -> None:
    held = make()
    assert held.first() is None
    assert held.remove(Letter("a")) is None
    held.add_all(letters("a b"))
    held.add_all(None)
    held.insert_at_head(None)
    assert held.remove(None) is None
    assert held.remove(Letter("c")) is None
    assert ids(held) == "ab"
    assert held.remove(Letter("a", 9)) == Letter("a"), "an entry is known by its id"
    assert (len(held), held.get("a"), held.get("b")) == (1, None, Letter("b"))
    held.clear()
    assert not held


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_nothing_is_in_a_list_twice(make: Callable[[], AnyList]) -> None:
    held, again = make(), Letter("a", 9)
    held.add_last(Letter("a"))
    puts = [held.add_last, held.add_first]
    if isinstance(held, DispatchPendingList):
        returned = held
        puts += [
            lambda entry: returned.add_for_redelivery([entry]),
            lambda entry: returned.insert_for_redelivery([entry]),
        ]
    for put in puts:
        with pytest.raises(AssertionError, match="in a list once"):
            put(again)


def test_what_was_given_back_is_not_paged_in_besides() -> None:
    held = DispatchPendingList[Letter]()
    held.add_for_redelivery([Letter("a")])
    for put in (held.add_last, held.add_first):
        with pytest.raises(AssertionError, match="in a list once"):
            put(Letter("a"))


class ReturnedFirst(DispatchPendingList[Letter]):
    """Serves returned messages first, whatever their priority, as before AMQ-6151."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Letter]:
        yield from self.redelivered
        yield from self.paged_in


def priority_before_return(held: DispatchPendingList[Letter]) -> None:
    """Demand that a higher priority is served before returned messages (AMQ-I24)."""
    held.add_all(letters("a9 b c0"))
    held.add_for_redelivery(letters("d e9 f0"))
    assert ids(held) == "eadbfc"
    assert held.first() == Letter("e", 9)


def test_what_was_given_back_is_first_only_of_its_priority() -> None:
    priority_before_return(DispatchPendingList(prioritized=True))
    with pytest.raises(AssertionError):
        priority_before_return(ReturnedFirst(prioritized=True))


def return_before_paged_in(held: DispatchPendingList[Letter]) -> None:
    """Demand that returned messages are served first, in the order of return."""
    held.add_all(letters("a9 b"))
    held.add_for_redelivery(letters("c d9"))
    held.add_first(Letter("e"))
    held.add_for_redelivery(letters("f"))
    assert ids(held) == "cdfeab"
    held.insert_for_redelivery(letters("g h"))
    assert ids(held) == "ghcdfeab"


class Appended(DispatchPendingList[Letter]):
    """Puts returned messages behind all others, as before AMQ-2719."""

    __slots__ = ()

    def add_for_redelivery(self, entries: Iterable[Letter] | None) -> None:
        """Put entries at the end."""
        self.paged_in.add_all(entries)


def test_without_priorities_what_was_given_back_is_first() -> None:
    return_before_paged_in(DispatchPendingList())
    with pytest.raises(AssertionError):
        return_before_paged_in(Appended())


def test_entries_are_found_and_taken_from_either_list() -> None:
    held = DispatchPendingList[Letter]()
    held.add_all(letters("a b"))
    held.add_for_redelivery(letters("c d"))
    assert Letter("c") in held
    assert held.get("a") == Letter("a")
    assert [held.remove(Letter(each)) for each in "ca"] == letters("c a")
    assert ids(held.values()) == "db"
    assert len(held) == 2
    assert Letter("c") not in held


class Plain:
    """The same as a plain list of entries: `levels` of them, or one."""

    def __init__(self, *, prioritized: bool) -> None:
        self.entries: list[Letter] = []
        self.prioritized = prioritized

    def served(self) -> list[Letter]:
        """Return the entries in the order in which they are served."""
        if not self.prioritized:
            return self.entries
        return sorted(self.entries, key=lambda each: -each.priority)


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_list_is_a_plain_list(seed: int, prioritized: bool) -> None:
    draw = random.Random(seed)  # noqa: S311
    plain = Plain(prioritized=prioritized)
    held: pending_lists.PendingList[Letter] = (
        PrioritizedPendingList() if prioritized else OrderedPendingList()
    )
    for number in range(400):
        new = [Letter(str(2 * number + each), draw.randrange(10)) for each in range(2)]
        gone = draw.choice(plain.entries or new)
        match draw.choice(("last", "first", "head", "all", "remove", "remove", "fork", "clear")):
            case "last":
                held.add_last(new[0])
                plain.entries.append(new[0])
            case "first":
                held.add_first(new[0])
                plain.entries.insert(0, new[0])
            case "head":
                held.insert_at_head(new)
                plain.entries[:0] = new
            case "all":
                held.add_all(new)
                plain.entries += new
            case "remove" if gone in plain.entries:
                assert held.remove(gone) == gone
                plain.entries.remove(gone)
            case "fork":
                held, left = copied(held), held
                left.clear()
            case "clear" if draw.randrange(20) == 0:
                held.clear()
                plain.entries.clear()
        assert held.values() == list(held) == plain.served()
        assert len(held) == len(plain.entries)
        assert held.first() == next(iter(plain.served()), None)
        assert (gone in held) == (gone in plain.entries)
        assert held.get(gone.id) == (gone if gone in plain.entries else None)


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_a_copy_has_copies_of_the_entries_and_is_independent(
    make: Callable[[], AnyList],
) -> None:
    held = make()
    held.add_all(letters("a b9 c"))
    if isinstance(held, DispatchPendingList):
        held.add_for_redelivery(letters("d e9"))
    before, name = held.values(), held.fingerprint()
    copy = copied(held)
    assert copy.fingerprint() == name
    assert copy.values() == before
    copy.remove(Letter("b"))
    copy.add_first(Letter("f"))
    assert (held.values(), held.fingerprint()) == (before, name)
    assert copy.fingerprint() != name


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_a_list_that_was_emptied_is_as_a_new_one(make: Callable[[], AnyList]) -> None:
    held = make()
    held.add_all(letters("a b9"))
    for entry in held.values():
        held.remove(entry)
    assert held.fingerprint() == make().fingerprint()


def test_whether_it_looks_at_priorities_is_in_a_dispatch_list_s_fingerprint() -> None:
    names = {DispatchPendingList(prioritized=each).fingerprint() for each in (False, True)}
    assert len(names) == 2


def test_the_order_and_the_level_of_entries_are_in_the_fingerprint() -> None:
    assert OrderedPendingList(letters("a b")).fingerprint() != (
        OrderedPendingList(letters("b a")).fingerprint()
    )
    assert PrioritizedPendingList(letters("a5 b")).fingerprint() != (
        PrioritizedPendingList(letters("a b")).fingerprint()
    )
    assert PrioritizedPendingList(letters("a9 b")).fingerprint() == (
        PrioritizedPendingList(letters("b a12")).fingerprint()
    )

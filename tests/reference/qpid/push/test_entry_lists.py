"""The lists of entries and subscriptions, held against plain Python lists."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerproof.reference.front.consumers import ACKNOWLEDGE, Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.qpid.push.entries import (
    ACQUIRED_BY_QUEUE,
    AVAILABLE,
    LEGAL_MOVES,
    Phase,
    QueueEntry,
)
from brokerproof.reference.qpid.push.entry_list import QueueEntryList, StandardEntryList
from brokerproof.reference.qpid.push.pointers import ReleasedPointer
from brokerproof.reference.qpid.push.priority_list import PriorityEntryList
from brokerproof.reference.qpid.push.subscription_list import SubscriptionList
from brokerproof.reference.qpid.push.subscriptions import Subscription
from brokerproof.spec.messages import PRIORITIES, Fifo, Message, Order, Priority, level_of

if TYPE_CHECKING:
    from collections.abc import Callable

# A number below 10 adds a message of that priority; a larger one deletes the live entry that it
# picks.
HISTORIES = st.lists(st.integers(0, 30), max_size=60)
ORDERS = st.one_of(st.just(Fifo()), st.builds(Priority, st.integers(1, 10)))


def entry_list(order: Order, threshold: int) -> QueueEntryList:
    if isinstance(order, Priority):
        return PriorityEntryList(order, threshold)
    return StandardEntryList(0, threshold)


def delete(entry: QueueEntry) -> None:
    assert entry.acquire(ACQUIRED_BY_QUEUE)
    assert entry.delete(ACQUIRED_BY_QUEUE)


def place(entry: QueueEntry) -> tuple[int, int]:
    return -entry.sub_list.level, entry.id


@given(history=HISTORIES, order=ORDERS, threshold=st.integers(0, 4))
def test_a_list_is_the_sorted_list_of_what_was_added_and_not_deleted(
    history: list[int], order: Order, threshold: int
) -> None:
    entries = entry_list(order, threshold)
    arrived: list[QueueEntry] = []
    live: list[QueueEntry] = []
    for number in history:
        if number < 10:
            entry = entries.add(Message(id=f"m{len(arrived)}", priority=number))
            arrived.append(entry)
            live.append(entry)
            # Sorting is stable, so entries of one level stay in the order of their arrival.
            live.sort(key=lambda one: -level_of(one.message.priority, order))  # type: ignore[union-attr]
        elif live:
            delete(live.pop(number % len(live)))
        assert list(entries.iterator()) == live
        assert entries.next(entries.get_head()) is (live[0] if live else None)
    assert live == sorted(live, key=place)
    # From every entry that ever was, unlinked or not, the search reaches the first live one behind
    # it.
    for entry in arrived:
        behind = [other for other in live if place(other) > place(entry)]
        assert entries.next(entry) is (behind[0] if behind else None)
        for other in arrived:
            sign = entry.compare_to(other)
            assert (sign < 0, sign == 0) == (place(entry) < place(other), entry is other)


@given(history=HISTORIES, threshold=st.integers(0, 4))
def test_deleted_entries_stay_linked_in_bounded_number(history: list[int], threshold: int) -> None:
    entries = StandardEntryList(0, threshold)
    keeper = entries.add(Message(id="the one that stays in front"))
    live: list[QueueEntry] = []
    for number in history:
        if number < 10:
            live.append(entries.add(Message(id="m")))
        elif live:
            delete(live.pop(number % len(live)))
            assert linked_and_dispensed(keeper) <= threshold + 1


def linked_and_dispensed(entry: QueueEntry) -> int:
    count = 0
    following = entry.next.get()
    while following is not None:
        count += following.is_dispensed()
        following = following.next.get()
    return count


def test_the_last_entry_is_never_unlinked() -> None:
    entries = StandardEntryList()
    first = entries.add(Message(id="a"))
    delete(first)
    assert list(entries.iterator()) == []
    assert entries.head.next.get() is first
    second = entries.add(Message(id="b"))
    assert list(entries.iterator()) == [second]


def test_an_arrival_helps_a_tail_that_stayed_behind() -> None:
    entries = StandardEntryList()
    first = entries.add(Message(id="a"))
    entries.tail.set(entries.head)
    second = entries.add(Message(id="b"))
    assert list(entries.iterator()) == [first, second]
    assert entries.tail.get() is second


@pytest.mark.parametrize("levels", range(1, 11))
def test_the_order_of_levels_is_the_order_of_priorities(levels: int) -> None:
    entries = PriorityEntryList(Priority(levels))
    added = [entries.add(Message(id=f"m{priority}", priority=priority)) for priority in PRIORITIES]
    for lower, higher in itertools.pairwise(added):
        same_level = lower.sub_list is higher.sub_list
        assert (lower.compare_to(higher) < 0) == same_level


def test_an_entry_moves_only_as_the_table_says() -> None:
    entry = StandardEntryList().add(Message(id="a"))
    moves = []
    changes: list[Callable[[], bool]] = [
        lambda: entry.release(ACQUIRED_BY_QUEUE),
        lambda: entry.delete(ACQUIRED_BY_QUEUE),
        lambda: entry.acquire(ACQUIRED_BY_QUEUE),
        lambda: entry.acquire(ACQUIRED_BY_QUEUE),
        lambda: entry.release(ACQUIRED_BY_QUEUE),
        lambda: entry.acquire(ACQUIRED_BY_QUEUE),
        lambda: entry.delete(ACQUIRED_BY_QUEUE),
        lambda: entry.delete(ACQUIRED_BY_QUEUE),
        lambda: entry.release(ACQUIRED_BY_QUEUE),
        lambda: entry.acquire(ACQUIRED_BY_QUEUE),
    ]
    for change in changes:
        before = entry.state.get().phase
        succeeded = change()
        after = entry.state.get().phase
        assert succeeded == (before is not after)
        if succeeded:
            moves.append((before, after))
    taken, gone = (Phase.AVAILABLE, Phase.ACQUIRED), (Phase.ACQUIRED, Phase.DELETED)
    assert moves == [taken, (Phase.ACQUIRED, Phase.AVAILABLE), taken, gone]
    assert set(moves) - {gone} <= LEGAL_MOVES
    assert {(Phase.ACQUIRED, Phase.DEQUEUED), (Phase.DEQUEUED, Phase.DELETED)} <= LEGAL_MOVES


def test_only_the_owner_releases_or_deletes_an_acquired_entry() -> None:
    entries = StandardEntryList()
    entry = entries.add(Message(id="a"))
    owner, other = subscription("c0"), subscription("c1")
    assert entry.acquire(owner.owning_state)
    assert not entry.acquire(other.owning_state)
    assert not entry.release(other.owning_state)
    assert not entry.delete(other.owning_state)
    assert entry.release(owner.owning_state)
    assert entry.state.get() is AVAILABLE


def subscription(name: str) -> Subscription:
    terms = Terms("ch0", ACKNOWLEDGE, Window(None), name)
    return Subscription("q", terms, ReleasedPointer(StandardEntryList().get_head()))


@settings(max_examples=200)
@given(history=st.lists(st.integers(0, 9), max_size=40))
def test_the_round_of_subscriptions_is_that_of_a_plain_list(history: list[int]) -> None:
    subscriptions = SubscriptionList()
    plain: list[Subscription] = []
    behind = 0  # how many of the plain list have had their turn in this round
    for number in history:
        if number < 4:
            one = subscription(f"c{number}")
            subscriptions.add(one)
            plain.append(one)
        elif number < 7 and plain:
            index = number % len(plain)
            assert subscriptions.remove(plain[index])
            assert not subscriptions.remove(plain[index])
            del plain[index]
            behind -= index < behind
        else:
            node = subscriptions.advance_marker()
            assert (node is None) == (not plain)
            if node is not None:
                behind = 0 if behind == len(plain) else behind
                assert node.subscription is plain[behind]
                behind += 1
        assert list(subscriptions.iterator()) == plain
        assert subscriptions.size.get() == len(plain)

"""The lists of consumers and the one that they are made of: moves, marks, tails, priorities."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.reference.front.consumers import ACKNOWLEDGE, BROWSE, Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.front.outbox import Executor, Outbox
from brokerproof.reference.qpid.pull import node_list
from brokerproof.reference.qpid.pull.consumer_lists import (
    INTERESTED,
    LEAVES,
    LOWEST,
    NON_ACQUIRING,
    NOT_INTERESTED,
    NOTIFIED,
    REMOVED,
    ConsumerLists,
    ConsumerNode,
    NodeState,
)
from brokerproof.reference.qpid.pull.consumers import QueueConsumer
from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList, ConsumerNodeListEntry
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.pull.sessions import Clients
from brokerproof.reference.qpid.push.pointers import ReleasedPointer
from brokerproof.reference.shared.atomics import AtomicReference
from brokerproof.spec.messages import Fifo

NUMBERS = itertools.count()


def consumer(priority: int = 0, *, browses: bool = False) -> QueueConsumer:
    executor = Executor()
    queue = PullQueue(
        "q", Fifo(), ReleasedPointer, Outbox(lambda _: True), executor, Clients("channel", executor)
    )
    name = f"c{next(NUMBERS)}"
    mode = BROWSE if browses else ACKNOWLEDGE
    return queue.new_subscription(Terms(name, mode, Window(None), name, priority=priority))


def state_of(one: QueueConsumer) -> NodeState:
    node = one.node.get()
    return REMOVED if node is None else node.state


# The table: the next state for each call and state; in other states the call is refused.
CALLS = {
    "wants": (
        {NOT_INTERESTED: INTERESTED},
        {NOT_INTERESTED: NON_ACQUIRING},
    ),
    "wants no more": (
        {INTERESTED: NOT_INTERESTED, NOTIFIED: NOT_INTERESTED},
        {NON_ACQUIRING: NOT_INTERESTED},
    ),
    "is told": ({INTERESTED: NOTIFIED}, {}),
    "has looked": ({NOTIFIED: INTERESTED}, {}),
}
REACHED: dict[NodeState, tuple[str, ...]] = {
    NOT_INTERESTED: (),
    INTERESTED: ("wants",),
    NOTIFIED: ("wants", "is told"),
    NON_ACQUIRING: ("wants",),
}


def call(lists: ConsumerLists, what: str, one: QueueConsumer) -> bool:
    if what in {"wants", "wants no more"}:
        return lists.set_interest(one, what == "wants")
    return lists.set_notified(one, what == "is told")


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize(
    ("state", "browses"),
    [
        (NOT_INTERESTED, False),
        (INTERESTED, False),
        (NOTIFIED, False),
        (NOT_INTERESTED, True),
        (NON_ACQUIRING, True),
    ],
)
def test_every_call_moves_as_the_table_says(what: str, state: NodeState, browses: bool) -> None:
    lists, one = ConsumerLists(), consumer(browses=browses)
    lists.add(one)
    for each in REACHED[state]:
        assert call(lists, each, one)
    assert state_of(one) is state
    moves = CALLS[what][browses]
    # A browser may always be notified, and does not move.
    always = browses and what in {"is told", "has looked"}
    assert call(lists, what, one) == (always or state in moves)
    assert state_of(one) is moves.get(state, state)
    assert [*lists.iterator()] == [one]


@pytest.mark.parametrize("browses", [False, True])
def test_a_consumer_that_leaves_is_in_no_list_and_leaves_once(browses: bool) -> None:
    lists, one = ConsumerLists(), consumer(3, browses=browses)
    lists.add(one)
    lists.set_interest(one, True)
    assert lists.remove(one)
    assert state_of(one) is REMOVED
    assert not lists.remove(one)
    assert [*lists.iterator(), *lists.interested_iterator(), *lists.non_acquiring_iterator()] == []
    assert (lists.all.get(), lists.interested.get(), lists.notified.get()) == ((), (), ())
    assert lists.size.get() == 0
    for what in CALLS:
        assert call(lists, what, one) == (browses and what in {"is told", "has looked"})


def test_the_highest_priority_comes_first_and_the_longest_waiting_of_it() -> None:
    lists = ConsumerLists()
    low, first, second, high = consumer(0), consumer(1), consumer(1), consumer(2)
    for one in (first, low, high, second):
        lists.add(one)
        assert lists.set_interest(one, True)
    assert [*lists.iterator()] == [high, first, second, low]
    assert lists.highest_notified_priority() == LOWEST
    assert lists.set_notified(first, True)
    assert lists.highest_notified_priority() == 1
    assert [*lists.interested_iterator()] == [high, second, low]
    assert lists.set_notified(first, False)
    assert [*lists.interested_iterator()] == [high, second, first, low]


def test_leaving_is_the_only_way_out_of_every_state() -> None:
    assert set(LEAVES) == {*NodeState} - {REMOVED}
    assert set(LEAVES.values()) == {REMOVED}


# The list.


def node() -> ConsumerNode:
    return ConsumerNode(ConsumerLists(), consumer())


@given(st.lists(st.integers(0, 5), max_size=25))
def test_a_list_holds_what_was_added_and_not_removed_in_order(choices: list[int]) -> None:
    """A choice of 0 or 1 adds, any other removes that one of those that were added, gone or not."""
    listed, expected = ConsumerNodeList(), []
    added: list[tuple[ConsumerNode, ConsumerNodeListEntry]] = []
    for choice in choices:
        if choice < 2 or not added:
            each = node()
            added.append((each, listed.add(each)))
            expected.append(each)
        else:
            each, entry = added[choice % len(added)]
            assert entry.remove() == (each in expected)
            expected = [other for other in expected if other is not each]
        assert [*listed.iterator()] == expected
        assert listed.size.get() == len(expected)
        assert listed.is_empty() == (not expected)


def test_what_follows_a_removed_tail_is_found() -> None:
    listed = ConsumerNodeList()
    entry = listed.add(node())
    assert entry.remove()
    # The tail stays linked, so that there is something to append to, and holds nothing.
    assert listed.head.next.get() is entry
    assert entry.node.get() is None
    assert [*listed.iterator()] == []
    second = node()
    listed.add(second)
    assert [*listed.iterator()] == [second]
    assert listed.head.next.get() is not entry


def test_an_iterator_goes_on_from_an_entry_that_was_removed_under_it() -> None:
    listed = ConsumerNodeList()
    nodes = [node() for _ in range(3)]
    entries = [listed.add(each) for each in nodes]
    walk = listed.iterator()
    assert next(walk) is nodes[0]
    entries[0].remove()
    entries[1].remove()
    appended = node()
    listed.add(appended)
    assert [*walk] == [nodes[2], appended]


def test_many_removals_in_the_middle_are_unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_list, "SCAVENGE_THRESHOLD", 3)
    listed = ConsumerNodeList()
    kept = listed.add(node())
    entries = [listed.add(node()) for _ in range(5)]
    for entry in entries[:3]:
        entry.remove()
    assert kept.next.get() is entries[0]
    entries[3].remove()
    assert kept.next.get() is entries[4]
    assert isinstance(entries[4].node, AtomicReference)

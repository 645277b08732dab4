"""Historic faults of ActiveMQ's queues that no operation of the gate's clients shows.

They cost memory, are about groups or rotation, which no requirement covers, or need numbers beyond
31 bits. Each is planted, and an existing test must find it; if there was none, the test is here.
`tests/faults/historic/activemq.toml` has their ids.
"""

from __future__ import annotations

import pytest

from brokerproof.reference.activemq import pending_lists
from brokerproof.reference.activemq.audit import MessageAudit
from brokerproof.reference.activemq.bit_array import AuditRules, BitArrayBin
from brokerproof.reference.activemq.cursors.store_cursor import PRODUCER, StoreCursor
from brokerproof.reference.activemq.groups import CachedGroupMap, GroupRule, Membership, Taking
from brokerproof.reference.activemq.memory.references import Reference, Stored
from brokerproof.reference.activemq.memory.usage import Charged, MemoryUsage
from brokerproof.reference.activemq.pending_lists import PrioritizedPendingList
from brokerproof.reference.activemq.subscribers import Subscribers
from brokerproof.spec.messages import Message, Priority
from brokerproof.spec.protocol.operations import Cancel
from tests.reference.activemq import test_cursor_queue
from tests.reference.activemq.cursor_scenes import ONE_MESSAGE, Scene

# The audit.


def let_go_of_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    """Take from two levels that have room for one message; return how often ids are rolled back.

    None of them may be above the audit's last recorded id: that moves the window, and all ids are
    forgotten.
    """
    rolled_back: list[int] = []
    rollback = MessageAudit.rollback

    def checked(audit: MessageAudit, producer: str, index: int) -> None:
        assert index <= audit.last_of(producer), "what was never recorded is not taken back"
        rolled_back.append(index)
        rollback(audit, producer, index)

    monkeypatch.setattr(MessageAudit, "rollback", checked)
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}&depth=1&word=2", Priority(10))
    scene.publish("low", "lower", priority=1)
    scene.publish("high", "higher", priority=9)
    assert scene.consume("c") == ["c:high", "c:higher", "c:low", "c:lower"]
    scene.publish("last")
    scene.do(Cancel(consumer="c"))
    return len(rolled_back)


def test_no_number_is_rolled_back_that_was_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert let_go_of_batches(monkeypatch) > 0


def test_a_rollback_far_ahead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clear = StoreCursor.clear

    def far_ahead(cursor: StoreCursor) -> None:
        for cached in cursor.batch.values():
            cursor.queue.audit.rollback(PRODUCER, cached.stored.arrival + 1000)
        clear(cursor)

    monkeypatch.setattr(StoreCursor, "clear", far_ahead)
    with pytest.raises(AssertionError, match="what was never recorded"):
        let_go_of_batches(monkeypatch)


def remembers_beyond_31_bits(rules: AuditRules) -> None:
    """Record numbers around 2 to the power of 32, and ask for them again."""
    window = BitArrayBin(2048, rules)
    numbers = range(2**32 - 100, 2**32 + 100)
    assert not any(window.set(each, True) for each in numbers)
    assert all(window.set(each, True) for each in numbers)


def test_numbers_beyond_31_bits_are_remembered() -> None:
    remembers_beyond_31_bits("5.2")


def test_a_first_number_of_32_bits_is_found() -> None:
    with pytest.raises(AssertionError):
        remembers_beyond_31_bits("5.1")


# The cache.


def serve_from_memory_again() -> None:
    """Fill the memory, so that the cache goes off; empty the queue, and send one more."""
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}")
    scene.publish("a", "b")
    cursor = scene.queue.cursor.levels[0].persistent
    assert cursor is not None
    assert not cursor.cache_enabled
    for name in "ab":
        assert scene.get() == [f"get:{name}"]
        scene.acknowledge(name)
    scene.publish("c")
    assert cursor.cache_enabled
    assert list(cursor.batch) == ["c"], "it need not be read from the store"


def test_the_cache_is_on_again_when_the_queue_was_empty() -> None:
    serve_from_memory_again()


def test_a_cache_that_stays_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreCursor, "_cache_goes_on", lambda _: None)
    with pytest.raises(AssertionError):
        serve_from_memory_again()


# Memory.


def room_up_to_one_too_many(usage: MemoryUsage, size: int) -> bool:
    """Ask whether there is room before a message is there, and not whether it fits."""
    del size
    return usage.limit == 0 or usage.used <= usage.limit


def test_room_that_is_asked_for_one_too_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryUsage, "room_for", room_up_to_one_too_many)
    with pytest.raises(AssertionError):
        test_cursor_queue.test_all_is_given_in_order_whatever_is_in_memory(1500, 2)


def test_memory_that_is_not_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Charged, "release", lambda _: None)
    with pytest.raises(AssertionError):
        test_cursor_queue.test_all_is_given_in_order_whatever_is_in_memory(0, 2)


# Groups, rotation and levels.


def count_groups_that_are_forgotten() -> None:
    """Give two groups to one consumer where two are remembered, and a third to another."""
    rule = GroupRule(CachedGroupMap(2))
    for group, consumer in (("g1", "c1"), ("g2", "c1"), ("g3", "c2")):
        assert rule.take(consumer, Membership(group)) is Taking.TAKEN_FIRST
    assert (rule.count("c1"), rule.count("c2")) == (1, 1)


def test_a_group_that_is_forgotten_is_counted_down() -> None:
    count_groups_that_are_forgotten()


def test_a_forgotten_group_that_still_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    put = CachedGroupMap.put

    def says_nothing(groups: CachedGroupMap, group: str, owner: str) -> None:
        put(groups, group, owner)

    monkeypatch.setattr(CachedGroupMap, "put", says_nothing)
    with pytest.raises(AssertionError):
        count_groups_that_are_forgotten()


def test_groups_that_a_consumer_keeps_after_it_left_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CachedGroupMap, "remove_consumer", lambda *_: None)
    with pytest.raises(AssertionError):
        test_cursor_queue.test_a_group_goes_to_one_consumer_until_that_leaves()


def test_a_line_that_does_not_turn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriber_of = Subscribers.subscriber_of

    def stays(subscribers: Subscribers, message: Message) -> object:
        line = subscribers.line.copy()
        subscriber = subscriber_of(subscribers, message)
        subscribers.line = line
        return subscriber

    monkeypatch.setattr(Subscribers, "subscriber_of", stays)
    with pytest.raises(AssertionError):
        test_cursor_queue.test_equal_consumers_are_served_in_turn()


def serve_by_level() -> None:
    """Put in messages of several levels, also beyond the highest."""
    levels = {"a": 1, "b": 4, "c": 12, "d": 9}
    entries = [
        Reference(Stored(number, Message(id=name)), level, Charged(1), kept=False)
        for number, (name, level) in enumerate(levels.items())
    ]
    assert [each.id for each in PrioritizedPendingList(entries)] == ["c", "d", "b", "a"]


def test_levels_are_served_from_the_highest() -> None:
    serve_by_level()


def test_a_clamped_level_that_is_thrown_away_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_lists, "level_of", lambda _: 4)
    with pytest.raises(AssertionError):
        serve_by_level()

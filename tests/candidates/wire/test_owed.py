"""What a broker owes: exactly what some consumer with room must still be given."""

from __future__ import annotations

from brokerproof.candidates.wire.owed import Owed
from brokerproof.spec.messages import Credit, Message
from brokerproof.spec.protocol.operations import Consume, ConsumeMode, Get, Selector


def consumer(
    name: str,
    window: int | None = None,
    mode: ConsumeMode = "acknowledge",
    selector: Selector | None = None,
    queues: tuple[str, ...] = (),
) -> Consume:
    """Return a consumer of the queue q."""
    return Consume(
        channel="ch",
        queue="q",
        consumer=name,
        mode=mode,
        credit=Credit(window),
        selector=selector,
        queues=queues,
    )


def owing(*messages: Message) -> Owed:
    """Return the state of a broker with these messages in the queue q."""
    owed = Owed()
    for message in messages:
        owed.note_published("q", message)
    return owed


def test_a_message_is_owed_to_a_consumer_with_room_and_to_no_other() -> None:
    owed = owing(Message(id="a"), Message(id="b"), Message(id="c"))
    assert owed.consumers() == frozenset()
    first = consumer("c0", window=1)
    owed.note_consumer(first)
    assert owed.consumers() == {"c0"}
    owed.note_delivered(first, "d0", "q", "a")
    assert owed.consumers() == frozenset()
    owed.note_settled("d0", returned=False)
    assert owed.consumers() == {"c0"}
    assert owed.left_in("q") == {"b", "c"}


def test_what_another_consumer_holds_is_not_owed_until_it_returns() -> None:
    owed = owing(Message(id="a"))
    first, second = consumer("c0"), consumer("c1")
    owed.note_consumer(first)
    owed.note_delivered(first, "d0", "q", "a")
    owed.note_consumer(second)
    assert owed.consumers() == frozenset()
    owed.note_settled("d0", returned=True)
    assert owed.consumers() == {"c0", "c1"}
    owed.note_delivered(second, "d1", "q", "a")
    owed.note_left("c1")
    assert owed.consumers() == frozenset()
    owed.note_settled("d1", returned=True)
    assert owed.consumers() == {"c0"}


def test_a_window_that_changes_is_what_is_owed_from_then_on() -> None:
    owed = owing(Message(id="a"), Message(id="b"), Message(id="c"))
    first = consumer("c0", window=1)
    owed.note_consumer(first)
    owed.note_delivered(first, "d0", "q", "a")
    assert (owed.consumers(), owed.held_by("c0")) == (frozenset(), 1)
    assert owed.note_window("c0", 2) == consumer("c0", window=2)
    assert owed.consumers() == {"c0"}
    owed.note_window("c0", 0)
    assert owed.consumers() == frozenset()
    assert owed.consume_of("c0") == consumer("c0", window=0)
    owed.note_left("c0")
    assert owed.consume_of("c0") is None


def test_what_a_get_holds_is_not_owed() -> None:
    owed = owing(Message(id="a"))
    owed.note_consumer(consumer("c0"))
    owed.note_delivered(Get(channel="ch", queue="q"), "d0", "q", "a")
    assert owed.consumers() == frozenset()


def test_a_refused_message_is_not_owed() -> None:
    owed = owing(Message(id="a"))
    owed.note_consumer(consumer("c0"))
    owed.note_gone("q", "a")
    assert owed.consumers() == frozenset()


def test_an_automatic_consumer_takes_away_and_never_fills_its_window() -> None:
    owed = owing(Message(id="a"), Message(id="b"))
    taker = consumer("c1", window=1, mode="automatic")
    owed.note_consumer(taker)
    owed.note_delivered(taker, "d1", "q", "a")
    assert owed.consumers() == {"c1"}
    assert owed.left_in("q") == {"b"}


def test_a_browser_is_owed_what_was_available_when_it_came() -> None:
    owed = owing(Message(id="a"), Message(id="b"))
    owed.note_delivered(Get(channel="ch", queue="q"), "d0", "q", "b")
    browser = consumer("c0", mode="browse")
    assert not owed.has_browsers()
    owed.note_consumer(browser)
    assert owed.has_browsers()
    assert owed.consumers() == {"c0"}
    owed.note_published("q", Message(id="c"))
    owed.note_delivered(browser, "d1", "q", "a")
    assert owed.consumers() == frozenset()
    assert owed.left_in("q") == {"a", "b", "c"}
    owed.note_left("c0")
    assert not owed.has_browsers()


def test_a_consumer_of_several_queues_is_owed_the_messages_of_each() -> None:
    owed = Owed()
    owed.note_published("p", Message(id="a"))
    both = consumer("c0", queues=("q", "p"))
    owed.note_consumer(both)
    assert owed.consumers() == {"c0"}
    owed.note_delivered(both, "d0", "p", "a")
    assert owed.consumers() == frozenset()


def test_a_purge_leaves_what_is_held_and_a_deletion_nothing() -> None:
    owed = owing(Message(id="a"), Message(id="b"))
    first = consumer("c0", window=1)
    owed.note_consumer(first)
    owed.note_delivered(first, "d0", "q", "a")
    owed.note_purged("q")
    assert owed.left_in("q") == {"a"}
    owed.note_settled("d0", returned=True)
    assert owed.consumers() == {"c0"}
    owed.note_deleted("q")
    assert owed.consumers() == frozenset()
    owed.note_published("q", Message(id="c"))
    assert owed.consumers() == {"c0"}


def test_a_selector_decides_what_is_owed() -> None:
    owed = owing(Message(id="a", properties={"n": 1, "colour": "red"}))
    selectors: tuple[Selector, ...] = ({"n": True}, {"n": 1.0, "colour": "red"}, {})
    for number, selector in enumerate(selectors):
        owed.note_consumer(consumer(f"c{number}", selector=selector))
    assert owed.consumers() == {"c1", "c2"}


def test_a_crash_leaves_the_persistent_messages_of_durable_queues() -> None:
    owed = owing(Message(id="a", persistent=True), Message(id="b"))
    owed.note_published("other", Message(id="c", persistent=True))
    taker = consumer("c0")
    owed.note_consumer(taker)
    owed.note_delivered(taker, "d0", "q", "a")
    owed.note_crash(frozenset(["q"]))
    assert owed.consumers() == frozenset()
    assert owed.left_in("q") == {"a"}
    assert owed.left_in("other") == frozenset()
    owed.note_consumer(taker)
    assert owed.consumers() == {"c0"}


def test_a_message_that_was_never_published_changes_nothing() -> None:
    owed = owing(Message(id="a"))
    taker = consumer("c0")
    owed.note_consumer(taker)
    owed.note_delivered(taker, "d0", "q", "stranger")
    owed.note_settled("d0", returned=False)
    assert owed.consumers() == {"c0"}

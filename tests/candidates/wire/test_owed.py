"""What a broker owes: exactly what some consumer with room must still be given."""

from __future__ import annotations

from brokerproof.candidates.wire.owed import Owed
from brokerproof.spec.messages import Credit, Message
from brokerproof.spec.protocol.operations import Consume, ConsumeMode, Selector


def consumer(
    name: str,
    window: int | None = None,
    mode: ConsumeMode = "acknowledge",
    selector: Selector | None = None,
) -> Consume:
    """Return a consumer of the queue q."""
    return Consume(
        channel="ch",
        queue="q",
        consumer=name,
        mode=mode,
        credit=Credit(window),
        selector=selector,
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
    owed.note_delivered(first, "a")
    assert owed.consumers() == frozenset()
    owed.note_settled("c0", "a", returned=False)
    assert owed.consumers() == {"c0"}
    assert owed.left_in("q") == {"b", "c"}


def test_what_another_consumer_holds_is_not_owed_until_it_returns() -> None:
    owed = owing(Message(id="a"))
    first, second = consumer("c0"), consumer("c1")
    owed.note_consumer(first)
    owed.note_delivered(first, "a")
    owed.note_consumer(second)
    assert owed.consumers() == frozenset()
    owed.note_settled("c0", "a", returned=True)
    assert owed.consumers() == {"c0", "c1"}
    owed.note_delivered(second, "a")
    owed.note_left("c1")
    assert owed.consumers() == {"c0"}


def test_an_automatic_consumer_takes_away_and_a_browser_takes_nothing() -> None:
    owed = owing(Message(id="a"), Message(id="b"))
    browser, taker = consumer("c0", mode="browse"), consumer("c1", window=1, mode="automatic")
    owed.note_consumer(browser)
    owed.note_delivered(browser, "a")
    assert owed.consumers() == frozenset()
    owed.note_consumer(taker)
    owed.note_delivered(taker, "a")
    assert owed.consumers() == {"c1"}
    assert owed.left_in("q") == {"b"}


def test_a_selector_asks_for_equal_values_of_one_type() -> None:
    owed = owing(Message(id="a", properties={"n": 1, "colour": "red"}))
    selectors: tuple[Selector, ...] = (
        {"n": 2},
        {"n": True},
        {"n": "1"},
        {"n": 1, "other": 1},
        {"n": 1.0, "colour": "red"},
        {},
    )
    for number, selector in enumerate(selectors):
        owed.note_consumer(consumer(f"c{number}", selector=selector))
    assert owed.consumers() == {"c4", "c5"}


def test_a_crash_leaves_the_persistent_messages_of_durable_queues() -> None:
    owed = owing(Message(id="a", persistent=True), Message(id="b"))
    owed.note_published("other", Message(id="c", persistent=True))
    taker = consumer("c0")
    owed.note_consumer(taker)
    owed.note_delivered(taker, "a")
    owed.note_crash(frozenset(["q"]))
    assert owed.consumers() == frozenset()
    assert owed.left_in("q") == {"a"}
    assert owed.left_in("other") == frozenset()


def test_a_message_that_was_never_published_changes_nothing() -> None:
    owed = owing(Message(id="a"))
    taker = consumer("c0")
    owed.note_consumer(taker)
    owed.note_delivered(taker, "stranger")
    owed.note_settled("c0", "stranger", returned=False)
    assert owed.consumers() == {"c0"}

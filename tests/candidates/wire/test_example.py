"""The state of an example: which deliveries a broker still owes."""

from __future__ import annotations

from brokerproof.candidates.wire.example import Example, Queue
from brokerproof.spec.messages import Credit, Fifo
from brokerproof.spec.protocol.operations import Consume, ConsumeMode, Declare


def example(mode: ConsumeMode = "acknowledge", window: int | None = 1) -> Example[None, None]:
    """Return an example with two messages and one consumer."""
    now: Example[None, None] = Example()
    now.note_declared("q", Queue("x", Declare(queue="q", order=Fifo(), durable=True)))
    for message in ("m0", "m1"):
        now.note_available("q", message)
    now.note_consumer(consume(mode, window), None)
    return now


def consume(mode: ConsumeMode = "acknowledge", window: int | None = 1) -> Consume:
    return Consume(channel="ch", queue="q", consumer="c", mode=mode, credit=Credit(window))


def test_a_consumer_with_room_is_owed_what_is_available() -> None:
    now = example()
    assert now.owes()
    now.note_delivered(consume(), "m0", redelivered=False, handle=None)
    assert not now.owes()
    now.note_over("d1", returned=False)
    assert now.owes()
    now.note_delivered(consume(), "m1", redelivered=False, handle=None)
    now.note_over("d2", returned=False)
    assert not now.owes()


def test_what_returns_is_owed_again() -> None:
    now = example(window=None)
    for message in ("m0", "m1"):
        now.note_delivered(consume(window=None), message, redelivered=False, handle=None)
    assert not now.owes()
    now.note_over("d1", returned=True)
    assert now.owes()
    now.note_purged("q")
    assert not now.owes()


def test_an_automatic_consumer_has_room_and_a_browser_is_owed_nothing() -> None:
    now = example("automatic")
    now.note_delivered(consume("automatic"), "m0", redelivered=False, handle=None)
    assert now.owes()
    assert not example("browse").owes()


def test_after_a_crash_held_messages_are_owed_to_new_consumers() -> None:
    now = example(window=None)
    for message in ("m0", "m1"):
        now.note_delivered(consume(window=None), message, redelivered=False, handle=None)
    now.crash()
    assert not now.owes()
    now.note_consumer(consume(), None)
    assert now.owes()

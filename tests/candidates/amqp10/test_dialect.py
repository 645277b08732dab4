"""The settings of a profile for AMQP 1.0."""

from __future__ import annotations

import msgspec
import proton
import pytest

from brokerproof.candidates.amqp10.dialect import CREDIT_MAX, Dialect, credit_of, unfit_window
from brokerproof.candidates.wire.example import Queue
from brokerproof.candidates.wire.profile import by_name, shipped
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import Consume, ConsumeMode, Declare


def test_the_dialect_of_each_shipped_profile_is_sound() -> None:
    names = {name for name, profile in shipped().items() if profile.protocol == "amqp10"}
    assert names >= {"rabbitmq-amqp10", "broker-j-amqp10", "artemis-amqp10", "generic-amqp10"}
    for name in names:
        by_name(name).read_dialect(Dialect)


def test_a_broker_of_ten_levels_is_sent_the_level() -> None:
    message = Message(id="m", priority=9)
    for order, sends_level, expected in (
        (Priority(3), False, 9),
        (Priority(3), True, 2),
        (Fifo(), False, 9),
        # Ten levels would reorder a queue of one.
        (Fifo(), True, 4),
    ):
        dialect = Dialect(sends_level=sends_level)
        assert dialect.priority_of(message, order, "amqp") == expected


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("count", [0, 2])
def test_redelivery_is_read_from_the_field_that_the_broker_sets(*, count: int, first: bool) -> None:
    message = proton.Message(delivery_count=count, first_acquirer=first)
    assert Dialect(redelivered_by="delivery_count").is_redelivered(message) == (count > 0)
    assert Dialect(redelivered_by="first_acquirer").is_redelivered(message) == (not first)


def test_a_message_of_a_queue_that_was_not_declared_durable_is_not_durable() -> None:
    for manage, queue_is, message_is, expected in (
        ("by_use", True, True, True),
        ("by_use", False, True, False),
        ("by_use", True, False, False),
        ("amqp091", False, True, True),
    ):
        queue = Queue("x", Declare(queue="q", order=Fifo(), durable=queue_is))
        message = Message(id="m", persistent=message_is)
        dialect = msgspec.convert({"manage": manage}, Dialect)
        assert dialect.is_durable(message, queue) == expected


def test_a_window_of_0_is_credit_of_0() -> None:
    codes = []
    for window in (None, 0, -1, 2**31 - 1):
        consume = Consume(channel="ch", queue="q", consumer="c", credit=Credit(window))
        error = unfit_window(consume)
        codes.append(None if error is None else error.code)
    assert codes == [None, None, "refused", None]


@pytest.mark.parametrize(
    ("mode", "window", "credit"),
    [
        ("acknowledge", None, CREDIT_MAX),
        ("acknowledge", 2, 2),
        ("automatic", 2, CREDIT_MAX),
        ("browse", 2, CREDIT_MAX),
        ("browse", 0, 0),
        ("acknowledge", 2**31 - 1, CREDIT_MAX),
    ],
)
def test_only_a_consumer_that_acknowledges_fills_its_window(
    mode: ConsumeMode, window: int | None, credit: int
) -> None:
    consume = Consume(channel="ch", queue="q", consumer="c", mode=mode, credit=Credit(window))
    assert credit_of(consume) == credit

"""The dialect of a STOMP broker: headers that follow from operations, and reversible encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.candidates.stomp.dialect import (
    ID,
    Dialect,
    decoded_text,
    encoded_property,
    encoded_selector,
    encoded_text,
)
from brokerproof.candidates.wire.profile import shipped
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.operations import Consume, ConsumeMode, Declare

FIFO = Declare(queue="q", order=Fifo())
VALUES = st.one_of(st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False))


def same(one: object, other: object) -> bool:
    """Return whether two values of properties are equal (driver protocol 1, rule 23)."""
    kinds = [
        bool if isinstance(each, bool) else str if isinstance(each, str) else float
        for each in (one, other)
    ]
    return kinds[0] is kinds[1] and one == other


@given(st.text())
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    assert decoded_text(encoded_text(text)) == text


def test_halves_of_surrogate_pairs_survive() -> None:
    assert decoded_text(encoded_text("\ud800")) == "\ud800"


@given(VALUES, VALUES, st.text(), st.text())
def test_headers_are_equal_exactly_when_properties_are(
    one: str | float, other: str | float, name: str, another: str
) -> None:
    equal = same(one, other) and name == another
    assert (encoded_property(name, one) == encoded_property(another, other)) == equal


@given(st.text(), VALUES)
def test_a_property_needs_no_quotes_in_a_selector(name: str, value: str | float) -> None:
    header, text = encoded_property(name, value)
    assert header.isascii()
    assert header.isidentifier()
    assert "'" not in encoded_selector({name: value}).replace(f" = '{text}'", "")


def sent(dialect: Dialect, message: Message, order: Order | None = None) -> dict[str, str]:
    """Return the headers of SEND to the queue x."""
    return dialect.to_send("x", Declare(queue="q", order=order or Fifo()), message, "amqp")


def test_a_message_carries_its_id_persistence_and_properties() -> None:
    assert sent(Dialect(), Message(id="m 0", properties={"n": 1})) == {
        "destination": "/queue/x",
        ID: "m%200",
        "number_n": "1",
    }
    assert sent(Dialect(), Message(id="m", persistent=True))["persistent"] == "true"


def test_how_a_queue_is_declared_comes_after_the_persistence_of_the_message() -> None:
    dialect = Dialect(send_headers={"durable": "{durable}"})
    headers = [*sent(dialect, Message(id="m", persistent=True))]
    assert headers.index("durable") > headers.index("persistent")


def test_a_queue_in_the_order_of_arrival_is_sent_no_priorities() -> None:
    assert "priority" not in sent(Dialect(), Message(id="m", priority=9))


def test_a_broker_with_fixed_levels_is_sent_the_level() -> None:
    two = [sent(Dialect(), Message(id="m", priority=p), Priority(2))["priority"] for p in (4, 5)]
    assert two == ["0", "1"]


def test_a_broker_that_makes_levels_is_sent_their_number_and_the_priority() -> None:
    dialect = Dialect(levels="x-max-priority", send_headers={"durable": "{durable}"})
    headers = sent(dialect, Message(id="m", priority=9), Priority(4))
    assert (headers["x-max-priority"], headers["priority"]) == ("3", "9")
    assert headers["durable"] == "false"
    assert "x-max-priority" not in sent(dialect, Message(id="m"), Priority(1))


def subscribed(
    dialect: Dialect, mode: ConsumeMode = "acknowledge", window: int | None = None
) -> dict[str, str]:
    """Return the headers of SUBSCRIBE to the queue x."""
    operation = Consume(
        channel="ch", queue="q", consumer="c", mode=mode, credit=Credit(window), priority=3
    )
    return dialect.to_subscribe("x", FIFO, operation)


def test_only_a_consumer_that_acknowledges_has_its_window() -> None:
    dialect = Dialect(window="prefetch", no_window="999")
    assert subscribed(dialect, window=2) == {
        "destination": "/queue/x",
        "ack": "client-individual",
        "prefetch": "2",
    }
    assert subscribed(dialect)["prefetch"] == "999"
    assert subscribed(dialect, "automatic", 2) == {
        "destination": "/queue/x",
        "ack": "auto",
        "prefetch": "999",
    }
    assert "prefetch" not in subscribed(Dialect(window="prefetch"))


def test_a_split_window_has_a_subscription_for_each_message() -> None:
    dialect = Dialect(window="prefetch", no_window="999", split_window=8)

    def many(mode: ConsumeMode, window: int | None) -> int:
        return dialect.subscriptions_for(
            Consume(channel="ch", queue="q", consumer="c", mode=mode, credit=Credit(window))
        )

    assert [many("acknowledge", window) for window in (1, 3, 20, None)] == [1, 3, 20, 8]
    assert many("automatic", 3) == 1
    assert subscribed(dialect, window=3)["prefetch"] == "1"
    assert subscribed(dialect, "automatic", 3)["prefetch"] == "999"


def test_browsers_and_priorities_are_headers_of_the_profile() -> None:
    dialect = Dialect(browse_headers={"browser": "true"}, consumer_priority="rank")
    assert subscribed(dialect, "browse")["browser"] == "true"
    assert subscribed(dialect)["rank"] == "3"
    assert "browser" not in subscribed(dialect)
    assert dialect.ends_browsing({"browser": "end"})
    assert not dialect.ends_browsing({"browser": "true"})
    assert not Dialect().ends_browsing({"browser": "end"})


@pytest.mark.parametrize(
    "name", sorted(name for name, each in shipped().items() if each.protocol == "stomp")
)
def test_every_shipped_profile_of_stomp_can_do_what_it_claims(name: str) -> None:
    profile = shipped()[name]
    dialect, claims = profile.read_dialect(Dialect), profile.claims
    assert dialect.window or dialect.split_window or "messages" not in claims.credit
    assert bool(dialect.browse_headers) == claims.browse
    assert claims.browse == (claims.browser == "snapshot")
    assert bool(dialect.consumer_priority) == claims.consumer_priority
    assert (dialect.release_headers is not None) == (claims.release == "each")
    assert claims.cancel == "returns"
    assert claims.event_order == "per_consumer"
    assert {claims.get, claims.purge, claims.delete, claims.auto_delete} == {False}

"""The size of a message, and the memory of its content while it has references."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.reference.activemq.memory.usage import Charged, MemoryUsage, charge_of
from brokerproof.spec.messages import Message


@given(size=st.integers(0, 4000), text=st.text(max_size=40), minimum=st.integers(0, 2048))
def test_a_message_costs_what_it_carries_and_a_minimum_where_that_is_little(
    size: int, text: str, minimum: int
) -> None:
    message = Message(id="m", size=size, properties={"k": text})
    carried = size + len(msgspec.msgpack.encode({"k": text}))
    expected = carried if carried >= minimum else carried + minimum
    assert charge_of(message, minimum) == expected
    assert charge_of(Message(id="m", size=size), 1024) == (size if size >= 1024 else size + 1024)


def test_a_body_of_100_bytes_costs_between_1_1_and_1_3_kib() -> None:
    properties: dict[str, str | int | float | bool] = {"colour": "red", "JMSXGroupID": "g" * 50}
    for message in (Message(id="m", size=100), Message(id="m", size=100, properties=properties)):
        assert 1.09 * 1024 <= charge_of(message) <= 1.3 * 1024
    assert charge_of(Message(id="m", size=0), 0) == 0


def charged_while_referred_to(content: Charged, usage: MemoryUsage) -> None:
    """Demand that content uses memory from its first reference to its last."""
    content.house(usage)
    steps = (content.retain, content.retain, content.release, content.retain, content.release)
    counted = [(step(), usage.used) for step in steps]
    assert counted == [(1, 7), (2, 7), (1, 7), (2, 7), (1, 7)]
    assert (content.release(), usage.used) == (0, 0)
    assert (content.retain(), usage.used) == (1, 7)
    assert (content.release(), usage.used) == (0, 0)


class EachTime(Charged):
    """Uses memory for each reference."""

    __slots__ = ()

    def retain(self) -> int:
        """Add its size again."""
        assert self.usage is not None
        self.usage.increase(self.size)
        self.references += 1
        return self.references


def test_content_is_charged_while_it_is_referred_to() -> None:
    charged_while_referred_to(Charged(7), MemoryUsage(100))
    with pytest.raises(AssertionError):
        charged_while_referred_to(EachTime(7), MemoryUsage(100))


def test_content_that_is_not_referred_to_cannot_be_let_go() -> None:
    content = Charged(7, MemoryUsage(100))
    with pytest.raises(AssertionError, match="is not referred to"):
        content.release()


def test_content_keeps_the_node_that_it_has_and_a_copy_has_none() -> None:
    one, other = MemoryUsage(100), MemoryUsage(100)
    content = Charged(7)
    content.house(one)
    content.retain()
    content.house(other)
    content.retain()
    assert (one.used, other.used) == (7, 0)
    late = Charged(7)
    late.retain()
    with pytest.raises(AssertionError, match="not been charged"):
        late.house(other)

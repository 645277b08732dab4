"""What the stateful stage draws for a broker on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from brokerproof.checks.gate.stateful import WAITING, Sampling, sample
from brokerproof.checks.search.draws import MESSAGES_MAX
from brokerproof.checks.subjects import OnTheWire, Subject
from brokerproof.reference import make
from brokerproof.spec.protocol.capabilities import Capabilities

if TYPE_CHECKING:
    from brokerproof.spec.protocol.candidate import Candidate

CLAIMS = Capabilities(
    orders=("fifo",), modes=("acknowledge",), credit=("messages",), release_position="original"
)
ON_THE_WIRE = cast("OnTheWire", object())


def broker() -> Candidate:
    """Return a sound broker."""
    return make("qpid-push")


@pytest.mark.parametrize("wire", [None, ON_THE_WIRE], ids=["in process", "on the wire"])
def test_many_messages_wait_in_some_examples_on_the_wire(wire: OnTheWire | None) -> None:
    hello = replace(broker().hello(), capabilities=CLAIMS)
    subject = Subject("sound", hello, broker, in_process=True, wire=wire)
    found = Sampling()
    sample(subject, found, seed=0, examples=8, interrupted=lambda: "")
    assert not found.broken
    assert (found.largest >= WAITING) == (wire is not None)
    assert found.largest <= MESSAGES_MAX + WAITING

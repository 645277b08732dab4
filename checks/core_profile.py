"""The core profile: the tests that every candidate gets (driver protocol 1, rule 49).

The core is publish, consume or get, and acknowledge, first in first out. A candidate that claims
neither get nor acknowledged consumption is tried once and held to what it carries out. One that
carries out neither is held to both, and so breaks a requirement.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from brokerproof.checks.conversation import CannotStart, Misbehaviour, ask
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare, Get, Operation

_QUEUE, _CHANNEL = "core", "core"
_GET = Get(channel=_CHANNEL, queue=_QUEUE)
_CONSUME = Consume(channel=_CHANNEL, queue=_QUEUE, consumer="core")


def is_claimed(claims: Capabilities) -> bool:
    """Whether the claims include an order and a way to take messages and acknowledge them."""
    return bool(claims.orders) and (claims.get or "acknowledge" in claims.modes)


def with_the_core(claims: Capabilities, fresh: Callable[[], Candidate]) -> Capabilities:
    """Return the claims with the missing part of the core added.

    `fresh` returns the candidate right after a reset. If the reset fails, only the order is added:
    the gate reports elsewhere that the candidate cannot start.
    """
    asked = replace(claims, orders=claims.orders or ("fifo",))
    if is_claimed(asked):
        return asked
    try:
        gets, consumes = (_is_carried_out(fresh(), each) for each in (_GET, _CONSUME))
    except CannotStart:
        return asked
    neither = not gets and not consumes
    modes = asked.modes if gets else ("acknowledge", *asked.modes)
    return replace(asked, get=gets or neither, modes=modes)


def _is_carried_out(candidate: Candidate, operation: Operation) -> bool:
    """Whether an operation on a new queue is answered `ok`."""
    declared = ask(candidate, Declare(queue=_QUEUE, order=Fifo()))
    if isinstance(declared, Misbehaviour):
        return False
    answer = ask(candidate, operation)
    return not isinstance(answer, Misbehaviour) and answer.ok

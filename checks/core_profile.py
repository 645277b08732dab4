"""The core profile: what is asked of every candidate, claimed or not (driver protocol 1, rule 49).

That is to publish, to consume or get, and to acknowledge, first in first out. A candidate that
claims no way to take a message and settle it is tried, once, and held to the way that it has; one
that has none is held to both, and so breaks what it must do.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from brokerproof.checks.conversation import CannotStart, Misbehaviour, ask
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.messages import Fifo
from brokerproof.spec.protocol.operations import Consume, Declare, Get, Operation

_QUEUE, _CHANNEL = "core", "core"
_GET = Get(channel=_CHANNEL, queue=_QUEUE)
_CONSUME = Consume(channel=_CHANNEL, queue=_QUEUE, consumer="core")


def is_claimed(claims: Capabilities) -> bool:
    """Whether the claims hold a way to take messages that are acknowledged, and an order."""
    return bool(claims.orders) and (claims.get or "acknowledge" in claims.modes)


def with_the_core(claims: Capabilities, fresh: Callable[[], Candidate]) -> Capabilities:
    """Return the claims with what of the core is missing.

    `fresh` returns the candidate right after a reset. One that cannot be reset is asked nothing
    here: that it cannot start is found, and said, elsewhere.
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

"""The claims of RabbitMQ's classic queues, within the limits of AMQP 0-9-1.

Each limit is a pure function from an operation to the reason why it cannot be carried out. The
state of an example is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from brokerproof.spec.messages import PRIORITIES, Message, Order, Priority
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.capabilities import Capabilities

if TYPE_CHECKING:
    from brokerproof.spec.protocol.operations import Consume

PRODUCT = "RabbitMQ"
LEVELS_MAX = 10
PREFETCH_MAX = 2**16 - 1
SHORT_BYTES_MAX = 255
HEADER_BYTES_MAX = 2**16
BODY_BYTES_MAX = 128 * 2**20

CAPABILITIES = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=LEVELS_MAX,
    priority_mapping="clamp",
    modes=("acknowledge", "automatic"),
    credit=("messages",),
    get=True,
    release_position="original",
    event_order="per_consumer",
    purge=True,
    delete=True,
)


DURABLE_VERSIONS = "3."
"""Versions whose idle queues write settlements within `SETTLED_S`: classic queues of version 1."""

SETTLED_S = 1.0
"""After so long without traffic a settlement is on disk; RabbitMQ's own timer is 0.2 s."""

DECLARED_S = 4.0
"""So long after its declare a durable queue is on disk; before, a kill may take it.

RabbitMQ 3 keeps its queues in Mnesia, whose log Erlang's `disk_log` holds back for 2 s. Measured
with 3.10.8: of seven kills soon after the declare, at least one took the queue with its messages.
"""


def capabilities(*, durable: bool) -> Capabilities:
    """Return the claims; `durable` says that the broker can be crashed."""
    return structs.replace(CAPABILITIES, durable=durable)


def unfit(name: str, version: str, *, durable: bool) -> tuple[str, str] | None:
    """Return why a broker cannot be judged, and what to do about it."""
    if name != PRODUCT:
        return (
            f"{name} {version} has no known way to tell that nothing more will come",
            f"point the gate at {PRODUCT}, or write a driver",
        )
    if durable and not version.startswith(DURABLE_VERSIONS):
        return (
            f"when {name} {version} has a settlement on disk is not known",
            "leave out the commands that crash and restart it",
        )
    return None


def queue_arguments(order: Order) -> dict[str, int]:
    """Return RabbitMQ's arguments for `order`: levels count from 0; one level is a plain queue."""
    match order:
        case Priority(levels=levels) if levels > 1:
            return {"x-max-priority": levels - 1}
        case _:
            return {}


def unfit_window(operation: Consume) -> Error | None:
    """Return the error for a window that is invalid, or that RabbitMQ does not have."""
    window = operation.credit.messages
    if window is not None and window < 0:
        return refused("a window is not negative")
    options = {
        # RabbitMQ reads a prefetch of 0 as no limit.
        "windows of 0": window == 0,
        f"windows above {PREFETCH_MAX}": window is not None and window > PREFETCH_MAX,
    }
    return next((unsupported(f"no {option}") for option, asked in options.items() if asked), None)


def unsendable(message: Message) -> Error | None:
    """Return the error for a message that breaks the protocol or does not fit into AMQP."""
    if message.priority not in PRIORITIES:
        return refused("priorities are 0 to 9")
    if not 0 <= message.size <= BODY_BYTES_MAX:
        return refused(f"sizes are 0 to {BODY_BYTES_MAX} bytes")
    unfit = _unfit_for_amqp(message)
    return None if unfit is None else unsupported(unfit)


def _unfit_for_amqp(message: Message) -> str | None:
    values = message.properties.values()
    try:
        names = [len(name.encode()) for name in (message.id, *message.properties)]
        texts = [len(value.encode()) for value in values if isinstance(value, str)]
    except UnicodeEncodeError:
        return "no text with halves of surrogate pairs"
    if max(names) > SHORT_BYTES_MAX:
        return f"no ids and property names of more than {SHORT_BYTES_MAX} bytes"
    if sum(names) + sum(texts) > HEADER_BYTES_MAX:
        return f"no properties of more than {HEADER_BYTES_MAX} bytes"
    if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values):
        return "no integers of more than 64 bits"
    return None


def refused(message: str) -> Error:
    """Return the error of an operation that does not fit the state or breaks the protocol."""
    return Error("refused", message)


def unsupported(message: str) -> Error:
    """Return the error of an operation that is not claimed."""
    return Error("unsupported", message)

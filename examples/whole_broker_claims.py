"""The claims of the whole broker."""

from __future__ import annotations

from brokerproof.spec.messages import PriorityMapping
from brokerproof.spec.protocol.capabilities import Capabilities, Oversize, ReleasePosition

LEVELS_MAX = 10


def everything(
    *,
    release_position: ReleasePosition = "original",
    oversize: Oversize = "never",
    priority_mapping: PriorityMapping = "amqp",
    parks: bool = False,
) -> Capabilities:
    """Claim everything in the protocol but inspection and answers out of order."""
    return Capabilities(
        orders=("fifo", "priority", "sorted", "last_value"),
        priority_levels=LEVELS_MAX,
        priority_mapping=priority_mapping,
        modes=("acknowledge", "automatic", "browse"),
        credit=("messages", "bytes", "change", "channel"),
        selectors=True,
        consumer_priority=True,
        durable=True,
        auto_delete=True,
        auto_close=True,
        get=True,
        browse=True,
        release_position=release_position,
        oversize=oversize,
        purge=True,
        delete=True,
        multi_queue=True,
        exclusive=True,
        flush=True,
        clock=True,
        delay=True,
        expiry=True,
        parks=parks,
    )

"""Copying a consumer that has a priority, and naming its state.

Owns which parts of such a consumer affect its later behaviour. The broker copies shared windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.reference.front.credit import Window
from brokerproof.reference.shared.atomics import AtomicReference, Lock

if TYPE_CHECKING:
    from collections.abc import Hashable

_new = object.__new__


def copy_ranked(consumer: RankedConsumer) -> RankedConsumer:
    """Return an independent copy that shares no window yet."""
    copy = _new(RankedConsumer)
    copy.consumer = consumer.consumer
    copy.channel = consumer.channel
    copy.queue = consumer.queue
    copy.mode = consumer.mode
    copy.exclusive = consumer.exclusive
    copy.priority = consumer.priority
    own = consumer.credit
    copy.credit = Window(own.limit, own.byte_limit, used=own.used, used_bytes=own.used_bytes)
    # The broker copies the windows of channels.
    copy.shared = AtomicReference(None)
    copy.state = AtomicReference(consumer.state.value)
    copy.send_lock = Lock()
    return copy


def name_ranked(consumer: RankedConsumer) -> Hashable:
    """Return a value that is equal for consumers that behave alike."""
    credit = consumer.credit
    return (
        consumer.consumer,
        consumer.channel,
        consumer.mode,
        consumer.exclusive,
        consumer.priority,
        credit.limit,
        credit.used,
    )

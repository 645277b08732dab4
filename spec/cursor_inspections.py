"""What `inspect` shows of a queue that reads its messages by a cursor (ActiveMQ, 5.1 to 5.3).

A view has what the releases keep: for each level of priority what is stored, how far that was read
and what of it is in memory; what is paged in, and who has it; what the audit would say; and the
account of memory. Everything is shown as it is kept, not as it should be. Messages are named by
their ids, and numbered as they came to the queue, from 1 on.
"""

from __future__ import annotations

import msgspec

from brokerproof.spec.messages import Order


class NumberedView(msgspec.Struct, frozen=True):
    """A message, and the how manieth of its queue it is; whether its content is in memory.

    `suppressed` says that the audit calls it a duplicate.
    """

    message: str
    number: int
    resident: bool = False
    suppressed: bool = False


class CursorLevelView(msgspec.Struct, frozen=True, kw_only=True):
    """The cursors of one level.

    `stored` is what is persistent and not acknowledged, in the order of the store; `read` how many
    of these are not behind the position, None where the next reading begins at the head. `batch` is
    what of it is in memory and to be paged in, `size` the cursor's own count of what is pending.
    `in_memory` and `on_disk` are pending messages that do not outlive a crash.
    """

    level: int
    stored: tuple[NumberedView, ...] = ()
    read: int | None = None
    batch: tuple[NumberedView, ...] = ()
    cache_enabled: bool = False
    size: int = 0
    in_memory: tuple[NumberedView, ...] = ()
    on_disk: tuple[NumberedView, ...] = ()


class ReferenceView(msgspec.Struct, frozen=True):
    """A message that is paged in.

    `holder` is the consumer that has it, `channel` its channel: None of a get, and both None where
    nobody has it. `attached` says that the holder could still settle it.
    """

    message: str
    number: int
    level: int
    persistent: bool
    resident: bool
    redelivered: bool
    channel: str | None = None
    holder: str | None = None
    attached: bool = True


class TakerView(msgspec.Struct, frozen=True):
    """A consumer; whether it has room for a message."""

    consumer: str
    has_room: bool


class MemoryView(msgspec.Struct, frozen=True):
    """The account of a queue's memory, in bytes; a limit of 0 is none.

    `charged` is what the messages that are in memory come to, each by itself, and `largest` the
    largest of these.
    """

    used: int = 0
    limit: int = 0
    charged: int = 0
    largest: int = 0


class CursorQueueView(msgspec.Struct, frozen=True, tag_field="kind", tag="cursor-queue"):
    """A queue with its cursors, the highest level first.

    `paged_in` is in the order in which it was; of it `returned` was given back, and `waiting` given
    to nobody yet, each the next one first, by message. `late` was paged in and is about to be given
    to those who were there then. `window` is the lowest number that the audit covers and how many
    it covers, None before it has seen any. `parked` are publishes that wait for memory.
    """

    order: Order
    levels: tuple[CursorLevelView, ...] = ()
    paged_in: tuple[ReferenceView, ...] = ()
    returned: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    takers: tuple[TakerView, ...] = ()
    parked: tuple[str, ...] = ()
    window: tuple[int, int] | None = None
    memory: MemoryView = MemoryView()

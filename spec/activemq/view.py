"""The view of a queue that reads its messages by a cursor (ActiveMQ, 5.1 to 5.3).

For each level of priority, a view has the stored messages, the cursor's position and the part of
the store in memory. It also has the paged-in messages with their holders, the audit's answers, and
the memory in use. All is shown as it is kept, not as it should be. Messages are named by their ids,
and numbered in the order of arrival, from 1 on. Sizes are the bytes that a message is charged for.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from brokerproof.spec.inspection import QueueView


class StoredView(msgspec.Struct, frozen=True):
    """A message of a store; `suppressed` says that the audit calls it a duplicate."""

    message: str
    number: int
    size: int
    suppressed: bool = False


class PendingView(msgspec.Struct, frozen=True):
    """A message that is pending in one of a cursor's lists.

    `references` is how many references its content has; 0 if the content is not in memory.
    """

    message: str
    number: int
    size: int
    references: int = 0


class CursorLevelView(msgspec.Struct, frozen=True, kw_only=True):
    """The cursors of one level.

    `stored` are the persistent messages that are not acknowledged, in the order of the store.
    `read` is how many of these the position has passed, None without a position. If the level
    `starts_over`, the next read begins at the head all the same. An `outdated` position is
    forgotten once the index has the acknowledgements. `recovered` is the message last read into a
    batch, `cached` the one last cached, as far as known. `batch` are the stored messages in memory
    that are still to be paged in; `size` is the cursor's own count of pending messages. `in_memory`
    and `on_disk` are pending messages that do not outlive a crash.
    """

    level: int
    stored: tuple[StoredView, ...] = ()
    read: int | None = None
    starts_over: bool = False
    outdated: bool = False
    recovered: str | None = None
    cached: str | None = None
    batch: tuple[PendingView, ...] = ()
    cache_enabled: bool = False
    size: int = 0
    in_memory: tuple[PendingView, ...] = ()
    on_disk: tuple[PendingView, ...] = ()

    @property
    def passed(self) -> int:
        """How many stored messages no read will meet: all of them while the cache is on."""
        if self.cache_enabled:
            return len(self.stored)
        return 0 if self.starts_over else self.read or 0

    def __str__(self) -> str:
        lists: dict[str, tuple[StoredView | PendingView, ...]] = {
            "store": self.stored,
            "batch": self.batch,
            "in memory": self.in_memory,
            "on disk": self.on_disk,
        }
        texts = [f"{name} {_text(each)}" for name, each in lists.items() if each]
        if self.stored:
            read = "all cached" if self.cache_enabled else f"{self.passed} passed"
            texts.append(f"{read} and {self.size} counted as pending")
        name = f"level {self.level}: " if self.level and texts else ""
        return name + ", ".join(texts)

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        if len({each.message for each in self.stored}) < len(self.stored):
            return "a message that is stored twice"
        is_outside = self.read is not None and not 0 <= self.read <= len(self.stored)
        return "a position outside of the store" if is_outside else ""


def _text(members: Iterable[StoredView | PendingView]) -> str:
    return "[" + " ".join(f"{each.message}#{each.number}" for each in members) + "]"


class ReferenceView(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is paged in; `level` is the message's own.

    `holder` is the consumer that it belongs to, `channel` that consumer's channel. `holder` is None
    for a get; both are None if the message belongs to no consumer. A `grouped` message may be given
    only to the consumer that has its group.
    """

    message: str
    number: int
    size: int
    level: int = 0
    persistent: bool = False
    references: int = 0
    redelivered: bool = False
    grouped: bool = False
    channel: str | None = None
    holder: str | None = None


class HeldView(msgspec.Struct, frozen=True):
    """An unsettled delivery; `consumer` is None for a get."""

    message: str
    channel: str
    consumer: str | None = None


class SubscriberView(msgspec.Struct, frozen=True):
    """A consumer, and whether it would be given a message now if it may have it.

    A consumer that `settles_when_sent` holds nothing.
    """

    consumer: str
    channel: str
    has_room: bool
    settles_when_sent: bool = False


class ParkedView(msgspec.Struct, frozen=True):
    """A publish that waits for memory."""

    message: str
    size: int


class AuditView(msgspec.Struct, frozen=True):
    """The audit's window: the lowest number that it covers, None before it has seen any.

    It has `words` of `word_bits` numbers each.
    """

    first: int | None = None
    words: int = 1
    word_bits: int = 64


class MemoryView(msgspec.Struct, frozen=True):
    """The memory in use by a queue, in bytes; a limit of 0 means no limit."""

    used: int = 0
    limit: int = 0


class CursorQueueView(QueueView, frozen=True, tag_field="kind", tag="cursor-queue"):
    """A queue with its cursors, the highest level first.

    `paged_in` is in the order of paging in. Three of its parts are lists of names, the next message
    first: `returned` was given back, `waiting` was not given to any consumer yet, and `late` is
    about to be given to the consumers that were there when it was paged in. `held` are the
    deliveries, the oldest first. `subscribers` are served in turn, the next one first. `parked` are
    the publishes that wait for memory, in order; `arrivals` is how many messages have come, without
    the parked ones.
    """

    levels: tuple[CursorLevelView, ...] = ()
    paged_in: tuple[ReferenceView, ...] = ()
    returned: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    held: tuple[HeldView, ...] = ()
    subscribers: tuple[SubscriberView, ...] = ()
    parked: tuple[ParkedView, ...] = ()
    arrivals: int = 0
    audit: AuditView = AuditView()
    memory: MemoryView = MemoryView()

    def __str__(self) -> str:
        parts = [text for level in self.levels if (text := str(level))]
        lists = {
            "returned": self.returned,
            "waiting": self.waiting,
            "late": self.late,
            "held": [f"{each.message} by {each.consumer or 'a get'}" for each in self.held],
            "parked": [each.message for each in self.parked],
        }
        parts += [f"{name} [{', '.join(names)}]" for name, names in lists.items() if names]
        return f"{', '.join(parts) or 'nothing'}; {self.memory.used} bytes used"

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        if not self.levels:
            return "a queue without any level"
        if self.audit.words < 1 or self.audit.word_bits < 1:
            return "an audit of nothing"
        return next((f"{f} at level {q.level}" for q in self.levels if (f := q.fault())), "")

"""What `inspect` shows of a queue that reads its messages by a cursor (ActiveMQ, 5.1 to 5.3).

A view has what the releases keep: for each level of priority what is stored, how far that was read
and what of it is in memory; what is paged in, and who has it; what the audit would say; and the
account of memory. Everything is shown as it is kept, not as it should be. Messages are named by
their ids, and numbered as they came to the queue, from 1 on. Sizes are the bytes that a message is
charged for.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from brokerproof.spec.protocol.inspection import QueueView


class StoredView(msgspec.Struct, frozen=True):
    """A message of a store; `suppressed` says that the audit calls it a duplicate."""

    message: str
    number: int
    size: int
    suppressed: bool = False


class PendingView(msgspec.Struct, frozen=True):
    """A message that is pending in one of a cursor's lists.

    `references` is how often its content is referred to; 0 where that is not in memory.
    """

    message: str
    number: int
    size: int
    references: int = 0


class CursorLevelView(msgspec.Struct, frozen=True, kw_only=True):
    """The cursors of one level.

    `stored` is what is persistent and not acknowledged, in the order of the store; `read` how many
    of these the position has passed, None where there is no position. Where it `starts_over` the
    next reading begins at the head all the same; a position that is `outdated` will be forgotten
    when the index has what was acknowledged. `recovered` is the message that was read into a batch
    last, and `cached` the one that was cached last, as far as that is known. `batch` is what of the
    store is in memory and to be paged in, `size` the cursor's own count of what is pending.
    `in_memory` and `on_disk` are pending messages that do not outlive a crash.
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
        """How many of the store no reading will meet: all while the cache is on."""
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
        """Return what is wrong with the view that its types do not exclude, or nothing."""
        if len({each.message for each in self.stored}) < len(self.stored):
            return "a message that is stored twice"
        is_outside = self.read is not None and not 0 <= self.read <= len(self.stored)
        return "a position outside of the store" if is_outside else ""


def _text(members: Iterable[StoredView | PendingView]) -> str:
    return "[" + " ".join(f"{each.message}#{each.number}" for each in members) + "]"


class ReferenceView(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is paged in; `level` is the message's own.

    `holder` is the consumer that it belongs to, `channel` its channel: the first is None of a get,
    and both are where it belongs to nobody. One that is `grouped` only the consumer may be given
    that has its group.
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
    """A delivery that is still to be settled; `consumer` is None of a get."""

    message: str
    channel: str
    consumer: str | None = None


class TakerView(msgspec.Struct, frozen=True):
    """A consumer; whether it would be given a message now, if it may have it.

    One that `settles_when_sent` holds nothing.
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
    """The account of a queue's memory, in bytes; a limit of 0 is none."""

    used: int = 0
    limit: int = 0


class CursorQueueView(QueueView, frozen=True, tag_field="kind", tag="cursor-queue"):
    """A queue with its cursors, the highest level first.

    `paged_in` is in the order in which it was. Of it `returned` was given back, and `waiting` given
    to nobody yet, each the next one first, by message; `late` is about to be given to those who
    were there when it was paged in; and `held` was delivered, the oldest delivery first. `takers`
    are served in turn, the next one first. `parked` is what waits for memory, in its order;
    `arrivals` is how many messages have come, these aside.
    """

    levels: tuple[CursorLevelView, ...] = ()
    paged_in: tuple[ReferenceView, ...] = ()
    returned: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    held: tuple[HeldView, ...] = ()
    takers: tuple[TakerView, ...] = ()
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
        """Return what is wrong with the view that its types do not exclude, or nothing."""
        if not self.levels:
            return "a queue without any level"
        if self.audit.words < 1 or self.audit.word_bits < 1:
            return "an audit of nothing"
        return next((f"{f} at level {q.level}" for q in self.levels if (f := q.fault())), "")

"""The view of a queue that pages its messages to disk (RabbitMQ, 2.8.2), as `inspect` shows it.

For each level of priority, a view has a backing queue of five places, its counters, and its entries
in the index and the stores. Of the queue process in front, it has the line of consumers. All is
shown as it is kept, not as it should be. Positions are the queue's own numbers, which grow for
ever; a comparison of two views has to renumber them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from brokerproof.spec.inspection import QueueView


class StatusView(msgspec.Struct, frozen=True):
    """A message whose status the queue has in memory; `seq` is its position.

    `message` is its name, or the store's id for it if its content is nowhere any more. `in_ram` and
    `on_disk` say where its content is; `indexed` says that its position is on disk.
    """

    seq: int
    message: str
    persistent: bool = False
    delivered: bool = False
    in_ram: bool = False
    on_disk: bool = False
    indexed: bool = False


class IndexEntryView(msgspec.Struct, frozen=True):
    """A position in the index that is not acknowledged there."""

    seq: int
    message: str
    persistent: bool = False
    delivered: bool = False


class DeltaView(msgspec.Struct, frozen=True):
    """How many messages are on disk alone, at positions from `start` up to before `end`."""

    start: int = 0
    count: int = 0
    end: int = 0


class StoresView(msgspec.Struct, frozen=True):
    """The stores' reference count of each message, shown if no other queue shares the stores."""

    persistent: tuple[tuple[str, int], ...] = ()
    transient: tuple[tuple[str, int], ...] = ()


class BackingQueueView(msgspec.Struct, frozen=True, kw_only=True):
    """The backing queue of one level; places have the first message first, `pending` the lowest.

    `index` leaves out transient messages from before the last start, which have positions before
    `transient_threshold`. `length` counts the ready messages, `ram_count` those of them with
    content in memory, `persistent_count` the persistent messages that are ready or pending.
    `ram_acks` are the positions recorded as pending with content in memory. `target` is how many
    contents may be in memory, None for any number. `segment` is the number of positions in a
    segment of the index, `batch` the number of messages in a batch.
    """

    level: int
    q1: tuple[StatusView, ...] = ()
    q2: tuple[StatusView, ...] = ()
    delta: DeltaView = DeltaView()
    q3: tuple[StatusView, ...] = ()
    q4: tuple[StatusView, ...] = ()
    pending: tuple[StatusView, ...] = ()
    index: tuple[IndexEntryView, ...] = ()
    stores: StoresView | None = None
    next_seq: int = 0
    transient_threshold: int = 0
    length: int = 0
    ram_count: int = 0
    persistent_count: int = 0
    ram_acks: tuple[int, ...] = ()
    target: int | None = None
    segment: int = 1
    batch: int = 1

    def __str__(self) -> str:
        delta = self.delta
        places = [
            f"{name} {_text(getattr(self, name))}"
            for name in ("q4", "q3", "q2", "q1", "pending")
            if getattr(self, name)
        ]
        if delta.count or delta.start < delta.end:
            places.append(f"delta {delta.count} from {delta.start} to {delta.end}")
        level = f"level {self.level}: " if self.level else ""
        counted = f"counted {self.length} ready, {self.ram_count} in memory"
        return f"{level}{', '.join(places) or 'nothing'}; {counted}"

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        if self.segment < 1 or self.batch < 1 or (self.target or 0) < 0:
            return "a segment or a batch of nothing, or a negative target"
        pending, index = [each.seq for each in self.pending], [each.seq for each in self.index]
        for name, seqs in (("pending", pending), ("index", index)):
            if any(first >= second for first, second in pairwise(seqs)):
                return f"{name} in another order than that of the positions"
        ready = [each.seq for each in (*self.q1, *self.q2, *self.q3, *self.q4)]
        return "a negative position" if any(seq < 0 for seq in (*pending, *index, *ready)) else ""


def _text(statuses: Iterable[StatusView]) -> str:
    return "[" + " ".join(f"{each.message}#{each.seq}" for each in statuses) + "]"


class InLineView(msgspec.Struct, frozen=True):
    """A consumer of a queue process, and whether it has room for a message."""

    consumer: str
    has_room: bool


class HandedOutView(msgspec.Struct, frozen=True):
    """A message that a channel has to settle: its level, and its position there."""

    channel: str
    level: int
    seq: int


class PagingQueueView(QueueView, frozen=True, tag_field="kind", tag="paging-queue"):
    """A queue process with its backing queues, in the order in which it asks them.

    `in_line` are the consumers that are served in turn, the next one first; `blocked` are the
    consumers that were found without room.
    """

    levels: tuple[BackingQueueView, ...] = ()
    in_line: tuple[InLineView, ...] = ()
    blocked: tuple[InLineView, ...] = ()
    handed_out: tuple[HandedOutView, ...] = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self.levels))

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        if not self.levels:
            return "a queue without any level"
        return next((f"{f} at level {q.level}" for q in self.levels if (f := q.fault())), "")

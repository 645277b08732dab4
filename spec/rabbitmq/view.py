"""What `inspect` shows of a queue that pages its messages to disk (RabbitMQ, 2.8.2).

A view has what the release keeps: for each level of priority a backing queue of five places, what
it counts, what the index and the stores have of it; and of the queue process in front, who stands
in line. Everything is shown as it is kept, not as it should be. Positions are the queue's own
numbers, which grow for ever; whoever compares views has to count from somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from brokerproof.spec.protocol.inspection import QueueView


class StatusView(msgspec.Struct, frozen=True):
    """A message of which the queue has a status in memory; `seq` is its position.

    `message` is its name, or the store's id for it where nobody has its content any more. What is
    `in_ram` or `on_disk` is its content; `indexed` says that its position is on disk.
    """

    seq: int
    message: str
    persistent: bool = False
    delivered: bool = False
    in_ram: bool = False
    on_disk: bool = False
    indexed: bool = False


class IndexEntryView(msgspec.Struct, frozen=True):
    """A position that the index has and that is not acknowledged there."""

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
    """How often the stores refer to each message, shown where no other queue shares them."""

    persistent: tuple[tuple[str, int], ...] = ()
    transient: tuple[tuple[str, int], ...] = ()


class BackingQueueView(msgspec.Struct, frozen=True, kw_only=True):
    """The backing queue of one level; places have the first message first, `pending` the lowest.

    `index` has no entries of transient messages from before the last start, which are those before
    `transient_threshold`. `length` counts what is ready, `ram_count` what of it has its content in
    memory, `persistent_count` what is persistent and ready or pending; `ram_acks` are the positions
    known to be pending with content in memory. `target` is how many contents may be in memory, None
    for any number; a `segment` of the index has so many positions, and so many messages are a
    `batch`.
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
        """Return what is wrong with the view that its types do not exclude, or nothing."""
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
    """A consumer of a queue process; whether it has room for a message."""

    consumer: str
    has_room: bool


class HandedOutView(msgspec.Struct, frozen=True):
    """A message that a channel has to settle: its level, and its position there."""

    channel: str
    level: int
    seq: int


class PagingQueueView(QueueView, frozen=True, tag_field="kind", tag="paging-queue"):
    """A queue process with its backing queues, in the order in which it asks them.

    `in_line` are the consumers that are served in turn, the next one first; `blocked` are those
    that were found without room.
    """

    levels: tuple[BackingQueueView, ...] = ()
    in_line: tuple[InLineView, ...] = ()
    blocked: tuple[InLineView, ...] = ()
    handed_out: tuple[HandedOutView, ...] = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self.levels))

    def fault(self) -> str:
        """Return what is wrong with the view that its types do not exclude, or nothing."""
        if not self.levels:
            return "a queue without any level"
        return next((f"{f} at level {q.level}" for q in self.levels if (f := q.fault())), "")

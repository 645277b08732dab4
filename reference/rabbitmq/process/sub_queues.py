"""One backing queue for each priority level; together they are one queue.

Owns the choice of the level to fetch from, and the level of each tag. A queue without priorities
has a single level.

Source: RabbitMQ's priority queue (a plugin since 2.8, in the broker since 3.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from brokerproof.spec.messages import Priority, level_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from brokerproof.reference.rabbitmq.paging import VariableQueue
    from brokerproof.spec.messages import Order


class Tag(NamedTuple):
    """The tag that settles a delivery: its level, and the level's own tag."""

    level: int
    seq: int


class Next(NamedTuple):
    """A delivered message; it has no tag if it needs no acknowledgement."""

    body: bytes
    redelivered: bool
    tag: Tag | None


def names_of(queue: str, order: Order) -> dict[int, str]:
    """Return the name of each level's backing queue, the highest level first."""
    if isinstance(order, Priority):
        return {level: f"{queue}\0{level}" for level in reversed(range(order.levels))}
    return {0: f"{queue}\0"}


class SubQueues:
    """The backing queues of one queue by level, the highest first (PQ1)."""

    __slots__ = ("by_level", "order")

    def __init__(self, order: Order, by_level: Mapping[int, VariableQueue]) -> None:
        self.order = order
        self.by_level = dict(by_level)

    def is_empty(self) -> bool:
        """Return whether no message is ready."""
        return not any(queue.length for queue in self.by_level.values())

    def _of(self, priority: int) -> tuple[int, VariableQueue]:
        """Return the level of a priority, at most the highest, with its queue."""
        level = level_of(priority, self.order, "clamp")
        return level, self.by_level[level]

    def publish(
        self, priority: int, msg_id: bytes, body: bytes, *, persistent: bool, confirm: bool
    ) -> None:
        """Append a message to its level."""
        _, queue = self._of(priority)
        queue.publish(msg_id, body, persistent=persistent, needs_confirming=confirm)

    def publish_delivered(
        self,
        priority: int,
        msg_id: bytes,
        body: bytes,
        *,
        ack_required: bool,
        persistent: bool,
        confirm: bool,
    ) -> Tag | None:
        """Record a message that a consumer gets at once, while nothing is ready."""
        level, queue = self._of(priority)
        seq = queue.publish_delivered(
            msg_id,
            body,
            ack_required=ack_required,
            persistent=persistent,
            needs_confirming=confirm,
        )
        return None if seq is None else Tag(level, seq)

    def fetch(self, *, ack_required: bool) -> Next | None:
        """Deliver the first message of the highest nonempty level (PQ3)."""
        for level, queue in self.by_level.items():
            fetched = queue.fetch(ack_required=ack_required)
            if fetched is not None:
                assert fetched.body is not None, "a fetch reads the body"
                tag = None if fetched.tag is None else Tag(level, fetched.tag)
                return Next(fetched.body, fetched.redelivered, tag)
        return None

    def acknowledge(self, tags: Iterable[Tag]) -> None:
        """Settle deliveries for good, each at its own level (PQ4)."""
        self._partition(tags, lambda queue, seqs: queue.acknowledge(seqs))

    def requeue(self, tags: Iterable[Tag]) -> None:
        """Put messages back, each at its place; each level is called once (PQ6)."""
        self._partition(tags, lambda queue, seqs: queue.requeue(seqs))

    def _partition(
        self, tags: Iterable[Tag], carry_out: Callable[[VariableQueue, list[int]], object]
    ) -> None:
        """Call `carry_out` on each level with its own tags, which stay in their order."""
        parts: dict[int, list[int]] = {level: [] for level in self.by_level}
        for tag in tags:
            parts[tag.level].append(tag.seq)
        for level, seqs in parts.items():
            if seqs:
                carry_out(self.by_level[level], seqs)

    def purge(self) -> None:
        """Drop all ready messages."""
        for queue in self.by_level.values():
            queue.purge()

    def sync(self) -> None:
        """Make all positions durable."""
        for queue in self.by_level.values():
            queue.sync()

    def drain_confirmed(self) -> set[bytes]:
        """Return the ids of messages that became safe, at any level."""
        return set().union(*(queue.drain_confirmed() for queue in self.by_level.values()))

    def come_to_rest(self) -> None:
        """Do all work that is due at rest."""
        for queue in self.by_level.values():
            while queue.needs_timeout() is not None:
                queue.timeout()

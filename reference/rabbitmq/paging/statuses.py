"""A message in its queue, and `Delta`, the record of messages that the queue only counts.

Owns these two and the rule on a delta alone (D1).

The document has four states: *alpha* (body and position in RAM), *beta* (body on disk alone),
*gamma* (body on disk alone, position in RAM and on disk), *delta* (nothing in RAM). They are not
stored but follow from three facts of a message: whether its body is in RAM, whether its body is on
disk, and whether its position is. The document has only persistent messages as gamma. A transient
one is gamma, too, after it was delta and was read back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from brokerproof.spec.invariants import invariants


class InvariantBroken(AssertionError):
    """An invariant that the release itself asserts does not hold; `id` names it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.id = name

    def __str__(self) -> str:
        return f"{self.id}: {invariants()[self.id].statement}"


class MessageStatus:
    """A message that has a position in RAM; `body` is None if it is on disk alone.

    `seq` is its position in the queue, and its tag while it is delivered and not acknowledged.
    `msg_on_disk` and `index_on_disk`: body and position were written, not necessarily synced.
    `expiry` is in µs of the caller's clock, None if it never expires.
    """

    __slots__ = (
        "body",
        "expiry",
        "index_on_disk",
        "is_delivered",
        "is_persistent",
        "msg_id",
        "msg_on_disk",
        "needs_confirming",
        "seq",
    )

    def __init__(
        self,
        seq: int,
        msg_id: bytes,
        body: bytes | None,
        is_persistent: bool,
        expiry: int | None,
        needs_confirming: bool,
    ) -> None:
        self.seq = seq
        self.msg_id = msg_id
        self.body = body
        self.is_persistent = is_persistent
        self.is_delivered = False
        self.msg_on_disk = False
        self.index_on_disk = False
        self.expiry = expiry
        self.needs_confirming = needs_confirming

    def __repr__(self) -> str:
        return f"<#{self.seq} {self.state}{' delivered' if self.is_delivered else ''}>"

    @property
    def state(self) -> str:
        """The document's word for its state; delta messages have no status."""
        if self.body is not None:
            return "alpha"
        return "gamma" if self.index_on_disk else "beta"

    def fields(self) -> tuple[int, *tuple[Hashable, ...]]:
        """Return all its fields, `seq` first."""
        return (
            self.seq,
            self.msg_id,
            self.body,
            self.is_persistent,
            self.is_delivered,
            self.msg_on_disk,
            self.index_on_disk,
            self.expiry,
            self.needs_confirming,
        )


class Fetched(NamedTuple):
    """A delivered message; `tag` acknowledges it, `remaining` messages are still ready.

    A message that was dropped unread has no body.
    """

    msg_id: bytes
    body: bytes | None
    redelivered: bool
    tag: int | None
    remaining: int


@dataclass(frozen=True, slots=True)
class Delta:
    """`count` messages with `start <= seq < end` that are on disk only; there may be gaps.

    A blank one has neither messages nor a range. One with a range but no messages is not blank:
    after a clean stop without persistent messages a queue starts so, if transient entries are left
    in the index, and walks the range once.
    """

    start: int
    count: int
    end: int

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing to read."""
        return self.count == 0 and self.start == self.end


BLANK = Delta(0, 0, 0)


def checked(delta: Delta) -> Delta:
    """Return the record, after a check that its range has room for its count."""
    if delta.start + delta.count > delta.end:
        raise InvariantBroken("D1")
    return delta


def expand(delta: Delta, seq: int) -> Delta:
    """Return the record with one more message, at any position.

    It comes from either end of the queue, or by a requeue from within or beyond the end.
    """
    start, count, end = delta.start, delta.count, delta.end
    if delta.is_blank:
        return checked(Delta(seq, 1, seq + 1))
    if seq < start:
        return checked(Delta(seq, count + 1, end))
    if seq >= end:
        return checked(Delta(start, count + 1, seq + 1))
    return checked(Delta(start, count + 1, end))


def merge(
    place: deque[MessageStatus],
    coming: deque[MessageStatus],
    limit: int | None,
    convert: Callable[[MessageStatus], None],
) -> None:
    """Move coming messages before `limit` into a place; both are in order, and so is the result."""
    front: list[MessageStatus] = []
    while coming and (limit is None or coming[0].seq < limit):
        status = coming.popleft()
        while place and place[0].seq < status.seq:
            front.append(place.popleft())
        convert(status)
        front.append(status)
    place.extendleft(reversed(front))

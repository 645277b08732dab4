"""An abstract backing queue: the oracle of the tests of the paging queue.

Two sorted mappings, of ready and of pending messages. It has no places, limits of RAM, segments or
batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Message:
    """A message in a queue; `seq` is its place."""

    seq: int
    msg_id: bytes
    body: bytes
    is_persistent: bool
    expiry: int | None
    is_delivered: bool = False


class AbstractQueue:
    """Messages by place: those that are ready, and those that wait to be settled."""

    def __init__(self) -> None:
        self.ready: dict[int, Message] = {}
        self.pending: dict[int, Message] = {}

    def publish(self, message: Message) -> None:
        """Append a message."""
        assert message.seq > max([*self.ready, *self.pending], default=-1)
        self.ready[message.seq] = message

    def publish_delivered(self, message: Message) -> None:
        """Take in a message that was handed out at once."""
        assert not self.ready
        self.pending[message.seq] = replace(message, is_delivered=True)

    def fetch(self, *, ack_required: bool) -> Message | None:
        """Hand out the first message, as it was before; None if nothing is ready."""
        if not self.ready:
            return None
        message = self.ready.pop(min(self.ready))
        if ack_required:
            self.pending[message.seq] = replace(message, is_delivered=True)
        return message

    def fetchwhile(
        self, matches: Callable[[int | None], bool], *, ack_required: bool
    ) -> list[Message]:
        """Hand out from the front while the expiry matches."""
        fetched = []
        while self.ready and matches(self.ready[min(self.ready)].expiry):
            message = self.fetch(ack_required=ack_required)
            assert message is not None
            fetched.append(message)
        return fetched

    def acknowledge(self, tags: Iterable[int]) -> list[bytes]:
        """Settle pending messages."""
        return [self.pending.pop(tag).msg_id for tag in tags]

    def requeue(self, tags: Iterable[int]) -> None:
        """Make pending messages ready again, each at its place."""
        for tag in tags:
            self.ready[tag] = self.pending.pop(tag)

    def purge(self) -> int:
        """Drop the ready messages; return their number."""
        count = len(self.ready)
        self.ready.clear()
        return count

    def restart(self) -> None:
        """Stop cleanly and start: persistent messages are ready again, delivered ones marked so."""
        self.ready = {
            seq: message
            for seq, message in sorted({**self.ready, **self.pending}.items())
            if message.is_persistent
        }
        self.pending = {}

    def sequence(self) -> list[tuple[int, bytes, bool]]:
        """Return place, id and flag of the ready messages, first to last."""
        return [
            (seq, self.ready[seq].msg_id, self.ready[seq].is_delivered)
            for seq in sorted(self.ready)
        ]

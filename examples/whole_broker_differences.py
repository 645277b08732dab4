"""The whole broker, with the lawful differences of real brokers.

Each difference is a claim of `Capabilities` that has another value than the strict one, and a few
lines that make the broker behave so. With strict claims the same broker is at fault:

    brokerproof check examples/whole_broker_differences.py:ReturnsAtCancel

`docs/reference/protocol.md` lists them under *Lawful differences*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from brokerproof.spec.protocol.answers import Answer, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Delete,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
)

if TYPE_CHECKING or __package__:
    from .whole_broker import WholeBroker
    from .whole_broker_claims import everything
    from .whole_broker_queue import Entry, matches
    from .whole_broker_state import Consumer, hold_of
else:
    from whole_broker import WholeBroker
    from whole_broker_claims import everything
    from whole_broker_queue import Entry, matches
    from whole_broker_state import Consumer, hold_of


class Different(WholeBroker):
    """The whole broker with a difference, which it claims unless other `claims` are given."""

    lawful: ClassVar[Capabilities]

    def __init__(self, claims: Capabilities | None = None) -> None:
        super().__init__(claims=claims or self.lawful)


class ReleasesByLeaving(Different):
    """Has no release of a single message, and no reject."""

    lawful = replace(everything(), release="by_leaving", reject=False)

    def carry_out(self, operation: Operation) -> Answer:
        """Refuse releases and rejects."""
        if isinstance(operation, Release | Reject):
            return unsupported("no such operation")
        return super().carry_out(operation)


class KeepsNothingForLeavers(Different):
    """Drops what a channel holds when it closes."""

    lawful = replace(everything(), release="none")

    def close_channel(self, channel: str) -> None:
        """Drop the channel's deliveries, then close it."""
        for queue in self.state.queues.values():
            queue.entries = [
                e for e in queue.entries if e.hold is None or e.hold.channel != channel
            ]
        super().close_channel(channel)


class ReturnsAtCancel(Different):
    """Puts back what a cancelled consumer holds, in the order of delivery."""

    lawful = replace(everything(), cancel="returns")

    def cancel(self, cancel: Cancel) -> Answer:
        """Release the consumer's deliveries after it has left."""
        held = [hold_of(entry) for entry in self.state.held()]
        answer = super().cancel(cancel)
        for hold in held if answer.ok else ():
            if hold.consumer == cancel.consumer:
                self.settle(Release(delivery=hold.delivery))
        return answer


class ClosesOneByOne(Different):
    """Returns the messages of a closing channel one after another, the last one first."""

    lawful = replace(everything(), close="each")

    def close_channel(self, channel: str) -> None:
        """Let the others be served after each return."""
        self.state.leave([c for c in self.state.consumers.values() if c.asked.channel == channel])
        for hold in reversed([hold_of(entry) for entry in self.state.held()]):
            if hold.channel == channel:
                self.settle(Release(delivery=hold.delivery))
                self.state.rest()
        super().close_channel(channel)


class ShowsSnapshots(Different):
    """Shows a browser what was in the queue when it came."""

    lawful = replace(everything(), browser="snapshot")

    def publish(self, publish: Publish) -> Answer:
        """Let every browser pass the new message."""
        answer = super().publish(publish)
        if answer.ok and not answer.parked:
            queue = self.state.queues[publish.queue]
            browsers = [c for c in self.state.consumers_of(publish.queue) if c.browses]
            there = tuple(sorted(browser.name for browser in browsers))
            for at, entry in enumerate(queue.entries):
                if entry.message.id == publish.message.id:
                    queue.entries[at] = replace(entry, passed_by=there)
        return answer


class _SeesAll(Consumer, frozen=True):
    """A browser that is shown held messages, too."""

    def wants(self, entry: Entry) -> bool:
        """Say whether the entry is of interest and not yet passed; a held one as well."""
        is_ahead = self.name not in entry.passed_by and entry.waits_s == 0
        return is_ahead and matches(entry.message, self.asked.selector)


class ShowsHeld(Different):
    """Shows browsers what consumers hold, too."""

    lawful = replace(everything(), browser_sees="all")

    def handle(self, operation: Operation) -> Answer:
        """Turn each browser that has come into one that sees all."""
        if not isinstance(operation, Consume) or operation.mode != "browse":
            return super().handle(operation)
        answer = self.admit(operation) or self.carry_out(operation)
        for name, consumer in self.state.consumers.items():
            if consumer.browses:
                self.state.consumers[name] = _SeesAll(consumer.asked, consumer.window)
        self.state.rest()
        told, self.state.outstanding = tuple(self.state.outstanding), []
        return Answer(told, answer.error)


class PurgesHeld(Different):
    """Drops what consumers hold when a queue is purged; their windows stay used until settled."""

    lawful = replace(everything(), purge_takes="everything")

    def carry_out(self, operation: Operation) -> Answer:
        """Mark what is held, so that it does not return."""
        answer = super().carry_out(operation)
        if isinstance(operation, Purge) and answer.ok:
            queue = self.state.queues[operation.queue]
            queue.entries = [replace(e, superseded=e.hold is not None) for e in queue.entries]
        return answer


class TellsNoDeletion(Different):
    """Tells consumers nothing when their queue is deleted."""

    lawful = replace(everything(), deletion_told=False)

    def delete(self, delete: Delete) -> Answer:
        """Take back what was told."""
        before = len(self.state.outstanding)
        answer = super().delete(delete)
        del self.state.outstanding[before:]
        return answer


class OrdersByPersistence(Different):
    """Delivers transient messages first, each class in its own order."""

    lawful = replace(everything(), order_within="persistence")

    def publish(self, publish: Publish) -> Answer:
        """Insert persistent messages behind all transient ones."""
        queue = self.state.queues.get(publish.queue)
        if queue is None:
            return super().publish(publish)
        # An arrival finds its place by rank.
        queue.entries.sort(key=lambda entry: entry.rank)
        answer = super().publish(publish)
        queue.entries.sort(key=lambda entry: (entry.message.persistent, entry.rank))
        return answer

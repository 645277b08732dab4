"""Which deliveries a broker still owes, by what it has answered so far.

On most brokers no request is known whose answer comes after all deliveries that were about to be
made. An adapter can then ask whether something must still come: an available message that a
consumer with room would take. As long as there is one, it waits, up to a silence that says that the
broker will not deliver. When there is none, nothing is waited for, so a drain is both fast and
patient. A delivery that comes without being owed is told when it is read; it is just as wrong then.

The file counts by message ids and does not judge: a message that came twice is the oracle's matter.
It may see a delivery as owed that a broker lawfully holds back. The drain then lasts longer, and
that is all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from brokerproof.spec.messages import Credit, selects
from brokerproof.spec.protocol.operations import Consume

if TYPE_CHECKING:
    from brokerproof.spec.messages import Message
    from brokerproof.spec.protocol.operations import Get


class _Held(NamedTuple):
    consumer: str
    queue: str
    message: str


@dataclass
class Owed:
    """The messages of each queue, available or held, and the consumers that may take them.

    Queues, consumers and deliveries have the names of driver protocol 1, and messages their ids.
    A browser is owed what was available when it came.
    """

    _contents: dict[str, dict[str, Message]] = field(default_factory=dict)
    _held: dict[str, _Held] = field(default_factory=dict)
    _consumers: dict[str, Consume] = field(default_factory=dict)
    _unseen: dict[str, set[str]] = field(default_factory=dict)

    def note_published(self, queue: str, message: Message) -> None:
        """Record a message that the broker may have taken."""
        self._contents.setdefault(queue, {})[message.id] = message

    def note_gone(self, queue: str, message: str) -> None:
        """Record that a message is not in a queue: it was refused, or taken away."""
        self._contents.get(queue, {}).pop(message, None)

    def note_consumer(self, operation: Consume) -> None:
        """Record a consumer."""
        self._consumers[operation.consumer] = operation
        if operation.mode == "browse":
            held = self._held_messages()
            self._unseen[operation.consumer] = {
                name for queue in queues_of(operation) for name in self.left_in(queue) - held
            }

    def note_window(self, consumer: str, window: int | None) -> Consume:
        """Record a consumer's new window; return the consume that it would have now."""
        operation = self._consumers[consumer]
        now = msgspec.structs.replace(operation, credit=Credit(messages=window))
        self._consumers[consumer] = now
        return now

    def consume_of(self, consumer: str) -> Consume | None:
        """Return the consume of a consumer with its window of now, or None if it has left."""
        return self._consumers.get(consumer)

    def held_by(self, consumer: str) -> int:
        """Return how many unsettled deliveries a consumer has."""
        return sum(each.consumer == consumer for each in self._held.values())

    def note_delivered(
        self, subscriber: Consume | Get, delivery: str, queue: str, message: str
    ) -> None:
        """Record a delivery; an automatic subscriber takes the message away."""
        consumer = subscriber.consumer if isinstance(subscriber, Consume) else ""
        if subscriber.mode == "browse":
            self._unseen.get(consumer, set()).discard(message)
        elif subscriber.mode == "automatic":
            self.note_gone(queue, message)
        else:
            self._held[delivery] = _Held(consumer, queue, message)

    def note_settled(self, delivery: str, *, returned: bool) -> None:
        """Record that a delivery was settled, and whether the message is available again."""
        held = self._held.pop(delivery, None)
        if held is not None and not returned:
            self.note_gone(held.queue, held.message)

    def note_left(self, consumer: str) -> None:
        """Record that a consumer left; what it holds is settled apart from that."""
        self._consumers.pop(consumer, None)
        self._unseen.pop(consumer, None)

    def note_purged(self, queue: str) -> None:
        """Record a purge: held messages stay, available ones are gone."""
        held = self._held_messages()
        kept = {name: each for name, each in self._contents.get(queue, {}).items() if name in held}
        self._contents[queue] = kept

    def note_deleted(self, queue: str) -> None:
        """Record that a queue has gone with all its messages."""
        self._contents.pop(queue, None)
        self._held = {name: each for name, each in self._held.items() if each.queue != queue}

    def note_crash(self, durable: frozenset[str]) -> None:
        """Record what a crash takes: consumers, and all but persistent messages of `durable`."""
        self._consumers.clear()
        self._unseen.clear()
        self._held.clear()
        self._contents = {
            queue: {name: each for name, each in messages.items() if each.persistent}
            for queue, messages in self._contents.items()
            if queue in durable
        }

    def left_in(self, queue: str) -> frozenset[str]:
        """Return the messages of a queue, held or available."""
        return frozenset(self._contents.get(queue, ()))

    def has_browsers(self) -> bool:
        """Return whether there is a browser."""
        return bool(self._unseen)

    def consumers(self) -> frozenset[str]:
        """Return the consumers with room for an available message that they match."""
        held = self._held_messages()
        return frozenset(name for name in self._consumers if self._is_owed(name, held))

    def _held_messages(self) -> frozenset[str]:
        return frozenset(each.message for each in self._held.values())

    def _is_owed(self, consumer: str, held: frozenset[str]) -> bool:
        operation, unseen = self._consumers[consumer], self._unseen.get(consumer)
        window = operation.credit.messages
        # Only what it holds fills a consumer's window: nothing fills that of the other modes.
        if window is not None and self.held_by(consumer) >= window:
            return False
        return any(
            name not in held
            and (unseen is None or name in unseen)
            and selects(operation.selector, message)
            for queue in queues_of(operation)
            for name, message in self._contents.get(queue, {}).items()
        )


def queues_of(operation: Consume) -> tuple[str, ...]:
    """Return the queues of a consumer."""
    return operation.queues or (operation.queue,)

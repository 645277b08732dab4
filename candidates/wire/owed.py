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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.spec.messages import Message
    from brokerproof.spec.protocol.operations import Consume


@dataclass
class Owed:
    """The messages of each queue, available or held, and the consumers that may take them.

    Queues and consumers have the names of driver protocol 1, and messages their ids.
    """

    _contents: dict[str, dict[str, Message]] = field(default_factory=dict)
    _held: dict[str, dict[str, str]] = field(default_factory=dict)
    _consumers: dict[str, Consume] = field(default_factory=dict)

    def note_published(self, queue: str, message: Message) -> None:
        """Record a message that the broker has taken."""
        self._contents.setdefault(queue, {})[message.id] = message

    def note_consumer(self, operation: Consume) -> None:
        """Record a consumer; browsers are owed nothing here."""
        if operation.mode != "browse":
            self._consumers[operation.consumer] = operation
            self._held[operation.consumer] = {}

    def note_delivered(self, operation: Consume, message: str) -> None:
        """Record a delivery; an automatic consumer takes the message away."""
        if operation.mode == "automatic":
            self._contents.get(operation.queue, {}).pop(message, None)
        elif operation.mode == "acknowledge":
            self._held.setdefault(operation.consumer, {})[message] = operation.queue

    def note_settled(self, consumer: str, message: str, *, returned: bool) -> None:
        """Record that a delivery was settled, and whether the message is available again."""
        queue = self._held.get(consumer, {}).pop(message, None)
        if queue is not None and not returned:
            self._contents.get(queue, {}).pop(message, None)

    def note_left(self, consumer: str) -> None:
        """Record that a consumer left; what it held is available again."""
        self._consumers.pop(consumer, None)
        self._held.pop(consumer, None)

    def note_crash(self, durable: frozenset[str]) -> None:
        """Record what a crash takes: consumers, and all but persistent messages of `durable`."""
        self._consumers.clear()
        self._held.clear()
        self._contents = {
            queue: {name: each for name, each in messages.items() if each.persistent}
            for queue, messages in self._contents.items()
            if queue in durable
        }

    def left_in(self, queue: str) -> frozenset[str]:
        """Return the messages of a queue, held or available."""
        return frozenset(self._contents.get(queue, ()))

    def consumers(self) -> frozenset[str]:
        """Return the consumers with room for an available message that they match."""
        return frozenset(filter(self._is_owed, self._consumers))

    def _is_owed(self, consumer: str) -> bool:
        operation = self._consumers[consumer]
        # An automatic consumer holds nothing, so it has room whatever its window.
        window = operation.credit.messages
        if window is not None and len(self._held[consumer]) >= window:
            return False
        held = {message for messages in self._held.values() for message in messages}
        return any(
            name not in held and _matches(operation, message)
            for name, message in self._contents.get(operation.queue, {}).items()
        )


def _matches(operation: Consume, message: Message) -> bool:
    """Return whether a consumer's selector takes a message (driver protocol 1, rule 23)."""
    properties = message.properties
    return all(
        name in properties
        and isinstance(properties[name], bool) == isinstance(value, bool)
        and properties[name] == value
        for name, value in (operation.selector or {}).items()
    )

"""Names and elements: how what a broker is told and says maps to elements of the contract.

Owns the growing frame (queues, channels, consumers, entries with their rigid properties) and the
deliveries that clients hold. Immutable: every change returns a new book, so that a search can fork
it for nothing. Refuses to judge: it only knows who is who.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from brokerproof.models.contract import Channel, Consumer, Contract, Entry, Mode, Queue
from brokerproof.models.language.model import trace
from brokerproof.models.language.pointwise import Frame, Pointwise, World
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.messages import Fifo, Message, Order, level_of
from brokerproof.spec.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Operation,
    Reject,
    Release,
)

CONTRACT = Pointwise(trace(Contract), Entry)

MODES = {
    "acknowledge": Mode.values.index("ACKNOWLEDGE"),
    "automatic": Mode.values.index("AUTOMATIC"),
    "browse": Mode.values.index("BROWSE"),
}


@dataclass(frozen=True)
class Held:
    """A delivery that a client can settle."""

    entry: int
    channel: str


@dataclass(frozen=True)
class Book:
    """Who is who; every mapping is from a name of the protocol to an element's index."""

    claims: Capabilities
    frame: Frame
    queues: dict[str, int]
    orders: dict[str, Order]
    channels: dict[str, int]
    consumers: dict[str, int]
    queue_of_consumer: dict[str, str]
    channel_of_consumer: dict[str, str]
    getters: dict[tuple[str, str, str], int]
    messages: dict[str, int]
    queue_of_message: dict[str, str]
    held: dict[str, Held]
    settled: dict[str, str]
    doubtful: frozenset[str]
    deliveries: frozenset[str]
    active: frozenset[str]

    @classmethod
    def empty(cls, claims: Capabilities) -> tuple[Book, World]:
        """Return the book and the world right after a reset."""
        in_place = claims.release_position == "original"
        frame, world = CONTRACT.empty({"returns_to_place": int(in_place)})
        nobody: frozenset[str] = frozenset()
        book = cls(
            claims=claims,
            frame=frame,
            queues={},
            orders={},
            channels={},
            consumers={},
            queue_of_consumer={},
            channel_of_consumer={},
            getters={},
            messages={},
            queue_of_message={},
            held={},
            settled={},
            doubtful=nobody,
            deliveries=nobody,
            active=nobody,
        )
        return book, world

    def changed(self, **changes: object) -> Book:
        """Return a book with some fields changed; searches do this for every operation."""
        other = object.__new__(Book)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changes)
        return other

    def with_queue(self, name: str, order: Order) -> Book:
        """Return the book with one more queue."""
        frame = CONTRACT.grow(self.frame, Queue, {"fifo": int(isinstance(order, Fifo))})
        return self.changed(
            frame=frame,
            queues=self.queues | {name: len(self.queues)},
            orders=self.orders | {name: order},
        )

    def with_channel(self, name: str) -> Book:
        """Return the book with this channel, which its first use makes."""
        if name in self.channels:
            return self
        frame = CONTRACT.grow(self.frame, Channel, {})
        return self.changed(frame=frame, channels=self.channels | {name: len(self.channels)})

    def with_consumer(self, consume: Consume) -> Book:
        """Return the book with one more consumer."""
        grown, element = self._with_taker(
            consume.queue, consume.channel, consume.mode, consume.credit.messages
        )
        name = consume.consumer
        return grown.changed(
            consumers=grown.consumers | {name: element},
            queue_of_consumer=grown.queue_of_consumer | {name: consume.queue},
            channel_of_consumer=grown.channel_of_consumer | {name: consume.channel},
            active=grown.active | {name},
        )

    def with_getter(
        self, queue: str, channel: str, mode: Literal["acknowledge", "automatic"]
    ) -> tuple[Book, int]:
        """Return the book with the consumer that gets of this queue, channel and mode are."""
        key = (queue, channel, mode)
        if key in self.getters:
            return self, self.getters[key]
        grown, element = self._with_taker(queue, channel, mode, None)
        return grown.changed(getters=grown.getters | {key: element}), element

    def _with_taker(
        self, queue: str, channel: str, mode: str, limit: int | None
    ) -> tuple[Book, int]:
        book = self.with_channel(channel)
        element = book.frame.sizes[CONTRACT.families.index(Consumer)]
        frame = CONTRACT.grow(
            book.frame,
            Consumer,
            {
                "channel": book.channels[channel],
                "mode": MODES[mode],
                "limited": int(limit is not None),
                "limit": limit or 0,
            },
        )
        theirs = [e for name, e in book.messages.items() if book.queue_of_message[name] == queue]
        return book.changed(frame=CONTRACT.relate(frame, "wants", element, theirs)), element

    def with_message(self, queue: str, message: Message) -> Book:
        """Return the book with one more entry, last of its level among those of its queue."""
        order = self.orders[queue]
        level = level_of(message.priority, order, self.claims.priority_mapping)
        element = len(self.messages)
        levels = self.frame.rows[CONTRACT.row_of("level")]
        siblings = [e for name, e in self.messages.items() if self.queue_of_message[name] == queue]
        frame = CONTRACT.grow(
            self.frame,
            Entry,
            {
                "before": sum(1 << e for e in siblings if levels[e] >= level),
                "home": self.queues[queue],
                "level": level,
                "wants": self._takers_of(queue),
            },
        )
        later = [e for e in siblings if levels[e] < level]
        return self.changed(
            frame=CONTRACT.relate(frame, "before", element, later),
            messages=self.messages | {message.id: element},
            queue_of_message=self.queue_of_message | {message.id: queue},
        )

    def unordered(self, message: str, others: list[str]) -> Book:
        """Return the book in which a message's place among some others is not known."""
        place = CONTRACT.row_of("before")
        element, mask = self.messages[message], sum(1 << self.messages[name] for name in others)
        row = list(self.frame.rows[place])
        row[element] &= ~mask
        for name in others:
            row[self.messages[name]] &= ~(1 << element)
        rows = (*self.frame.rows[:place], tuple(row), *self.frame.rows[place + 1 :])
        return self.changed(frame=Frame(self.frame.sizes, rows))

    def _takers_of(self, queue: str) -> int:
        consumers = (
            e for name, e in self.consumers.items() if self.queue_of_consumer[name] == queue
        )
        getters = (e for (name, _, _), e in self.getters.items() if name == queue)
        return sum(1 << e for e in (*consumers, *getters))

    def with_delivery(self, delivery: str, held: Held | None) -> Book:
        """Return the book with one more delivery told, which a client may hold."""
        deliveries = self.deliveries | {delivery}
        if held is None:
            return self.changed(deliveries=deliveries)
        return self.changed(deliveries=deliveries, held=self.held | {delivery: held})

    def without_delivery(self, delivery: str) -> Book:
        """Return the book in which a delivery has been settled."""
        if delivery not in self.held:
            return self
        message = self.name_of_entry(self.held[delivery].entry)
        return self.changed(
            held={k: v for k, v in self.held.items() if k != delivery},
            settled=self.settled | {message: delivery},
        )

    def with_doubts_about(self, operation: Operation) -> Book:
        """Return the book after an operation that may have happened.

        What it would have settled is neither held nor settled for certain; nobody goes on with it.
        """
        match operation:
            case Acknowledge() | Release() | Reject():
                gone = frozenset((operation.delivery,)) & self.held.keys()
            case CloseChannel(channel=channel):
                gone = frozenset(k for k, v in self.held.items() if v.channel == channel)
            case _:
                gone = frozenset()
        held = {k: v for k, v in self.held.items() if k not in gone}
        return self.changed(held=held, doubtful=self.doubtful | gone)

    def without_consumer(self, consumer: str) -> Book:
        """Return the book in which a consumer has been cancelled; its name stays known."""
        return self.changed(active=self.active - {consumer})

    def without_channel(self, channel: str) -> Book:
        """Return the book in which a channel has closed: its consumers left, all held released."""
        gone = {k: v for k, v in self.held.items() if v.channel == channel}
        return self.changed(
            held={k: v for k, v in self.held.items() if k not in gone},
            settled=self.settled | {self.name_of_entry(v.entry): k for k, v in gone.items()},
            active=frozenset(c for c in self.active if self.channel_of_consumer[c] != channel),
        )

    def entry_of_settled(self, delivery: str) -> int | None:
        """Return the entry whose last settled delivery this is."""
        found = (name for name, settled in self.settled.items() if settled == delivery)
        return next((self.messages[name] for name in found), None)

    def delivery_of(self, message: str) -> str | None:
        """Return the delivery that a client can settle for this message, if there is one."""
        entry = self.messages.get(message)
        return next((name for name, held in self.held.items() if held.entry == entry), None)

    def name_of_entry(self, entry: int) -> str:
        """Return the id of the message that an entry holds."""
        return next(name for name, element in self.messages.items() if element == entry)

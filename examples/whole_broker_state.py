"""The state of the whole broker, and its own steps: show, deliver, close, delete.

Owns all mutable state, the loop that brings it to rest, and windows. Leaves operations to
`whole_broker`, which changes the state and then calls `rest`. Numbers in brackets are the rules of
driver protocol 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from brokerproof.spec.messages import Credit, Message, PriorityMapping
from brokerproof.spec.protocol.answers import (
    Accepted,
    ConsumerClosed,
    Delivered,
    Event,
    QueueDeleted,
)
from brokerproof.spec.protocol.capabilities import Oversize, ReleasePosition
from brokerproof.spec.protocol.operations import Consume, ConsumeMode

if TYPE_CHECKING or __package__:  # `whole_broker` says why
    from .whole_broker_queue import Entry, Hold, Queue, matches
else:
    from whole_broker_queue import Entry, Hold, Queue, matches

UNLIMITED = Credit()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Lawful differences between brokers; `parks_above` is how many messages fill a queue."""

    release_position: ReleasePosition = "original"
    oversize: Oversize = "never"
    priority_mapping: PriorityMapping = "amqp"
    parks_above: int | None = None


class Consumer(msgspec.Struct, frozen=True):
    """A consumer as it subscribed, and its window as it is now."""

    asked: Consume
    window: Credit

    @property
    def name(self) -> str:
        """Its name when it subscribed."""
        return self.asked.consumer

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of its queues."""
        return self.asked.queues or (self.asked.queue,)

    @property
    def browses(self) -> bool:
        """Whether it only looks."""
        return self.asked.mode == "browse"

    def wants(self, entry: Entry) -> bool:
        """Say whether an entry is there for it: available, of interest, and not yet passed."""
        is_ahead = self.name not in entry.passed_by
        return entry.available and is_ahead and matches(entry.message, self.asked.selector)


class State(msgspec.Struct):
    """Queues, consumers, windows of channels, and outstanding events."""

    options: Options
    queues: dict[str, Queue] = msgspec.field(default_factory=dict)
    consumers: dict[str, Consumer] = msgspec.field(default_factory=dict)
    channels: dict[str, Credit] = msgspec.field(default_factory=dict)
    outstanding: list[Event] = msgspec.field(default_factory=list)
    deliveries: int = 0
    is_down: bool = False

    def rest(self) -> None:
        """Let everything happen that can.

        Browsers are shown available entries before consumers take them, and a consumer is closed
        only after all possible deliveries.
        """
        while self.take_parked() or self.show() or self.give_round() or self.close_one():
            pass

    def take_parked(self) -> bool:
        """Take the first parked message for which there is room."""
        for queue in self.queues.values():
            if queue.parked and self.has_place(queue):
                entry = queue.parked.pop(0)
                self.outstanding.append(Accepted(message=entry.message.id))
                queue.add(entry)
                return True
        return False

    def has_place(self, queue: Queue) -> bool:
        """Say whether a queue may hold one more message."""
        return self.options.parks_above is None or queue.count() < self.options.parks_above

    def show(self) -> bool:
        """Move each browser's place on, and show it what is available there (9)."""
        before = self.deliveries
        for browser in self.consumers.values():
            if browser.browses and not self.is_paused(browser):
                for name in browser.queues:
                    self.show_queue(browser, self.queues[name])
        return self.deliveries != before

    def show_queue(self, browser: Consumer, queue: Queue) -> None:
        """Move a browser's place to the end of a queue, or to a message without room (5).

        The place also passes acquired entries: a message that returns behind it stays unseen.
        """
        for at, entry in enumerate(queue.entries):
            if browser.name in entry.passed_by:
                continue
            if browser.wants(entry):
                if not self.has_room(browser, entry.message):
                    break
                self.tell_delivery(queue, entry, browser.name)
            passed_by = tuple(sorted((*entry.passed_by, browser.name)))
            queue.entries[at] = replace(entry, passed_by=passed_by)

    def give_round(self) -> bool:
        """Give one message to each consumer of the highest priority with one that can take one.

        A consumer gets nothing while one of higher priority could (20). Equals take turns, which is
        not required (40).
        """
        subscribers = [consumer for consumer in self.consumers.values() if not consumer.browses]
        subscribers.sort(key=lambda consumer: -consumer.asked.priority)
        above: list[Consumer] = []
        for _, group in groupby(subscribers, key=lambda consumer: consumer.asked.priority):
            equals, given = list(group), False
            for subscriber in equals:
                # A consumer of higher priority may have waited at this message, and can go on
                # now.
                if given and any(self.next_for(other) for other in above):
                    return True
                if (found := self.next_for(subscriber)) is not None:
                    self.give(
                        *found, subscriber.name, subscriber.asked.channel, subscriber.asked.mode
                    )
                    given = True
            if given:
                return True
            above += equals
        return False

    def next_for(self, subscriber: Consumer) -> tuple[Queue, int] | None:
        """Return the place of a consumer's next message, taking its queues in turn."""
        for name in subscriber.queues:
            queue = self.queues[name]
            at = next((i for i, entry in enumerate(queue.entries) if subscriber.wants(entry)), None)
            # A consumer waits at a message that does not fit, and gets none behind it (5).
            # Messages of another queue are not behind it.
            if at is not None and self.has_room(subscriber, queue.entries[at].message):
                return queue, at
        return None

    def give(
        self, queue: Queue, at: int, subscriber: str | None, channel: str, mode: ConsumeMode
    ) -> None:
        """Let a consumer or a get acquire an entry, or take it for good."""
        entry = queue.entries[at]
        number = self.tell_delivery(queue, entry, subscriber)
        if mode == "acknowledge":
            queue.entries[at] = replace(entry, hold=Hold(number, subscriber, channel))
        else:
            del queue.entries[at]

    def tell_delivery(self, queue: Queue, entry: Entry, subscriber: str | None) -> int:
        """Note the event of a delivery and return its number, unique until reset (24)."""
        number = self.deliveries
        self.deliveries += 1
        told = Delivered(
            delivery=Hold(number, subscriber, "").delivery,
            consumer=subscriber,
            queue=queue.name,
            message=entry.message.id,
            redelivered=entry.redelivered,
        )
        self.outstanding.append(told)
        return number

    def close_one(self) -> bool:
        """Close an auto-close consumer with nothing left ahead of its place (6)."""
        for consumer in self.consumers.values():
            if consumer.asked.auto_close and not any(
                consumer.wants(entry)
                for name in consumer.queues
                for entry in self.queues[name].entries
            ):
                self.outstanding.append(ConsumerClosed(consumer=consumer.name))
                self.drop_unused(self.leave([consumer]))
                return True
        return False

    def leave(self, consumers: Iterable[Consumer]) -> list[str]:
        """Remove consumers, but not their deliveries; return the queues that they leave."""
        left: list[str] = []
        for consumer in consumers:
            del self.consumers[consumer.name]
            for name in consumer.queues:
                if name in self.queues:  # not if it is being deleted
                    self.queues[name].forget(consumer.name)
                    left.append(name)
        return left

    def drop_unused(self, left: Iterable[str]) -> None:
        """Delete the auto-delete queues that their last consumer has left (7)."""
        for name in dict.fromkeys(left):
            if self.queues[name].declared.auto_delete and not self.consumers_of(name):
                del self.queues[name]  # what was held goes with it (17)
                self.outstanding.append(QueueDeleted(queue=name))

    def consumers_of(self, queue: str) -> list[Consumer]:
        """Return the consumers of a queue; browsers count, a get is none (7)."""
        return [consumer for consumer in self.consumers.values() if queue in consumer.queues]

    # Windows.

    def is_paused(self, consumer: Consumer) -> bool:
        """Say whether a window of 0 stops a consumer, regardless of its mode and deliveries (3)."""
        windows = (consumer.window, self.channels.get(consumer.asked.channel, UNLIMITED))
        return any(0 in (window.messages, window.bytes) for window in windows)

    def has_room(self, consumer: Consumer, message: Message) -> bool:
        """Say whether a consumer's window and that of its channel both let a message through."""
        shared = self.channels.get(consumer.asked.channel, UNLIMITED)
        if consumer.window == shared == UNLIMITED:
            return True
        channel = consumer.asked.channel
        fellows = [c.name for c in self.consumers.values() if c.asked.channel == channel]
        return (
            not self.is_paused(consumer)
            and self.lets_through(consumer.window, consumer, [consumer.name], message)
            and self.lets_through(shared, consumer, fellows, message)
        )

    def lets_through(
        self, window: Credit, consumer: Consumer, sharers: list[str], message: Message
    ) -> bool:
        """Say whether a window has room for a message beside its sharers' deliveries (5, 22).

        Browsers and automatic consumers fill no window, their own or their channel's (3).
        Deliveries without a consumer fill none: of a get (19), or of a consumer that has left (32).
        """
        sizes: list[int] = []
        if consumer.asked.mode == "acknowledge" and window != UNLIMITED:
            sizes = [
                entry.message.size for entry in self.held() if hold_of(entry).consumer in sharers
            ]
        if window.messages is not None and len(sizes) >= window.messages:
            return False
        if window.bytes is None or sum(sizes) + message.size <= window.bytes:
            return True
        return self.options.oversize == "when_idle" and not sizes

    def held(self) -> list[Entry]:
        """Return all acquired entries, in the order of delivery."""
        entries = [e for queue in self.queues.values() for e in queue.entries if e.hold is not None]
        return sorted(entries, key=lambda entry: hold_of(entry).number)

    # For searches that copy a broker and compare two states.

    def copy(self) -> State:
        """Return an independent copy; records never change, so only what contains them is new."""
        return State(
            self.options,
            {name: queue.copy() for name, queue in self.queues.items()},
            self.consumers.copy(),
            self.channels.copy(),
            self.outstanding.copy(),
            self.deliveries,
            self.is_down,
        )

    def fingerprint(self) -> bytes:
        """Return a value that is equal for states that behave alike up to names of deliveries.

        Of deliveries only the order counts, in which a closing channel releases them. Queues and
        consumers are in the order of their creation, in which the loops visit them.
        """
        order = {hold_of(entry).number: number for number, entry in enumerate(self.held())}

        def renumbered(entry: Entry) -> Entry:
            hold = entry.hold
            return replace(entry, hold=hold and replace(hold, number=order[hold.number]))

        queues = [
            (queue.declared, [renumbered(entry) for entry in queue.entries], queue.parked)
            for queue in self.queues.values()
        ]
        consumers = list(self.consumers.values())
        channels = sorted(self.channels.items(), key=lambda item: item[0])
        return msgspec.msgpack.encode((queues, consumers, channels, self.outstanding, self.is_down))


def hold_of(entry: Entry) -> Hold:
    """Return the holder of an acquired entry."""
    assert entry.hold is not None
    return entry.hold

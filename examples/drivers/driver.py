"""A driver in Python, written from the protocol page alone with the standard library.

It reads one request a line from standard input, answers each with one line on standard output, and
ends when its input does. The broker behind it is a small one in memory:

    brokerproof check "exec:python examples/drivers/driver.py"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

CAPABILITIES = {
    "orders": ["fifo", "priority"],
    "priority_levels": 10,
    "priority_mapping": "amqp",
    "modes": ["acknowledge", "automatic", "browse"],
    "credit": ["messages"],
    "get": True,
    "browse": True,
    "release_position": "original",
}

Fields = dict[str, Any]


class Failure(Exception):
    """The operation did not happen; the first argument is the code of the error."""


@dataclass(eq=False)
class Entry:
    """A message in its queue, until it is settled."""

    message: str
    level: int
    held: bool = False
    redelivered: bool = False


@dataclass(eq=False)
class Queue:
    """Entries in the order of delivery."""

    name: str
    declared: Fields
    entries: list[Entry] = field(default_factory=list)

    def free(self) -> Entry | None:
        """Return the first available entry."""
        return next((entry for entry in self.entries if not entry.held), None)


@dataclass(eq=False)
class Consumer:
    """A consumer or browser of a queue; a get is a temporary one without a name."""

    name: str | None
    channel: str
    queue: Queue
    mode: str
    window: int | None = None
    passed: set[str] = field(default_factory=set)


class Broker:
    """One method for each operation; deliveries follow each change."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.consumers: dict[str, Consumer] = {}
        self.held: dict[str, tuple[Consumer, Entry]] = {}
        self.count = 0
        self.events: list[Fields] = []

    def handle(self, request: Fields) -> Fields:
        """Carry out a request and return the answer to it."""
        number, name = request["id"], request["op"]
        if name == "hello":
            told = {"name": "example-python", "version": "1", "capabilities": CAPABILITIES}
            return {"id": number, "ok": True, **told}
        self.events = []
        answer: Fields = {"id": number, "ok": True}
        try:
            getattr(self, f"do_{name}", unknown)(request)
        except Failure as failure:
            code, message = failure.args
            answer |= {"ok": False, "error": {"code": code, "message": message}}
        self.hand_out()
        return answer | {"events": self.events}

    # The operations.

    def do_reset(self, _: Fields) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def do_drain(self, _: Fields) -> None:
        """Do nothing, since no event is ever outstanding."""

    def do_declare(self, request: Fields) -> None:
        """Make a queue; the same again changes nothing."""
        order = request["order"]
        if (
            request["durable"]
            or request["auto_delete"]
            or order["kind"] not in ("fifo", "priority")
        ):
            raise Failure("unsupported", "neither durable nor auto-delete, fifo or priority only")
        if order["kind"] == "priority" and not 1 <= order["levels"] <= 10:
            raise Failure("unsupported", "1 to 10 levels")
        queue = self.queues.setdefault(request["queue"], Queue(request["queue"], order))
        if queue.declared != order:
            raise Failure("refused", f"{queue.name} has another order")

    def do_publish(self, request: Fields) -> None:
        """Put a message behind all others of its level."""
        queue, message = self.queue(request), request["message"]
        if not 0 <= message["priority"] <= 9:
            raise Failure("refused", "priorities are 0 to 9")
        level = level_of(message["priority"], queue.declared)
        place = sum(entry.level >= level for entry in queue.entries)
        queue.entries.insert(place, Entry(message["id"], level))

    def do_consume(self, request: Fields) -> None:
        """Subscribe."""
        queue, name, credit = self.queue(request), request["consumer"], request["credit"]
        if request["selector"] is not None or request["priority"] or request["auto_close"]:
            raise Failure("unsupported", "no selectors, consumer priorities or auto-close")
        if credit["bytes"] is not None:
            raise Failure("unsupported", "no windows of bytes")
        if name in self.consumers:
            raise Failure("refused", f"{name} is in use")
        window, mode = credit["messages"], request["mode"]
        self.consumers[name] = Consumer(name, request["channel"], queue, mode, window)

    def do_credit(self, request: Fields) -> None:
        """Replace a consumer's window."""
        if request["channel"] is not None or request["bytes"] is not None:
            raise Failure("unsupported", "no windows of channels, and none of bytes")
        if request["consumer"] not in self.consumers:
            raise Failure("refused", f"no consumer {request['consumer']}")
        self.consumers[request["consumer"]].window = request["messages"]

    def do_cancel(self, request: Fields) -> None:
        """Let a consumer leave; its deliveries stay with its channel."""
        if self.consumers.pop(request["consumer"], None) is None:
            raise Failure("refused", f"no consumer {request['consumer']}")

    def do_get(self, request: Fields) -> None:
        """Give the first free message, if there is one."""
        queue = self.queue(request)
        entry = queue.free()
        if entry is not None:
            self.give(Consumer(None, request["channel"], queue, request["mode"]), entry)

    def do_acknowledge(self, request: Fields) -> None:
        """Settle: the message is done with."""
        subscriber, entry = self.settled(request)
        subscriber.queue.entries.remove(entry)

    do_reject = do_acknowledge

    def do_release(self, request: Fields) -> None:
        """Settle: the message is free again, at the place that it never lost."""
        _, entry = self.settled(request)
        entry.held, entry.redelivered = False, True

    def do_close_channel(self, request: Fields) -> None:
        """Let all consumers of a channel leave, then release its deliveries."""
        channel = request["channel"]
        self.consumers = {k: c for k, c in self.consumers.items() if c.channel != channel}
        for delivery in [
            k for k, (subscriber, _) in self.held.items() if subscriber.channel == channel
        ]:
            self.do_release({"delivery": delivery})

    def do_purge(self, request: Fields) -> None:
        """Drop the free messages."""
        queue = self.queue(request)
        queue.entries = [entry for entry in queue.entries if entry.held]

    def do_delete(self, request: Fields) -> None:
        """Drop a queue, and send its consumers an event of that."""
        queue = self.queues.pop(self.queue(request).name)
        for name in [k for k, consumer in self.consumers.items() if consumer.queue is queue]:
            del self.consumers[name]
            self.events.append({"event": "consumer_closed", "consumer": name})
        self.held = {k: v for k, v in self.held.items() if v[0].queue is not queue}

    # Shared by the operations.

    def queue(self, request: Fields) -> Queue:
        """Return the queue that a request is about."""
        if request["queue"] not in self.queues:
            raise Failure("refused", f"no queue {request['queue']}")
        return self.queues[request["queue"]]

    def settled(self, request: Fields) -> tuple[Consumer, Entry]:
        """Forget a delivery, and return its holder and entry."""
        if request["delivery"] not in self.held:
            raise Failure("refused", f"no delivery {request['delivery']}")
        return self.held.pop(request["delivery"])

    def hand_out(self) -> None:
        """Show browsers entries not passed yet, then give consumers one each, in turn."""
        for browser in self.ready():
            if browser.mode == "browse":
                for entry in browser.queue.entries:
                    if entry.message not in browser.passed and not entry.held:
                        self.tell(browser, entry)
                    browser.passed.add(entry.message)
        before = -1
        while len(self.events) != before:
            before = len(self.events)
            for subscriber in self.ready():
                free = subscriber.queue.free()
                if subscriber.mode != "browse" and free is not None:
                    self.give(subscriber, free)

    def ready(self) -> Iterator[Consumer]:
        """Yield the consumers whose windows have room; only mode `acknowledge` fills one."""
        for consumer in self.consumers.values():
            held = sum(subscriber is consumer for subscriber, _ in self.held.values())
            if consumer.window is None or held < consumer.window:
                yield consumer

    def give(self, subscriber: Consumer, entry: Entry) -> None:
        """Let a consumer acquire a message, or take it for good."""
        delivery = self.tell(subscriber, entry)
        if subscriber.mode == "acknowledge":
            entry.held = True
            self.held[delivery] = (subscriber, entry)
        else:
            subscriber.queue.entries.remove(entry)

    def tell(self, consumer: Consumer, entry: Entry) -> str:
        """Note the event of a delivery and return its id."""
        self.count += 1
        delivery = f"d{self.count}"
        self.events.append(
            {
                "event": "delivered",
                "delivery": delivery,
                "consumer": consumer.name,
                "queue": consumer.queue.name,
                "message": entry.message,
                "redelivered": entry.redelivered,
            }
        )
        return delivery


def unknown(request: Fields) -> None:
    """Raise the error for an unknown operation."""
    raise Failure("unsupported", f"no {request['op']}")


def level_of(priority: int, order: Fields) -> int:
    """Return the level of a priority: levels lie around the default priority, 4."""
    if order["kind"] == "fifo":
        return 0
    levels: int = order["levels"]
    return min(max(priority - (5 - (levels + 1) // 2), 0), levels - 1)


def main() -> None:
    """Answer until the input ends."""
    broker = Broker()
    for line in sys.stdin.buffer:
        answer = json.dumps(broker.handle(json.loads(line)))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

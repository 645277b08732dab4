"""Measure memory and speed of ActiveMQ's queue under a limit of memory.

Publishes 200,000 persistent messages of 100 bytes to the reference `activemq-cursor` under a limit
of 64 KiB, and then has one consumer take and acknowledge them all. Prints the number of messages in
memory over time (each counts 1,124 bytes; least and most of each stretch), the peak usage, and
messages per second of processor time; for comparison also the rate of RabbitMQ's paging queue, with
room for as many messages, on the same operations in the same run. Both brokers use a simulated
disk. Exit status 1 if the limit was exceeded. Run it on a quiet machine:

    python benchmarks/cursor_memory.py [MESSAGES]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerproof.reference import make
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import Acknowledge, Consume, Declare, Publish, Reset

if TYPE_CHECKING:
    from brokerproof.reference import Broker

LIMIT_BYTES = 64 * 1024
BODY_BYTES = 100
COUNTED_BYTES = 1024 + BODY_BYTES
PREFETCH = 1000
COLUMNS = 60
ROWS = 24


def go_through(broker: Broker, messages: int, look: Callable[[], None]) -> tuple[float, float]:
    """Publish and consume so many messages; return the processor seconds of each half."""
    broker.handle(Reset())
    broker.handle(Declare(queue="q", order=Fifo(), durable=True))
    began = time.process_time()
    for number in range(messages):
        message = Message(id=str(number), size=BODY_BYTES, persistent=True)
        broker.handle(Publish(queue="q", message=message))
        look()
    published = time.process_time()
    answer = broker.handle(Consume(channel="c", queue="q", consumer="c", credit=Credit(PREFETCH)))
    waiting = list(answer.events)
    for expected in range(messages):
        delivered = waiting[expected]
        assert isinstance(delivered, Delivered)
        assert delivered.message == str(expected), "messages come in their order"
        waiting += broker.handle(Acknowledge(delivery=delivered.delivery)).events
        look()
    return published - began, time.process_time() - published


def curve(used: list[int]) -> str:
    """Return the number of messages in memory as lines of bars, from the first to the last."""
    step = max(1, len(used) // ROWS)
    most = LIMIT_BYTES // COUNTED_BYTES
    lines = []
    for at in range(0, len(used), step):
        least, there = (each(used[at : at + step]) // COUNTED_BYTES for each in (min, max))
        bar = "#" * round(least * COLUMNS / most)
        bar += "-" * (round(there * COLUMNS / most) - len(bar))
        lines.append(f"{at:>9,} {bar:<{COLUMNS}}| {least} to {there} of {most}")
    return "\n".join(lines)


def main(messages: int) -> int:
    """Run both, print the measurements, and return 1 if the limit was exceeded."""
    broker = make(f"activemq-cursor?memory={LIMIT_BYTES}")
    used: list[int] = []

    def look() -> None:
        queue = broker.queues["q"]
        assert isinstance(queue, CursorQueue)
        used.append(queue.memory.usage.used)

    publishing, consuming = go_through(broker, messages, look)
    print(f"messages in memory, at each of {len(used):,} operations")
    print(curve(used))
    print(f"bytes used at most: {max(used):,} of {LIMIT_BYTES:,}")
    peer = make(f"rabbitmq-paging?target={LIMIT_BYTES // COUNTED_BYTES}")
    peer_publishing, peer_consuming = go_through(peer, messages, lambda: None)
    both, peer_both = publishing + consuming, peer_publishing + peer_consuming
    for name, first, second in (
        ("activemq-cursor", publishing, consuming),
        ("rabbitmq-paging", peer_publishing, peer_consuming),
    ):
        print(
            f"{name}: {messages:,} messages in {first + second:.1f} s of processor "
            f"(published in {first:.1f}, consumed in {second:.1f}), "
            f"{messages / (first + second):,.0f} a second"
        )
    print(f"ratio of the rates: {peer_both / both:.2f}")
    return 0 if max(used) <= LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000))

"""Clients of queues of ActiveMQ, of all sizes, that are looked at after each step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TypeAlias

from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.messages import Fifo, Message, Order
from tests.models.walking_client import Client, Habits
from tests.models.walking_client import Look as AnyLook

SIZES = (
    "memory=1100&page=1&depth=1&word=2",
    "memory=2200&page=2&depth=1&word=2",
    "memory=3300&page=2&depth=2&word=2&lag=0",
    "memory=2200&page=4&depth=1&word=2&water_mark=100",
    "memory=0&page=1&depth=0&word=1",
)

Look: TypeAlias = AnyLook[CursorQueueView]


def walk(
    address: str, seed: int, order: Order | None = None, *, all_kinds: bool = False
) -> Iterator[Look]:
    """Yield the steps of a broker; without `all_kinds`, only such as the model speaks of."""

    def draws(drawn: random.Random, name: str) -> Message:
        persistent = not all_kinds or drawn.random() < 0.6
        priority, size = drawn.randrange(10), drawn.choice((1, 1, 1, 1500))
        return Message(id=name, priority=priority, persistent=persistent, size=size)

    habits = Habits(draws, windows=(0, 1, 2, None), purges=all_kinds, mapping="amqp")
    return Client(address, order or Fifo(), seed, habits).walk(CursorQueueView)


def looks(seeds: int = 3, *, all_kinds: bool = False) -> Iterator[Look]:
    """Yield steps of brokers of all sizes."""
    for sizes in SIZES:
        for seed in range(seeds):
            yield from walk(f"activemq-cursor?{sizes}", seed, all_kinds=all_kinds)

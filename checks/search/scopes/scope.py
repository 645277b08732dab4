"""Scopes: the small worlds that the exhaustive stage searches whole.

A scope says how many messages, channels and consumers there are, and of which kinds. `moves` lists
every move that is possible now, in canonical names: the next message has the next number, and so
has a new channel. So runs that differ only in names are one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from brokerproof.checks.search.scopes.invalid_operations import NOWHERE, invalid_operations
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Move, Settle, SettlementName
from brokerproof.models.contract.core import Queue
from brokerproof.spec.messages import Credit, Message, Order, PropertyValue
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    GetMode,
    Overflow,
    Publish,
    Purge,
    Reset,
    Restart,
    SetCredit,
)


def can_settle_by(how: SettlementName, claims: Capabilities) -> bool:
    """Whether a candidate claims to settle in this way."""
    return {"release": claims.release == "each", "reject": claims.reject}.get(how, True)


Properties = tuple[tuple[str, PropertyValue], ...]

RED: Properties = (("colour", "red"),)
BLUE: Properties = (("colour", "blue"),)
"""Properties of messages, and the selectors that want them."""


@dataclass(frozen=True)
class Kind:
    """A kind of consumer that may subscribe: its mode, its windows and its options."""

    mode: ConsumeMode
    credit: int | None = None
    bytes: int | None = None
    selector: Properties | None = None
    priority: int = 0
    auto_close: bool = False
    exclusive: bool = False
    every_queue: bool = False

    def with_options_of(self, other: Kind) -> Kind:
        """Return this kind with the other one's options too, if they have one mode."""
        if other.mode != self.mode:
            return self
        plain, own = Kind(other.mode), vars(self)
        return Kind(**{k: v if v != vars(plain)[k] else own[k] for k, v in vars(other).items()})

    def consume(
        self, channel: str, queue: str, consumer: str, queues: tuple[str, ...] = ()
    ) -> Consume:
        """Return the operation that subscribes one, to several `queues` if they are given."""
        return Consume(
            channel=channel,
            queue=queue,
            consumer=consumer,
            mode=self.mode,
            credit=Credit(self.credit, self.bytes),
            selector=None if self.selector is None else dict(self.selector),
            priority=self.priority,
            auto_close=self.auto_close,
            queues=queues,
            exclusive=self.exclusive,
        )


@dataclass(frozen=True)
class Payload:
    """A kind of message that may be published."""

    priority: int = 4
    size: int = 1
    persistent: bool = False
    properties: Properties = ()
    group: str | None = None
    not_before_s: int | None = None
    expires_s: int | None = None

    def publish(self, queue: str, name: str) -> Publish:
        """Return the operation that publishes one."""
        message = Message(
            id=name,
            priority=self.priority,
            size=self.size,
            persistent=self.persistent,
            properties=dict(self.properties),
            group=self.group,
        )
        return Publish(
            queue=queue,
            message=message,
            not_before_s=self.not_before_s,
            expires_s=self.expires_s,
        )


def _with_keys(*keys: int | str) -> tuple[Payload, ...]:
    return tuple(Payload(properties=(("k", key),)) for key in keys)


NUMBERS, TEXTS = _with_keys(2, 10), _with_keys("2", "10")
"""Messages with keys that sort in one order as numbers, and in the other one as texts."""


@dataclass(frozen=True)
class Scope:
    """A small world; every sequence of its moves, of any length, is a behaviour to be judged.

    `windows` and `pools` replace the window of a consumer or a channel; `seconds` is how far the
    clock may move, in steps of `steps`. `invalid` adds invalid operations, and some without effect
    (`checks/search/scopes/invalid_operations.py`). `filled` publishes all messages before any other
    move, and `in_turn` gives each message the next payload. `resets` adds resets of the broker.
    `cuts` makes each move, but for what fills a queue, also with the power lost at each of its
    changes to the disk. The last queue has a limit of `deliveries` and, if the scope `buries`, the
    first queue for its dead letters. `delays` are those of releases.
    """

    name: str
    orders: tuple[Order, ...]
    messages: int
    payloads: tuple[Payload, ...] = (Payload(),)
    channels: int = 1
    consumers: int = 0
    kinds: tuple[Kind, ...] = ()
    gets: tuple[GetMode, ...] = ()
    settlements: tuple[SettlementName, ...] = ("acknowledge", "release")
    cancels: bool = False
    closes: bool = False
    settles_again: bool = False
    queues: int = 1
    durable: tuple[bool, ...] = (False,)
    auto_delete: tuple[bool, ...] = (False,)
    windows: tuple[Credit, ...] = ()
    pools: tuple[Credit, ...] = ()
    purges: bool = False
    deletes: bool = False
    flushes: bool = False
    seconds: int = 0
    steps: tuple[int, ...] = (1,)
    crashes: bool = False
    invalid: bool = False
    filled: bool = False
    in_turn: bool = False
    resets: bool = False
    cuts: bool = False
    lease_s: int | None = None
    deliveries: int | None = None
    buries: bool = False
    delays: tuple[int, ...] = ()
    length: int | None = None
    overflow: Overflow | None = None

    def as_claimed(self, claims: Capabilities) -> Scope:
        """Return the scope with the settlements that are claimed.

        Where no single message can be released, consumers give messages back by leaving.
        """
        settlements = tuple(how for how in self.settlements if can_settle_by(how, claims))
        if settlements == self.settlements:
            return self
        if "release" not in self.settlements or claims.release == "each":
            return replace(self, settlements=settlements)
        cancels = self.cancels or (claims.cancel == "returns" and bool(self.kinds))
        return replace(self, settlements=settlements, closes=True, cancels=cancels)

    def cuts_off(self, move: Move) -> bool:
        """Whether a move is also made with the power lost meanwhile."""
        return self.cuts and not (self.filled and isinstance(move, Declare | Publish))

    def moves(self, bindings: Bindings) -> Iterator[Move]:
        """Yield every move that is possible now, always in the same order."""
        if self.resets and (bindings.declared or bindings.down):
            yield Reset()
        if bindings.down:
            yield Restart()
            if self.invalid:
                yield from invalid_operations(bindings)
            return
        queues = list(bindings.queues)
        if len(queues) < self.queues and self._may_declare(bindings):
            yield from self._declarations(bindings)
            if not self.deletes and True not in self.auto_delete:
                return
        fills = self.filled and bindings.names_used() < self.messages
        if not fills:
            yield Drain()
        if bindings.names_used() < self.messages:
            number = bindings.names_used()
            name, turn = f"m{number}", number % len(self.payloads)
            for queue in queues:
                for payload in self.payloads[turn : turn + 1] if self.in_turn else self.payloads:
                    yield payload.publish(queue, name)
        if fills:
            return
        yield from self._of_subscribers(bindings)
        yield from self._settlements(bindings)
        yield from self._endings(bindings)
        yield from self._of_few(bindings)
        if self.invalid:
            gone = (f"q{n}" for n in range(self.queues) if f"q{n}" not in bindings.queues)
            yield from invalid_operations(bindings, next(gone, NOWHERE))

    def _may_declare(self, bindings: Bindings) -> bool:
        """A queue that has gone may be declared once more; the number of queues is bounded."""
        ever = bindings.frame.sizes[bindings.contract.families.index(Queue)]
        return ever < self.queues + (self.deletes or True in self.auto_delete or self.crashes)

    def _declarations(self, bindings: Bindings) -> Iterator[Declare]:
        name = next(f"q{n}" for n in range(self.queues) if f"q{n}" not in bindings.queues)
        first = next(iter(bindings.declared.values()), None)
        is_last = len(bindings.queues) + 1 == self.queues
        for order in self.orders if first is None else (first.order,):
            for durable, auto_delete in product(self.durable, self.auto_delete):
                yield Declare(
                    queue=name,
                    order=order,
                    durable=durable,
                    auto_delete=auto_delete,
                    lease_s=self.lease_s,
                    deliveries=self.deliveries if is_last else None,
                    dead_letters=first.queue if self.buries and first and is_last else None,
                    length=self.length,
                    overflow=self.overflow,
                )

    def _channels(self, bindings: Bindings) -> list[str]:
        """Return the channels that were used, and one more."""
        return [f"ch{i}" for i in range(min(len(bindings.channels) + 1, self.channels))]

    def _of_subscribers(self, bindings: Bindings) -> Iterator[Move]:
        channels = self._channels(bindings)
        queues, consumer = list(bindings.queues), f"c{len(bindings.consumers)}"
        for channel in channels:
            for queue in queues:
                for mode in self.gets:
                    yield Get(channel=channel, queue=queue, mode=mode)
                if len(bindings.consumers) < self.consumers:
                    for kind in self.kinds:
                        if not kind.every_queue or queue == queues[0]:
                            several = tuple(bindings.queues) if kind.every_queue else ()
                            yield kind.consume(channel, queue, consumer, several)

    def _settlements(self, bindings: Bindings) -> Iterator[Move]:
        for entry in sorted(held.entry for held in bindings.held.values()):
            for how in self.settlements:
                yield Settle(how=how, message=bindings.name_of_entry(entry))
            for delay_s in self.delays:
                message = bindings.name_of_entry(entry)
                yield Settle(how="release", message=message, delay_s=delay_s)
        if self.settles_again:
            for message in sorted(bindings.settled):
                for how in self.settlements:
                    yield Settle(how=how, message=message, again=True)

    def _endings(self, bindings: Bindings) -> Iterator[Move]:
        if self.cancels:
            for consumer in sorted(bindings.active):
                yield Cancel(consumer=consumer)
        if self.closes:
            for channel in bindings.channels:
                yield CloseChannel(channel=channel)
        for queue in bindings.queues:
            if self.purges:
                yield Purge(queue=queue)
            if self.deletes and may_be_deleted(queue, bindings):
                yield Delete(queue=queue)

    def _of_few(self, bindings: Bindings) -> Iterator[Move]:
        """Yield the moves that only few brokers claim."""
        for consumer in sorted(bindings.active):
            for window in self.windows:
                yield SetCredit(consumer=consumer, messages=window.messages, bytes=window.bytes)
            if self.flushes:
                yield Flush(consumer=consumer)
        for channel in self._channels(bindings):
            for window in self.pools:
                yield SetCredit(channel=channel, messages=window.messages, bytes=window.bytes)
        for step in self.steps:
            if bindings.now + step <= self.seconds:
                yield Advance(seconds=step)
        if self.crashes:
            yield Crash()


def may_be_deleted(queue: str, bindings: Bindings) -> bool:
    """Return whether the protocol says what a deletion of the queue does to its consumers.

    Without `deletion_told` it does not for a consumer that reads other queues too (rule 65).
    """
    there = (bindings.consumers[name] for name in bindings.subscribed_to(queue))
    return bindings.claims.deletion_told or all(len(each.homes) == 1 for each in there)

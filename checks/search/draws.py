"""The moves of a stateful example, drawn as plain numbers from the kinds that are possible now.

Draws never depend on the broker: a kind and two numbers are drawn, the numbers modulo the choices.
So an example can be shrunk, and replayed on a broker that answers differently the second time. The
kinds of an example are drawn too (swarm testing, Groce and others 2012): a run without any purge or
any cancel reaches states that a mixture of everything hardly reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from brokerproof.checks.search.scopes.invalid_operations import invalid_operations
from brokerproof.checks.search.scopes.scope import (
    BLUE,
    RED,
    Kind,
    Payload,
    Properties,
    can_settle_by,
    may_be_deleted,
)
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Cut, Move, Settle, SettlementName
from brokerproof.spec.messages import Fifo, LastValue, Order, Priority, Sorted, Unordered
from brokerproof.spec.protocol.candidate import Unsynced
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Advance,
    Cancel,
    CloseChannel,
    Crash,
    Delete,
    Drain,
    Flush,
    Get,
    Purge,
    Restart,
    SetCredit,
)

MESSAGES_MAX = 40
MANY = 12
"""More messages at once than a delivery slice of the documents holds (ten)."""
CONSUMERS_MAX = 6
CHANGES_MAX = 6
"""During a drawn move the power goes at one of so many changes to the disk."""
CHANNELS = ("ch0", "ch1", "ch2")

Mandatory: TypeAlias = Literal["publish", "consume", "get", "settle", "drain"]
Swarmed: TypeAlias = Literal[
    "publish many",
    "settle again",
    "cancel",
    "close_channel",
    "purge",
    "delete",
    "credit",
    "pool",
    "flush",
    "advance",
    "crash",
    "invalid",
]
KindOfMove: TypeAlias = Mandatory | Swarmed
OPTIONAL: tuple[Swarmed, ...] = get_args(Swarmed)

# How often each kind is drawn. Queues must fill before most other faults can be seen.
_WEIGHTS: dict[KindOfMove, int] = {
    "publish": 6,
    "settle": 5,
    "drain": 3,
    "get": 2,
    "consume": 2,
    **dict.fromkeys(OPTIONAL, 1),
}
_SETTLEMENTS: tuple[SettlementName, ...] = ("release", "acknowledge", "release", "reject")
_SIZES = (1, 2, 0, 5)
_WINDOWS = (0, 1, 2, 4, None)
_VALUES = (1, 2, 10)


def kinds_drawn(swarm: int, claims: Capabilities) -> tuple[KindOfMove, ...]:
    """Return the kinds that an example draws from, each repeated by its weight."""
    claimed: dict[Swarmed, bool] = {
        "purge": claims.purge,
        "delete": claims.delete,
        "credit": "change" in claims.credit,
        "pool": "channel" in claims.credit,
        "flush": claims.flush,
        "advance": claims.clock,
        "crash": claims.durable,
    }
    chosen: list[KindOfMove] = [*get_args(Mandatory)]
    chosen += [
        kind
        for number, kind in enumerate(OPTIONAL)
        if swarm >> number & 1 and claimed.get(kind, True)
    ]
    return tuple(kind for kind in chosen for _ in range(_WEIGHTS[kind]))


def orders_drawn(claims: Capabilities) -> list[Order]:
    """Return the orders that queues are declared with."""
    orders: list[Order] = [Fifo()] if "fifo" in claims.orders else []
    if "priority" in claims.orders:
        orders += [Priority(n) for n in range(1, claims.priority_levels + 1)]
    if "sorted" in claims.orders:
        orders.append(Sorted("k"))
    if "last_value" in claims.orders:
        orders.append(LastValue("k"))
    if "none" in claims.orders:
        orders.append(Unordered())
    return orders


@dataclass(frozen=True)
class Chooser:
    """Turns two drawn numbers into a move of a kind that is possible now, or none.

    With `plain`, messages and consumers use nothing beyond the core. An example has at most
    `messages_max` messages.
    """

    claims: Capabilities
    kinds: tuple[Kind, ...]
    plain: bool
    messages_max: int = MESSAGES_MAX

    def moves(self, kind: KindOfMove, which: int, how: int, bindings: Bindings) -> Iterator[Move]:
        """Yield the moves; `which` chooses the object, `how` the way."""
        if bindings.down:
            yield Restart()
            return
        if kind.startswith("publish"):
            known = bindings.names_used()
            further = MANY if "many" in kind else 1
            for number in range(known, min(known + further, self.messages_max)):
                if bindings.queues:
                    queue = _pick(bindings.queues, which)
                    order = bindings.declared[queue].order
                    yield self._payload(how, _key(how, order, queue)).publish(queue, f"m{number}")
            return
        move = self._move(kind, which, how, bindings)
        if move is not None:
            yield move

    def cut_off(self, kind: KindOfMove, which: int, how: int, bindings: Bindings) -> Iterator[Move]:
        """Yield the first of these moves, with the power lost at one of its first changes."""
        for move in self.moves(kind, which, how, bindings):
            assert not isinstance(move, Cut)
            if isinstance(move, Crash):
                yield move
            else:
                change, unsynced = how // 3 % CHANGES_MAX, get_args(Unsynced)[how % 3]
                yield Cut(move=move, change=change, unsynced=unsynced)
            return

    def _payload(self, how: int, properties: Properties) -> Payload:
        if self.claims.selectors and how % 3:
            properties = (*properties, ("colour", ("red", "blue")[how % 2]))
        if self.plain:
            return Payload(how % 10, properties=properties)
        timed = how % 7 == 0
        return Payload(
            priority=how % 10,
            size=_SIZES[how // 3 % len(_SIZES)],
            persistent=self.claims.durable and how % 4 != 0,
            properties=properties,
            not_before_s=1 if timed and how % 2 and self.claims.delay else None,
            expires_s=2 if timed and not how % 2 and self.claims.expiry else None,
            group=("a", "b")[how % 2] if self.claims.groups and how % 3 else None,
        )

    def _move(self, kind: KindOfMove, which: int, how: int, bindings: Bindings) -> Move | None:
        """Return a single move of a kind, if one is possible now."""
        match kind:
            case "settle" if bindings.held:
                choices = self._settlements
                chosen = (*choices, "extend")[how % (len(choices) + self.claims.extend)]
                later = self.claims.delayed_release and chosen == "release" and how % 3 == 0
                delay_s = 1 if later else None
                return Settle(how=chosen, message=_held(bindings, which), delay_s=delay_s)
            case "settle again" if bindings.settled:
                chosen = self._settlements[how % len(self._settlements)]
                return Settle(how=chosen, message=_pick(bindings.settled, which), again=True)
            case "drain":
                return Drain()
            case "advance":
                return Advance(seconds=1)
            case "crash":
                return Crash()
            case "close_channel" if bindings.channels:
                return CloseChannel(channel=_pick(bindings.channels, which))
            case "pool" if bindings.channels:
                channel = _pick(bindings.channels, which)
                messages, size = self._window(how)
                return SetCredit(channel=channel, messages=messages, bytes=size)
        if kind in ("cancel", "credit", "flush"):
            return self._of_a_consumer(kind, which, how, bindings) if bindings.active else None
        return self._of_a_queue(kind, which, how, bindings) if bindings.queues else None

    @property
    def _settlements(self) -> tuple[SettlementName, ...]:
        return tuple(each for each in _SETTLEMENTS if can_settle_by(each, self.claims))

    def _of_a_consumer(self, kind: KindOfMove, which: int, how: int, bindings: Bindings) -> Move:
        consumer = _pick(bindings.active, which)
        if kind == "cancel":
            return Cancel(consumer=consumer)
        if kind == "flush":
            return Flush(consumer=consumer)
        messages, size = self._window(how)
        return SetCredit(consumer=consumer, messages=messages, bytes=size)

    def _window(self, how: int) -> tuple[int | None, int | None]:
        """Return a window of messages and of bytes, if the candidate claims windows."""
        limit, other = _WINDOWS[how % len(_WINDOWS)], _WINDOWS[how // 4 % len(_WINDOWS)]
        takes, weighs = "messages" in self.claims.credit, "bytes" in self.claims.credit
        if takes and weighs:
            return ((limit, None), (None, limit), (limit, other))[how % 3]
        return limit if takes else None, limit if weighs else None

    def _of_a_queue(
        self, kind: KindOfMove, which: int, how: int, bindings: Bindings
    ) -> Move | None:
        queue = _pick(bindings.queues, which)
        channel = CHANNELS[how % len(CHANNELS)]
        match kind:
            case "consume" if self.kinds and len(bindings.consumers) < CONSUMERS_MAX:
                chosen = self.kinds[how // len(CHANNELS) % len(self.kinds)]
                if how % 2:
                    other = self.kinds[which // 2 % len(self.kinds)]
                    chosen = chosen.with_options_of(other)
                several = chosen.every_queue and len(bindings.queues) > 1
                queues = tuple(bindings.queues) if several else ()
                first = queues[0] if several else queue
                return chosen.consume(channel, first, f"c{len(bindings.consumers)}", queues)
            case "get" if self.claims.get:
                modes = self.claims.gets
                mode = modes[-1] if how // len(CHANNELS) % 4 == 0 else modes[0]
                return Get(channel=channel, queue=queue, mode=mode)
            case "purge":
                return Purge(queue=queue)
            case "delete" if len(bindings.queues) > 1 and may_be_deleted(queue, bindings):
                return Delete(queue=queue)
            case "invalid":
                wrong = list(invalid_operations(bindings))
                return wrong[how % len(wrong)]
            case _:
                return None


def kinds_beyond(claims: Capabilities) -> Iterator[Kind]:
    """Yield the kinds of consumers that need more than the core."""
    for mode in claims.modes:
        if claims.selectors:
            yield Kind(mode, selector=RED)
            yield Kind(mode, selector=BLUE)
        if claims.consumer_priority and mode != "browse":
            yield Kind(mode, priority=1)
        if claims.auto_close:
            yield Kind(mode, auto_close=True)
        if claims.multi_queue:
            yield Kind(mode, every_queue=True)
        if claims.exclusive:
            yield Kind(mode, exclusive=True)
        if "bytes" in claims.credit:
            yield Kind(mode, bytes=4)


def _key(how: int, order: Order, queue: str) -> Properties:
    """Return the key that a message needs in a queue: texts in every second queue, or none."""
    if not isinstance(order, Sorted | LastValue):
        return ()
    if isinstance(order, LastValue) and how % 5 == 0:
        return ()
    value = _VALUES[how % len(_VALUES)]
    return ((order.key, value if int(queue[1:]) % 2 == 0 else str(value)),)


def _held(bindings: Bindings, which: int) -> str:
    entries = sorted(each.entry for each in bindings.held.values())
    return bindings.name_of_entry(entries[which % len(entries)])


def _pick(names: Iterable[str], number: int) -> str:
    ordered = sorted(names)
    return ordered[number % len(ordered)]

"""Moves: the steps of a trace, in names that mean the same to every broker.

A move differs from an operation in one point: a settlement names the held message, not the
delivery, whose id each broker chooses. So a trace found on one broker replays on another.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from brokerproof.checks.trace.bindings import Bindings
from brokerproof.spec.messages import DEFAULT_PRIORITY, Order
from brokerproof.spec.protocol.candidate import Unsynced
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Extend,
    Flush,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
    name_of,
)

SettlementName: TypeAlias = Literal["acknowledge", "release", "reject", "extend"]

NOT_HELD = "not-held"
"""The id of a message that is never published and of a delivery that never was."""

_SETTLEMENTS: dict[SettlementName, type[Acknowledge | Release | Reject | Extend]] = {
    "acknowledge": Acknowledge,
    "release": Release,
    "reject": Reject,
    "extend": Extend,
}


class Settle(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="settle"):
    """Settle the delivery through which a message is held; without a holder nothing happens.

    To `extend` it renews its lease. A release may come with a delay. With `again` it is the
    message's last delivery that is settled already, once more, and of `NOT_HELD` it is a delivery
    that never was: neither may have an effect (driver protocol 1, rule 13).
    """

    how: SettlementName
    message: str
    again: bool = False
    delay_s: int | None = None


class Cut(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="cut"):
    """Make a move, and let the power go meanwhile: at the disk's `change`-th change from there.

    `unsynced` says what is left of what was written and not synced. Only what has a disk of its own
    can do this (`spec.candidate.OnDisk`); where the move makes fewer changes, it is done as ever.
    """

    move: Whole
    change: int
    unsynced: Unsynced = "lost"


Whole: TypeAlias = (
    Declare
    | Publish
    | Consume
    | SetCredit
    | Cancel
    | Get
    | Settle
    | CloseChannel
    | Purge
    | Delete
    | Crash
    | Restart
    | Drain
    | Flush
    | Advance
    | Reset
)
"""A move during which the power stays on."""

Move: TypeAlias = Whole | Cut


def visible(text: str) -> str:
    """Return a text with its control characters shown, so that a terminal does not obey them.

    Ids and messages are a candidate's own and may hold anything (driver protocol 1, rule 55).
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def operation_of(move: Move, bindings: Bindings) -> Operation | None:
    """Return the operation of a move now, or None if there is none.

    A message that no client holds cannot be settled. The name of a message or consumer is used once
    (driver protocol 1, rules 16 and 25); a part of a trace may lack the step that made its first
    use fail.
    """
    if isinstance(move, Cut):
        return operation_of(move.move, bindings)
    if isinstance(move, Publish) and move.message.id in {**bindings.messages, **bindings.parked}:
        return None
    if isinstance(move, Consume) and move.consumer in bindings.consumers:
        return None
    if not isinstance(move, Settle):
        return move
    if move.message == NOT_HELD:
        return settling(move, NOT_HELD)
    delivery = (
        bindings.settled.get(move.message) if move.again else bindings.delivery_of(move.message)
    )
    return None if delivery is None else settling(move, delivery)


def settling(move: Settle, delivery: str) -> Operation:
    """Return the operation by which a move settles this delivery."""
    if move.delay_s is not None:
        return Release(delivery=delivery, delay_s=move.delay_s)
    return _SETTLEMENTS[move.how](delivery=delivery)


def text_of(move: Move) -> str:
    """Return a move in a few words, as counterexamples print it."""
    match move:
        case Cut(move=inner, change=change, unsynced=unsynced):
            return f"{text_of(inner)}, power lost at change {change} of the disk ({unsynced})"
        case Settle(how=how, message=message) if message == NOT_HELD:
            return f"{how} a delivery that never was"
        case Settle(how=how, message=message, again=again):
            later = "" if move.delay_s is None else f" for {move.delay_s} s later"
            return f"{how} {message}{later}" + (" again, by its old delivery" if again else "")
        case Declare(queue=queue, order=order):
            fields = [f"{key}={value}" for key, value in fields_of_order(order).items()]
            options = [n for n in ("durable", "auto_delete") if getattr(move, n)]
            limits = ("lease_s", "deliveries", "dead_letters", "length", "overflow")
            options += [f"{n}={v}" for n in limits if (v := getattr(move, n)) is not None]
            return " ".join(["declare", queue, str(order.__struct_config__.tag), *fields, *options])
        case Publish(queue=queue, message=message):
            return " ".join([f"publish {message.id} to {queue}", *_message_words(move)])
        case Consume(queue=queue, consumer=consumer, channel=channel):
            of = "+".join(move.queues) or queue
            return " ".join([f"consume {of} as {consumer} on {channel}", *_consumer_words(move)])
        case SetCredit(consumer=consumer, channel=channel):
            window = _window_words(move.messages, move.bytes)
            return " ".join([f"credit of {consumer or channel}", *window])
        case Get(channel=channel, queue=queue, mode=mode):
            return f"get from {queue} on {channel} mode={mode}"
        case Cancel(consumer=consumer) | Flush(consumer=consumer):
            return f"{name_of(move)} {consumer}"
        case CloseChannel(channel=channel):
            return f"close_channel {channel}"
        case Purge(queue=queue) | Delete(queue=queue):
            return f"{name_of(move)} {queue}"
        case Advance(seconds=seconds):
            return f"advance by {seconds} s"
        case _:
            return name_of(move)


def fields_of_order(order: Order) -> dict[str, object]:
    """Return the fields that an order is declared with besides its kind."""
    return {key: value for key, value in msgspec.to_builtins(order).items() if key != "kind"}


def _message_words(publish: Publish) -> list[str]:
    message = publish.message
    words = []
    if message.priority != DEFAULT_PRIORITY:
        words.append(f"priority={message.priority}")
    if message.size != 1:
        words.append(f"size={message.size}")
    if message.persistent:
        words.append("persistent")
    if message.group is not None:
        words.append(f"group={message.group}")
    words += [f"{name}={value}" for name, value in message.properties.items()]
    if publish.not_before_s is not None:
        words.append(f"not before {publish.not_before_s} s")
    if publish.expires_s is not None:
        words.append(f"expires in {publish.expires_s} s")
    return words


def _consumer_words(consume: Consume) -> list[str]:
    words = [f"mode={consume.mode}", *_window_words(consume.credit.messages, consume.credit.bytes)]
    if consume.selector is not None:
        words.append(f"selector={consume.selector}")
    if consume.priority:
        words.append(f"priority={consume.priority}")
    return words + [n for n in ("auto_close", "exclusive") if getattr(consume, n)]


def _window_words(messages: int | None, size: int | None) -> list[str]:
    words = [f"credit={'unlimited' if messages is None else messages}"]
    return words if size is None else [*words, f"bytes={size}"]

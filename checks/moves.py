"""Moves: the steps of a trace, in names that mean the same to every broker.

Owns the one difference between an operation and a step of a trace: a settlement names the message
that is held, not the delivery, whose id each broker chooses anew. So a trace found on one broker
can be replayed on another.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from brokerproof.checks.book import Book
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Restart,
    SetCredit,
    name_of,
)

SettlementName: TypeAlias = Literal["acknowledge", "release", "reject"]

_SETTLEMENTS: dict[SettlementName, type[Acknowledge | Release | Reject]] = {
    "acknowledge": Acknowledge,
    "release": Release,
    "reject": Reject,
}


class Settle(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="settle"):
    """Settle the delivery through which a message is held; nothing happens if nobody holds it.

    With `again` it is the message's last delivery that is settled already, once more: that must
    have no effect (driver protocol 1, rule 13).
    """

    how: SettlementName
    message: str
    again: bool = False


Move: TypeAlias = (
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
)


def visible(text: str) -> str:
    """Return a text with its control characters shown, not carried out, by a terminal.

    Ids and messages are a candidate's own and may hold anything (driver protocol 1, rule 55).
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def operation_of(move: Move, book: Book) -> Operation | None:
    """Return the operation that a move is now; None for settling what nobody holds."""
    if not isinstance(move, Settle):
        return move
    delivery = book.settled.get(move.message) if move.again else book.delivery_of(move.message)
    return None if delivery is None else _SETTLEMENTS[move.how](delivery=delivery)


def text_of(move: Move) -> str:
    """Return a move in a few words, as counterexamples print it."""
    match move:
        case Settle(how=how, message=message, again=again):
            return f"{how} {message}" + (" again, by its old delivery" if again else "")
        case Declare(queue=queue, order=order):
            kind = str(order.__struct_config__.tag)
            levels = getattr(order, "levels", None)
            return f"declare {queue} {kind}" + (f" levels={levels}" if levels else "")
        case Publish(queue=queue, message=message):
            return f"publish {message.id} to {queue} priority={message.priority}"
        case Consume(channel=channel, queue=queue, consumer=consumer, mode=mode, credit=credit):
            window = "unlimited" if credit.messages is None else credit.messages
            return f"consume {queue} as {consumer} on {channel} mode={mode} credit={window}"
        case Get(channel=channel, queue=queue, mode=mode):
            return f"get from {queue} on {channel} mode={mode}"
        case Cancel(consumer=consumer):
            return f"cancel {consumer}"
        case CloseChannel(channel=channel):
            return f"close_channel {channel}"
        case _:
            return name_of(move)

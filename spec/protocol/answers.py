"""A candidate's answers: events that happened, or an error and whether it is definite.

Owns the split between errors that say "it did not happen" and errors that say "it may have
happened"; every reader of answers takes the split from here.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.qpid.view import PointerQueueView
from brokerproof.spec.rabbitmq.view import PagingQueueView

Inspection: TypeAlias = PointerQueueView | PagingQueueView | CursorQueueView
"""A view of a queue, one shape for each kind of documented system."""

DefiniteCode: TypeAlias = Literal["unsupported", "refused"]
IndefiniteCode: TypeAlias = Literal["timeout", "crashed", "internal"]
ErrorCode: TypeAlias = DefiniteCode | IndefiniteCode

DEFINITE: frozenset[ErrorCode] = frozenset(("unsupported", "refused"))
"""Errors that say that the operation did not happen; after any other error it may have happened."""


class Delivered(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="delivered"):
    """A message was given to a consumer, or to a `get` (then `consumer` is None).

    `count` is the number of deliveries before this one, of a candidate that claims to count.
    """

    delivery: str
    consumer: str | None
    queue: str
    message: str
    redelivered: bool = False
    count: int | None = None


class ConsumerClosed(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="consumer_closed"
):
    """A consumer ended without a request of its client: by auto-close, or with its queue."""

    consumer: str


class QueueDeleted(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="queue_deleted"
):
    """An auto-delete queue was deleted with its last consumer."""

    queue: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="accepted"):
    """A parked publish was accepted; from now on the message is in its queue."""

    message: str


class LeaseExpired(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="lease_expired"
):
    """The lease of a message has ended: it is no longer held, and returns to its queue."""

    message: str


Event: TypeAlias = Delivered | ConsumerClosed | QueueDeleted | Accepted | LeaseExpired


class Error(msgspec.Struct, frozen=True):
    """The reason why an operation failed, or may have failed."""

    code: ErrorCode
    message: str = ""

    @property
    def definite(self) -> bool:
        """Whether the operation certainly had no effect."""
        return self.code in DEFINITE


class Answer(msgspec.Struct, frozen=True):
    """The answer to one operation: the events that it reports, and an error if it failed.

    Only `inspect` is answered with `inspection`. `parked` says that a publish waits for room; an
    `Accepted` follows when the broker has taken it.
    """

    events: tuple[Event, ...] = ()
    error: Error | None = None
    inspection: Inspection | None = None
    parked: bool = False

    @property
    def ok(self) -> bool:
        """Whether the candidate says that the operation was carried out."""
        return self.error is None


OK = Answer()


def refused(message: str, events: tuple[Event, ...] = ()) -> Answer:
    """Answer that the operation did not happen, because of its arguments or the state."""
    return Answer(events, Error("refused", message))


def unsupported(message: str, events: tuple[Event, ...] = ()) -> Answer:
    """Answer that the operation did not happen, because the candidate does not claim it."""
    return Answer(events, Error("unsupported", message))


EVENTS_MAX = 10_000
"""The most events in one answer: far more than the messages of any run of the gate."""

MESSAGE_CHARACTERS_MAX = 1_000
"""The most characters kept of an error message, which is only shown."""


def shortened(answer: Answer) -> Answer:
    """Return the answer with a long error message cut to its beginning and its length."""
    error = answer.error
    if error is None or len(error.message) <= MESSAGE_CHARACTERS_MAX:
        return answer
    kept = f"{error.message[:MESSAGE_CHARACTERS_MAX]}… ({len(error.message):,} characters)"
    return msgspec.structs.replace(answer, error=Error(error.code, kept))

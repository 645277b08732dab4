"""The form of a view from `inspect`: whether it can be read at all.

A candidate in this process can put any object into a field. So a view is written out as plain
values and read again by its types; the result holds nothing else. Values are not judged here: a
count may be wrong, or negative, and an invariant says so. Equal views are one object: a search sees
few views, but those often.
"""

from __future__ import annotations

import functools

import msgspec

from brokerproof.spec.inspection import QueueView
from brokerproof.spec.messages import Order
from brokerproof.spec.protocol.answers import Inspection

KNOWN_MAX = 1 << 16
"""The most views that are cached."""

_encoded = msgspec.msgpack.Encoder().encode
_decoded = msgspec.msgpack.Decoder(Inspection).decode


class Malformed(Exception):
    """A view that cannot be read; the message says in a few words what it is instead."""


def well_formed(view: object, order: Order) -> Inspection:
    """Return a view of a queue of `order` as plain values; raises `Malformed`."""
    if not isinstance(view, QueueView):
        raise Malformed(f"an object of type {type(view).__name__}, not a view")
    try:
        read, fault = _plain(msgspec.to_builtins(view))
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"something that is no {view.kind}: {error}") from error
    if read.order != order:
        raise Malformed("a queue of another order than it was declared with")
    if fault:
        raise Malformed(fault)
    return read


def _plain(written: object) -> tuple[Inspection, str]:
    """Return the view that plain values stand for, and its first error."""
    try:
        return _read(_encoded(written))
    except (OverflowError, msgspec.ValidationError):
        # An integer of more than 64 bits, or a wrong type, which is told in Python's words.
        read = msgspec.convert(written, Inspection)
        return read, read.fault()


@functools.lru_cache(maxsize=KNOWN_MAX)
def _read(text: bytes) -> tuple[Inspection, str]:
    read = _decoded(text)
    return read, read.fault()

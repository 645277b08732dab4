"""The form of a view from `inspect`: whether it can be read at all.

A candidate in this process can put any object into a field. So a view is written out as plain
values and read again by its types; the result holds nothing else. Values are not judged here: a
count may be wrong, or negative, and an invariant says so.
"""

from __future__ import annotations

import msgspec

from brokerproof.spec.inspection import QueueView
from brokerproof.spec.messages import Order
from brokerproof.spec.protocol.answers import Inspection


class Malformed(Exception):
    """A view that cannot be read; the message says in a few words what it is instead."""


def well_formed(view: object, order: Order) -> Inspection:
    """Return a view of a queue of `order` as plain values; raises `Malformed`."""
    if not isinstance(view, QueueView):
        raise Malformed(f"an object of type {type(view).__name__}, not a view")
    try:
        read: Inspection = msgspec.convert(msgspec.to_builtins(view), Inspection)
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"something that is no {view.kind}: {error}") from error
    if read.order != order:
        raise Malformed("a queue of another order than it was declared with")
    if fault := read.fault():
        raise Malformed(fault)
    return read

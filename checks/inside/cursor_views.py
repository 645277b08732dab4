"""The form of what `inspect` shows of a queue with cursors: whether such a view can be read at all.

Owns what the types of a view do not say, and what types cannot say of objects that a candidate made
in this process, as `views` does for queues of pointers. Which values are lawful is not asked here:
a count may be wrong, or negative, and the glance at it says so.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Final, cast

import msgspec

from brokerproof.checks.inside.paging_views import kind_of
from brokerproof.spec.activemq.view import CursorLevelView, CursorQueueView
from brokerproof.spec.protocol.messages import Order


def fault_of_form(view: CursorQueueView, order: Order) -> str:
    """Return in a few words what is wrong with a view of a queue of `order`, or nothing.

    What follows a fault is not asked, and might fail.
    """
    if view.order != order:
        return "a queue of another order than it was declared with"
    fault = _fault_of(view)
    if fault:
        return fault
    if not view.levels:
        return "a queue without any level"
    if view.audit.words < 1 or view.audit.word_bits < 1:
        return "an audit of nothing"
    for level in view.levels:
        fault = next(_faults_of_level(level), "")
        if fault:
            return f"{fault} at level {level.level}"
    return ""


_TUPLE: Final = frozenset((tuple,))


@functools.cache
def _fields_of(kind: type[msgspec.Struct]) -> Mapping[str, tuple[frozenset[type], bool]]:
    """Return of each field what it may be, exactly that, and whether it is a tuple of such."""
    fields: dict[str, tuple[frozenset[type], bool]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        if hint == Order:
            continue  # it has been compared
        if typing.get_origin(hint) is tuple:
            fields[name] = frozenset(typing.get_args(hint)[:1]), True
        else:
            parts = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
            fields[name] = frozenset(parts), False
    return fields


def _fault_of(part: msgspec.Struct) -> str:
    """Return what is wrong with the types of a part's fields, and of what is in them."""
    for name, (kinds, is_many) in _fields_of(type(part)).items():
        value = cast("object", getattr(part, name))
        words = name.replace("_", " ")
        if type(value) not in (_TUPLE if is_many else kinds):
            return f"{kind_of(value)} as {words}"
        for each in cast("tuple[object, ...]", value) if is_many else (value,):
            if type(each) not in kinds:
                return f"{kind_of(each)} in {words}"
            fault = _fault_of(each) if isinstance(each, msgspec.Struct) else ""
            if fault:
                return f"{fault} in {words}"
    return ""


def _faults_of_level(level: CursorLevelView) -> Iterator[str]:
    names = [each.message for each in level.stored]
    if len({*names}) < len(names):
        yield "a message that is stored twice"
    if level.read is not None and not 0 <= level.read <= len(names):
        yield "a position outside of the store"

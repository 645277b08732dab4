"""Driver protocol 1 on the wire: every request and answer as one JSON object of exact shape.

The shapes are derived from the operations and events of this package. The wire adds three rules:
every field is required, ids are text of 1 to 1024 characters, and numbers lie in their range (rules
36, 46, 54 and 55). The gate checks a driver's answers against these shapes, and its own requests
before it sends them. Which answer fits which request is not known here.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from brokerproof.spec.messages import NUMBER_MAX, PRIORITIES
from brokerproof.spec.protocol.answers import Error, Event
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Inspect, Operation

LINE_BYTES_MAX = 16 * 2**20
"""The longest line, its end not counted (rule 43)."""
ID_MAX = 2**53 - 1
"""The largest id of a request: the largest number that every JSON library reads exactly (rule
42)."""
NAME_CHARACTERS_MAX = 1024

Shape: TypeAlias = type[msgspec.Struct]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS_MAX)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
RequestId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=ID_MAX)]

# The exceptions: other numbers are sizes, windows and seconds; other texts are ids and names.
_OTHERWISE: dict[tuple[str, str], Any] = {
    # The gate sends invalid priorities on purpose: they must be refused (rule 35).
    ("Message", "priority"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)],
    ("Priority", "levels"): Annotated[int, msgspec.Meta(ge=1, le=len(PRIORITIES))],
    ("Consume", "priority"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)],
    # It sends invalid windows on purpose too (rule 22).
    ("SetCredit", "messages"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)]
    | None,
    ("Error", "message"): str,
}


_NEED_NOT_BE_SENT = {("Delivered", "count")}
"""Fields of events that only some claims need."""


@functools.cache
def exact(shape: Shape, *, request: bool = False) -> Shape:
    """Return the wire form of a struct: its fields required, each within its bounds.

    A request has an id besides, and no unknown fields.
    """
    hints = get_type_hints(shape, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, None]] = []
    for name in shape.__struct_fields__:
        known = (shape.__name__, name)
        bounded = _OTHERWISE.get(known) or _bounded(hints[name])
        fields.append((name, bounded, None) if known in _NEED_NOT_BE_SENT else (name, bounded))
    config = shape.__struct_config__
    return msgspec.defstruct(
        shape.__name__,
        [("id", RequestId), *fields] if request else fields,
        tag_field=config.tag_field,
        tag=config.tag,
        frozen=True,
        forbid_unknown_fields=request,
    )


def _bounded(hint: Any) -> Any:
    """Return the type with every text, number and struct replaced by its wire form."""
    if hint is str:
        return Name
    if hint is int:
        return Number
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return exact(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Union or origin is types.UnionType:
        return functools.reduce(operator.or_, map(_bounded, arguments))
    if origin is tuple:
        return types.GenericAlias(tuple, (_bounded(arguments[0]), ...))
    # The remaining types: truth values, literals, and properties, whose values are free.
    return hint


class SayHello(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="op",
    tag="hello",
    forbid_unknown_fields=True,
):
    """The first request: it names the protocol."""

    id: RequestId
    protocol: Literal[1] = 1


OPERATIONS: tuple[Shape, ...] = tuple(each for each in get_args(Operation) if each is not Inspect)
"""The requests after hello; `inspect` is for candidates in this process only (rule 50)."""
EVENTS: tuple[Shape, ...] = get_args(Event)
REQUESTS: dict[str, Shape] = {
    "hello": SayHello,
    **{str(each.__struct_config__.tag): exact(each, request=True) for each in OPERATIONS},
}
"""The wire form of each request by its name."""

RequestShape: Any = functools.reduce(operator.or_, REQUESTS.values())
"""Any request; decoding to it checks the form."""


class DriverAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A driver's answer to an operation; `events` must be there where `ok` is true."""

    id: int
    ok: bool
    events: tuple[Event, ...] | msgspec.UnsetType = msgspec.UNSET
    error: Error | None = None
    parked: bool = False


class DriverHello(msgspec.Struct, frozen=True, kw_only=True):
    """A driver's answer to hello; the claims must be there where `ok` is true."""

    id: int
    ok: bool
    name: Name | msgspec.UnsetType = msgspec.UNSET
    version: Name | msgspec.UnsetType = msgspec.UNSET
    capabilities: Capabilities | msgspec.UnsetType = msgspec.UNSET
    events: tuple[Event, ...] = ()
    error: Error | None = None


AnswerShape: Any = msgspec.defstruct(
    "DriverAnswer",
    [
        ("id", int),
        ("ok", bool),
        (
            "events",
            cast("Any", types.GenericAlias(tuple, (_bounded(Event), ...))),
            msgspec.field(default=()),
        ),
        ("error", cast("Any", exact(Error) | None), None),
        ("parked", bool, False),
    ],
    frozen=True,
)
"""An answer whose events and error lack no field; decoding to it checks the form."""

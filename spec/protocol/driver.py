"""Driver protocol 1 on the wire: every request and answer as one JSON object of exact shape.

Nothing is described twice: the shapes are derived from the operations and events of this room. What
the wire adds is that every field must be there, that ids are text of 1 to 1024 characters, and that
numbers lie in their range (rules 36, 46, 54 and 55). A driver's answers are held against these
shapes, and so is each request of ours before it leaves. Which answer fits which request is not
known here.
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

from brokerproof.spec.protocol.answers import Error, Event
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.messages import NUMBER_MAX, PRIORITIES
from brokerproof.spec.protocol.operations import Inspect, Operation

LINE_BYTES_MAX = 16 * 2**20
"""The longest line, its end not counted (rule 43)."""
ID_MAX = 2**53 - 1
"""The largest id of a request: what every JSON library reads exactly (rule 42)."""
NAME_CHARACTERS_MAX = 1024

Shape: TypeAlias = type[msgspec.Struct]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS_MAX)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
RequestId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=ID_MAX)]

# Numbers are sizes, windows and seconds, and texts are ids and names, but for these.
_OTHERWISE: dict[tuple[str, str], Any] = {
    # What is no priority is sent on purpose: it must be refused (rule 35).
    ("Message", "priority"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)],
    ("Priority", "levels"): Annotated[int, msgspec.Meta(ge=1, le=len(PRIORITIES))],
    ("Consume", "priority"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)],
    # So is a window that is none (rule 22).
    ("SetCredit", "messages"): Annotated[int, msgspec.Meta(ge=-NUMBER_MAX - 1, le=NUMBER_MAX)]
    | None,
    ("Error", "message"): str,
}


@functools.cache
def exact(shape: Shape, *, request: bool = False) -> Shape:
    """Return the wire form of a struct: all fields required, each within its bounds.

    That of a request has an id besides, and nothing else.
    """
    hints = get_type_hints(shape, include_extras=True)
    fields = [
        (name, _OTHERWISE.get((shape.__name__, name)) or _bounded(hints[name]))
        for name in shape.__struct_fields__
    ]
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
    """Return a type in which every text, number and struct is the wire's."""
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
    # What is left: truth values, choices among words, and properties, whose values are free.
    return hint


class SayHello(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="op",
    tag="hello",
    forbid_unknown_fields=True,
):
    """The first request: which protocol is spoken."""

    id: RequestId
    protocol: Literal[1] = 1


OPERATIONS: tuple[Shape, ...] = tuple(each for each in get_args(Operation) if each is not Inspect)
"""What a driver is asked after hello; `inspect` is for candidates in this process (rule 50)."""
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

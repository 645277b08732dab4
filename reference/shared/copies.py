"""Copying a broker for searches: one walk over the slots of all its objects.

Owns how each kind of object is copied. A copy has the same graph: as many objects, linked alike,
with dispensed entries and all counters. No step of an algorithm runs during a copy, so cells are
read directly. A search copies hundreds of thousands of times, hence a generated function for each
class.

There are three kinds:

* Values are shared by all copies: numbers, texts, enumerations, functions, the objects named to
  `constant`, and what is frozen (structs, dataclasses, named tuples), since it holds values alone.
* Containers and cells belong to one object and are copied with it, except for `COMMON_CELLS`.
* Any other object has slots, and one copy however many others refer to it. A subclass may add a
  `__dict__`. A class without slots is refused: it comes from elsewhere, and may hold open files.
"""

from __future__ import annotations

import enum
import threading
from array import array
from collections import deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any, Final, TypeAlias, TypeVar

from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference, Lock

T = TypeVar("T")
Memo: TypeAlias = dict[object, Any]
"""The copies of the objects that several others may refer to."""
Links: TypeAlias = list[tuple[AtomicReference[Any], object]]
"""Copied cells that are filled last: a linked list may be longer than the stack is deep."""
Copier: TypeAlias = Callable[[Any, Memo, Links], Any]

COMMON_CELLS: Final = ("shared",)
"""The slots whose cell several objects have: the consumers of one client share a window."""

_VALUES: Final[set[type]] = {NoneType, bool, int, float, str, bytes, type, FunctionType}
_CONSTANTS: Final[Memo] = {}


def constant(*objects: object) -> None:
    """Declare objects that never change and are compared by identity."""
    _CONSTANTS.update(zip(objects, objects, strict=True))


def copied(root: T) -> T:
    """Return an independent copy of an object and of all that it refers to.

    Raises `TypeError` if one of them cannot be copied.
    """
    memo, links = _CONSTANTS.copy(), Links()
    copy: T = _COPIERS[type(root)](root, memo, links)
    # The list grows meanwhile.
    for cell, value in links:
        cell.value = _COPIERS[type(value)](value, memo, links)
    return copy


class _Copiers(dict[type, Copier]):
    """The copier of each class met so far."""

    def __missing__(self, cls: type) -> Copier:
        def learn(original: Any, memo: Memo, links: Links) -> Any:
            if _is_value(cls):
                _VALUES.add(cls)
                return original
            self[cls] = _generated(cls, _lines(cls, original))
            return self[cls](original, memo, links)

        return learn


_COPIERS: Final = _Copiers()


def _is_value(cls: type) -> bool:
    form = getattr(cls, "__dataclass_params__", getattr(cls, "__struct_config__", None))
    is_frozen = getattr(form, "frozen", hasattr(cls, "_fields") and issubclass(cls, tuple))
    return cls in _VALUES or issubclass(cls, enum.Enum) or is_frozen


_COPY_OF: Final = "{0} if (kind := type({0})) in values else copiers[kind]({0}, memo, links)"
_EACH: Final = f"[{_COPY_OF.format('each')} for each in original]"
_SLICE: Final = ("return original[:]",)
_CONTAINERS: Final[dict[type, tuple[str, ...]]] = {
    tuple: (f"return tuple({_EACH}) if original else original",),
    list: (f"return {_EACH} if original else []",),
    deque: (f"return cls({_EACH})",),
    set: (f"return cls({_EACH}) if original else cls()",),
    dict: (
        "copy = cls.__new__(cls)",
        "for key, each in original.items():",
        f"    copy[{_COPY_OF.format('key')}] = {_COPY_OF.format('each')}",
        "return copy",
    ),
    bytearray: _SLICE,
    array: _SLICE,
    MethodType: (
        "part = original.__self__",
        "return cls(original.__func__, copiers[type(part)](part, memo, links))",
    ),
    # A lock is not held during a copy.
    threading.Condition: ("return cls(lock())",),
}
"""The code that copies a container."""

_REFERENCE: Final = (
    "part = part.value",
    "if type(part) in values:",
    "    cell.value = part",
    "elif part in memo:",
    "    cell.value = memo[part]",
    "else:",
    "    links.append((cell, part))",
)
_CELLS: Final[dict[type, tuple[str, ...]]] = {
    AtomicReference: _REFERENCE,
    AtomicInteger: ("cell.value = part.value",),
    AtomicFlag: ("cell.value = part.value",),
    Lock: ("cell.held = part.held",),
}
"""The code that fills a copied cell."""


def _lines(cls: type, original: object) -> list[str]:
    container = next((each for each in cls.__mro__ if each in _CONTAINERS), None)
    if container is not None:
        return [*_CONTAINERS[container]]
    slots = [slot for base in cls.__mro__ for slot in vars(base).get("__slots__", ())]
    if (cls.__dictoffset__ and not slots) or issubclass(cls, BuiltinFunctionType):
        raise TypeError(f"a {cls.__qualname__} cannot be copied")
    lines = [
        "if original in memo:",
        "    return memo[original]",
        "copy = memo[original] = new(cls)",
    ]
    for slot in slots:
        lines.append(f"part = original.{slot}")
        kind = type(getattr(original, slot))
        if kind in _CELLS and slot not in COMMON_CELLS:
            lines += [f"copy.{slot} = cell = new({kind.__name__})", *_CELLS[kind]]
        else:
            lines.append(f"copy.{slot} = {_COPY_OF.format('part')}")
    if cls.__dictoffset__:
        lines.append("copy.__dict__.update(copiers[dict](vars(original), memo, links))")
    return [*lines, "return copy"]


def _generated(cls: type, lines: list[str]) -> Copier:
    names: dict[str, Any] = {each.__name__: each for each in _CELLS}
    names |= {"cls": cls, "copiers": _COPIERS, "lock": threading.Lock, "new": object.__new__}
    names["values"] = _VALUES
    source = "\n    ".join(["def copier(original, memo, links):", *lines])
    exec(source, names)  # noqa: S102 - a loop over the slots would take twice as long
    copier: Copier = names["copier"]
    return copier

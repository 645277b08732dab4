"""What an object is made of, in slots or not, without asking anything of it."""

from __future__ import annotations

from collections.abc import Iterator


def attributes(value: object) -> Iterator[tuple[str, object]]:
    """Yield the names and values of an object's attributes; of a value of Python's own, nothing."""
    kind = type(value)
    if kind.__module__ == "builtins" or isinstance(value, type) or callable(value):
        return
    for name in slots_of(kind):
        if hasattr(value, name):
            yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()


def slots_of(kind: type) -> Iterator[str]:
    """Yield the names of the slots that objects of a class have."""
    for each in kind.__mro__:
        slots = vars(each).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots

"""The shared cells that the documents work on with compare-and-swap, and the lock that they take.

Owns the smallest steps of the broker: whatever two threads of the documented algorithms could do to
the same place goes through one method of this file, and nothing else does. In normal use the cells
are plain. Whoever wants to explore interleavings replaces these methods for that time; the
algorithms need no second version.

A cell's `value` may be read directly only where no algorithm runs: when a state at rest is copied
or named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

Class = TypeVar("Class", bound=type)
Key = TypeVar("Key")
Value = TypeVar("Value")


class AtomicReference(Generic[Value]):
    """A reference that is read, replaced, or replaced only if it is still the one expected."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def get(self) -> Value:
        """Return what is referred to."""
        return self.value

    def set(self, value: Value) -> None:
        """Refer to `value`, whatever was referred to before."""
        self.value = value

    def get_and_set(self, value: Value) -> Value:
        """Refer to `value` and return what was referred to before."""
        before = self.value
        self.value = value
        return before

    def compare_and_set(self, expected: Value, value: Value) -> bool:
        """Refer to `value` if `expected` itself is referred to, not an equal; say whether."""
        if self.value is not expected:
            return False
        self.value = value
        return True


class AtomicInteger:
    """A counter."""

    __slots__ = ("value",)

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def get(self) -> int:
        """Return the count."""
        return self.value

    def set(self, value: int) -> None:
        """Replace the count."""
        self.value = value

    def increment_and_get(self) -> int:
        """Add one and return the new count."""
        self.value += 1
        return self.value

    def decrement_and_get(self) -> int:
        """Take one away and return the new count."""
        self.value -= 1
        return self.value


class AtomicFlag:
    """A mark that is set by exactly one of those who try."""

    __slots__ = ("value",)

    def __init__(self, value: bool = False) -> None:
        self.value = value

    def get(self) -> bool:
        """Return whether the mark is set."""
        return self.value

    def compare_and_set(self, expected: bool, value: bool) -> bool:
        """Change the mark to `value` if it is as expected; say whether it was."""
        if self.value is not expected:
            return False
        self.value = value
        return True


class Lock:
    """A lock that one thread holds at a time; `with` takes it and gives it back.

    Not reentrant: in one thread of control a second taking is a mistake of the algorithm, so it is
    asserted against.
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = False

    def __enter__(self) -> None:
        assert not self.held, "the lock is taken twice by one thread of control"
        self.held = True

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        assert self.held, "a lock that is not held cannot be given back"
        self.held = False


ATOMIC_STEPS: Final[WeakKeyDictionary[type, dict[str, bool]]] = WeakKeyDictionary()
"""By class, the methods that are one step each, and of each whether it only reads."""


def atomic_steps(
    *, reads: Iterable[str] = (), writes: Iterable[str] = ()
) -> Callable[[Class], Class]:
    """Declare that objects of a class are cells: each of these methods is one step.

    As `synchronized` methods are that touch nothing but their object. In normal use nothing
    changes.
    """

    def declare(cls: Class) -> Class:
        ATOMIC_STEPS[cls] = {**dict.fromkeys(reads, True), **dict.fromkeys(writes, False)}
        return cls

    return declare


@atomic_steps(
    reads=("__getitem__", "__contains__", "get", "items"),
    writes=("__setitem__", "__delitem__", "pop", "setdefault", "take_out"),
)
class AtomicMap(dict[Key, Value]):
    """A dictionary that threads share: each of these methods is one step.

    What `items` returns is to be copied at once.
    """

    __slots__ = ()

    def take_out(self, key: Key, value: Value) -> bool:
        """Take a key out if it has `value` itself; of several who try, one is told that it did."""
        if self.get(key) is not value:
            return False
        del self[key]
        return True

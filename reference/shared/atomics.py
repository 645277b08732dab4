"""The shared cells of the documented algorithms: compare-and-set cells, counters, maps and locks.

Owns the atomic steps of the broker. Every access of two threads to the same place goes through one
method of this file. In normal use the cells are plain. The schedule explorer replaces these methods
while it explores interleavings, so the algorithms need no second version.

A cell's `value` may be read directly only while no algorithm runs: when a state at rest is copied
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
    """A reference that can be read, replaced, or replaced if it still has the expected value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def get(self) -> Value:
        """Return the current reference."""
        return self.value

    def set(self, value: Value) -> None:
        """Replace the reference unconditionally."""
        self.value = value

    def get_and_set(self, value: Value) -> Value:
        """Replace the reference and return the previous one."""
        before = self.value
        self.value = value
        return before

    def compare_and_set(self, expected: Value, value: Value) -> bool:
        """Set `value` if the current reference is `expected` by identity; return whether it was."""
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
    """A flag: of several threads that try to set it, exactly one succeeds."""

    __slots__ = ("value",)

    def __init__(self, value: bool = False) -> None:
        self.value = value

    def get(self) -> bool:
        """Return whether the mark is set."""
        return self.value

    def compare_and_set(self, expected: bool, value: bool) -> bool:
        """Set `value` if the flag equals `expected`; return whether it did."""
        if self.value is not expected:
            return False
        self.value = value
        return True


class Lock:
    """A lock that one thread holds at a time; use it with `with`.

    Not reentrant: taking it twice in one thread is a defect of the algorithm, and an assertion
    fails.
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
"""By class, the methods that are one atomic step each, and whether the method only reads."""


def atomic_steps(
    *, reads: Iterable[str] = (), writes: Iterable[str] = ()
) -> Callable[[Class], Class]:
    """Declare that objects of a class are cells: each of these methods is one step.

    It stands for Java's `synchronized` methods that touch only their own object. In normal use it
    changes nothing.
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

    The caller must copy the result of `items` at once.
    """

    __slots__ = ()

    def take_out(self, key: Key, value: Value) -> bool:
        """Remove a key if its value is `value` by identity; of several threads, one gets True."""
        if self.get(key) is not value:
            return False
        del self[key]
        return True

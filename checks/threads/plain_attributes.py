"""Data races: two threads touch an attribute that is no cell, and nothing orders them.

The file owns the watching of classes and the order, that of the Java memory model: a write of a
cell precedes later reads of it, and a lock's release precedes its next taking. Two unordered
touches of one attribute, one of them a write, are a data race. Here no thread is interrupted
between two accesses, but elsewhere it would be.

The content of a list, dictionary or set counts as part of the attribute: it is compared with its
earlier content whenever a thread has run.

Source: Flanagan, Freund, FastTrack: efficient and precise dynamic race detection (PLDI 2009),
without the optimisations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from brokerproof.checks.threads.threads import (
    GIVE_BACK,
    READ,
    Cell,
    Thread,
    is_within_a_step,
    running,
)
from brokerproof.reference.shared.atomics import ATOMIC_STEPS

_CONTAINERS: Final = (list, dict, set, deque)


def attributes(value: object) -> Iterator[tuple[str, object]]:
    """Yield an object's attributes with their values; none for a value of Python's own."""
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


@dataclass(frozen=True)
class Touch:
    """One touch of an attribute.

    `within` says whether it was within an atomic step. `container` is the container that the
    attribute holds, if any, with its content.
    """

    owner: object
    name: str
    writes: bool
    within: bool
    container: tuple[Any, object] | None = None


@dataclass
class _Attribute:
    """The touches of an attribute: each thread's last read and write, by step."""

    owner: object
    name: str
    read: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)


@dataclass
class Touches:
    """The attributes touched in one run, and the races among them.

    The steps of a run are numbered; sets of them are whole numbers, a bit a step.
    """

    _races: dict[str, list[str]] = field(default_factory=dict)
    _steps: int = 0
    _names: dict[int, str] = field(default_factory=dict)
    _own: dict[int, int] = field(default_factory=dict)
    _known: dict[int, int] = field(default_factory=dict)
    _told: dict[int, tuple[Cell, int]] = field(default_factory=dict)
    _attributes: dict[tuple[int, str], _Attribute] = field(default_factory=dict)
    _containers: dict[tuple[int, str], tuple[Any, object]] = field(default_factory=dict)

    def stepped(self, thread: Thread, cell: Cell | None, begun: Sequence[Thread]) -> None:
        """Add a thread's step: the access that it made, and its touches up to its next access.

        `begun` are the threads that it has started.
        """
        number, bit = thread.number, 1 << self._steps
        self._names[number] = thread.name
        known = self._known.get(number, 0) | bit
        self._own[number] = self._own.get(number, 0) | bit
        if cell is not None:
            told = self._told.get(id(cell), (cell, 0))[1]
            if thread.made is not GIVE_BACK:
                known |= told
            # Atomic steps exclude each other, as under a lock, whatever they do.
            if thread.made is not READ or type(cell) in ATOMIC_STEPS:
                self._told[id(cell)] = cell, told | known
        self._known[number] = known
        for each in begun:
            self._known[each.number] = known
        within = set()
        for touch in _take_touched():
            self._touch(number, touch)
            if touch.within:
                within.add((id(touch.owner), touch.name))
        for key, (container, before) in self._containers.items():
            if (now := _content(container)) != before:
                self._containers[key] = container, now
                owner = self._attributes[key].owner
                self._touch(number, Touch(owner, key[1], writes=True, within=key in within))
        self._steps += 1

    @property
    def races(self) -> list[str]:
        """A line for each kind of race between two threads, with all attributes it concerns."""
        return [
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"
            for what, names in self._races.items()
        ]

    def any_shared(self) -> bool:
        """Whether two threads have touched one attribute, one of them to change it."""
        return any(
            each.written and len(each.read.keys() | each.written.keys()) > 1
            for each in self._attributes.values()
        )

    def _touch(self, number: int, touch: Touch) -> None:
        owner, name, writes = touch.owner, touch.name, touch.writes
        key = id(owner), name
        attribute = self._attributes.setdefault(key, _Attribute(owner, name))
        others = [("written", attribute.written)]
        if writes:
            others.append(("read", attribute.read))
        for what, steps in others:
            for other, step in steps.items():
                # A thread that knows of a later step of the other knows of all steps up to it.
                if other != number and not (self._known[number] & self._own[other]) >> step + 1:
                    self._tell(attribute, what, other, number, writes=writes)
        # A touch within an atomic step is over when the step is.
        at = self._steps - touch.within
        (attribute.written if writes else attribute.read)[number] = at
        if touch.container is not None:
            known = self._containers.get(key)
            if known is None or known[0] is not touch.container[0]:
                self._containers[key] = touch.container

    def _tell(
        self, attribute: _Attribute, what: str, other: int, number: int, *, writes: bool
    ) -> None:
        first, second = self._names[other], self._names[number]
        race = (
            f"{what} by {first} and {'written' if writes else 'read'} by {second}, "
            "and nothing orders the two"
        )
        names = self._races.setdefault(race, [])
        name = f"{type(attribute.owner).__name__}.{attribute.name}"
        if name not in names:
            names.append(name)


def _content(container: Any) -> object:
    parts = container.items() if isinstance(container, dict) else container
    return [id(each) for part in parts for each in (part if isinstance(part, tuple) else (part,))]


_touched: Final[list[Touch]] = []
"""The touches of the running thread since its last access."""


def _take_touched() -> Sequence[Touch]:
    taken = (*_touched,)
    _touched.clear()
    return taken


@contextmanager
def watched(kinds: Sequence[type]) -> Iterator[None]:
    """Note, while the body runs, all touches of attributes of objects of these classes."""
    before = {kind: (kind.__getattribute__, kind.__setattr__) for kind in kinds}
    own = {kind: {*vars(kind)} for kind in kinds}
    try:
        for kind, (read, write) in before.items():
            kind.__getattribute__ = _noting_reads(kind, read)  # type: ignore[method-assign]
            kind.__setattr__ = _noting_writes(write)  # type: ignore[method-assign]
        yield
    finally:
        _touched.clear()
        for kind, plain in before.items():
            for name, method in zip(("__getattribute__", "__setattr__"), plain, strict=True):
                if name in own[kind]:
                    setattr(kind, name, method)
                else:
                    delattr(kind, name)


def _noting_reads(kind: type, plain: Callable[..., Any]) -> Callable[..., Any]:
    slots = frozenset(slots_of(kind))

    def read(self: object, name: str) -> Any:
        value = plain(self, name)
        if running() is not None and (
            name in slots or (name != "__dict__" and name in getattr(self, "__dict__", ()))
        ):
            is_plain = isinstance(value, _CONTAINERS) and type(value) not in ATOMIC_STEPS
            held = (value, _content(value)) if is_plain else None
            _touched.append(Touch(self, name, False, is_within_a_step(), held))
        return value

    return read


def _noting_writes(plain: Callable[..., None]) -> Callable[..., None]:
    def write(self: object, name: str, value: object) -> None:
        if running() is not None:
            _touched.append(Touch(self, name, True, is_within_a_step()))
        plain(self, name, value)

    return write

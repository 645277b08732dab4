"""Memory usage: a tree of nodes with limits, and the callbacks that wait for space.

Owns the use of each node, its percentage, and the waiting callbacks. A node only counts and answers
(`is_full`, `room_for`); keeping to a limit is the caller's part.

A change is made at a node and then at all nodes above, under one lock for the whole tree, so that
no callback can be registered between a check and the change. Notices go out when the change is
complete at all nodes (`notices`).

Source: ActiveMQ's memory usage (5.1 to current), unless stated. AMQ-4361 is followed: no callback
waits after a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import msgspec

from brokerproof.reference.activemq.memory.notices import (
    ChangeNotice,
    Execute,
    Notices,
    SpaceCallback,
    SpaceNotice,
    UsageListener,
)

if TYPE_CHECKING:
    from brokerproof.spec.messages import Message

FULL_PERCENT: Final = 100
MESSAGE_BYTES_MIN: Final = 1024
"""The least charge of a message, in bytes, whatever it carries (all releases)."""


class MemoryUsage:
    """One node of the tree: `used` of `limit` bytes, and the rounded `percent` of it.

    A node below `parent` has `portion` of its limit, rounded down, and follows its changes. A node
    with a `limit` of its own has portion 0. A limit of 0 is no limit. The percentage is rounded
    down to a multiple of `min_delta`, so that small changes cause no notice.
    """

    __slots__ = (
        "callbacks",
        "children",
        "is_stopped",
        "limit",
        "listeners",
        "min_delta",
        "notices",
        "parent",
        "percent",
        "portion",
        "used",
    )

    def __init__(
        self,
        limit: int | None,
        parent: MemoryUsage | None = None,
        portion: float = 1.0,
        min_delta: int = 1,
        *,
        execute: Execute | None = None,
    ) -> None:
        if limit is None and (parent is None or portion <= 0):
            raise ValueError("without a limit there must be a part of the parent's")
        if parent is not None and execute is not None:
            raise ValueError("the executor of notices is settled at the root")
        if (limit is not None and limit < 0) or min_delta < 1:
            raise ValueError("a limit is at least 0, and a delta at least 1")
        self.parent = parent
        self.portion = 0.0 if limit is not None else portion
        self.min_delta = min_delta
        self.limit = 0 if limit is None else limit
        self.used = 0
        self.percent = 0
        self.is_stopped = False
        self.children: list[MemoryUsage] = []
        self.listeners: list[UsageListener] = []
        self.callbacks: list[SpaceCallback] = []
        self.notices: Notices = Notices(execute) if parent is None else parent.notices
        if parent is not None:
            with self.notices.changed:
                parent.children.append(self)
                _follow_limit(self)

    def path(self) -> Iterator[MemoryUsage]:
        """Yield this node and all above it."""
        node: MemoryUsage | None = self
        while node is not None:
            yield node
            node = node.parent

    def increase(self, size: int) -> None:
        """Add `size` bytes here and then above."""
        assert size >= 0, "to count less, decrease"
        self._change(size)

    def decrease(self, size: int) -> None:
        """Subtract `size` bytes here and then above."""
        assert size >= 0, "to count more, increase"
        self._change(-size)

    def _change(self, size: int) -> None:
        with self.notices.changed:
            for node in self.path():
                assert node.used + size >= 0, "more is given back than was taken"
                node.used += size
                _refresh(node)
                if node.is_stopped:
                    _stay_while_used(node)
        self.notices.tell()

    def set_limit(self, limit: int) -> None:
        """Give the node its own limit, in bytes; nodes below with a portion of it follow."""
        if limit < 0:
            raise ValueError("a limit is at least 0")
        with self.notices.changed:
            self.limit, self.portion = limit, 0.0
            _follow_limit(self)
        self.notices.tell()

    def set_portion(self, portion: float) -> None:
        """Give the node a portion of its parent's limit."""
        if self.parent is None or portion <= 0:
            raise ValueError("a part is more than nothing of a parent's limit")
        with self.notices.changed:
            self.portion = portion
            _follow_limit(self)
        self.notices.tell()

    def is_full(self, water_mark: int = FULL_PERCENT) -> bool:
        """Return whether this node or one above it has reached `water_mark` percent."""
        return any(node.percent >= water_mark for node in self.path())

    def room_for(self, size: int) -> bool:
        """Return whether `size` more bytes keep within the limits here and above.

        Our addition. The releases check `is_full` before they add, and so exceed a limit by the
        last message. A caller of this method never exceeds it.
        """
        return all(node.limit == 0 or node.used + size <= node.limit for node in self.path())

    def add_listener(self, listener: UsageListener) -> None:
        """Notify `listener` of each change of the percentage from now on."""
        with self.notices.changed:
            self.listeners.append(listener)

    def remove_listener(self, listener: UsageListener) -> None:
        """Stop notifying a listener."""
        with self.notices.changed:
            self.listeners.remove(listener)

    def notify_when_not_full(self, callback: SpaceCallback) -> bool:
        """Register a callback that runs once when there is space; return whether it was registered.

        If not, there is space already or the node has stopped, and the caller goes on. If the
        parent is full the callback waits there, and this node is checked again when the parent has
        space.
        """
        with self.notices.changed:
            return _register(self, callback)

    def wait_for_space(self, timeout_s: float | None = None) -> bool:
        """Block this thread until this node and all above have space; return whether they have.

        It returns without space after the timeout, or when one of these nodes stops. The releases
        check one node after the other; here all must have space at one moment.
        """
        changed = self.notices.changed
        with changed:
            changed.wait_for(lambda: not self.is_full() or self._has_stopped(), timeout_s)
            return not self.is_full()

    def _has_stopped(self) -> bool:
        return any(node.is_stopped for node in self.path())

    def stop(self) -> None:
        """Stop this node and those below: wake all waiting threads and run the remaining callbacks.

        No callback can register here any more (AMQ-4361). Callbacks that wait at a full parent on
        behalf of a stopped node run, too. Current releases still let callers register, and leave
        those at the parent waiting. Charges stay until they are given back.
        """
        with self.notices.changed:
            _stop(self)
            for node in self.path():
                left = [each for each in node.callbacks if _waits_for_stopped(each)]
                self.notices.waiting.extend([SpaceNotice(each) for each in left])
                node.callbacks = [each for each in node.callbacks if not _waits_for_stopped(each)]
            self.notices.changed.notify_all()
        self.notices.tell()

    def fingerprint(self, name: Callable[[SpaceCallback | UsageListener], Hashable]) -> Hashable:
        """Return a value that is equal for trees that behave alike; `name` names callbacks."""
        return (
            self.limit,
            self.portion,
            self.min_delta,
            self.used,
            self.is_stopped,
            tuple([_name_callback(each, self, name) for each in self.callbacks]),
            tuple([name(each) for each in self.listeners]),
            tuple([each.fingerprint(name) for each in self.children]),
        )


class _LookAgain:
    """A callback at a full parent on behalf of `node`, which is checked before `callback` runs."""

    __slots__ = ("callback", "node")

    def __init__(self, node: MemoryUsage, callback: SpaceCallback) -> None:
        self.node = node
        self.callback = callback

    def space_available(self) -> None:
        """Run the callback, or register it at the node itself if that is full."""
        with self.node.notices.changed:
            if _register_here(self.node, self.callback):
                return
        self.callback.space_available()


# Steps under the lock.


def _follow_limit(node: MemoryUsage) -> None:
    """Take the portion of the parent's limit, if the node has one."""
    if node.parent is not None and node.portion > 0:
        # Decimal: 29 percent of 100 bytes are 29, which binary fractions miss.
        node.limit = int(node.parent.limit * Decimal(str(node.portion)))
    _refresh(node)
    for child in node.children:
        if not child.is_stopped:
            _follow_limit(child)


def _refresh(node: MemoryUsage) -> None:
    """Compute the percentage again, and queue the notices."""
    old, new = node.percent, _percent_used(node)
    if old == new:
        return
    node.percent = new
    if node.is_stopped:
        return
    waiting = node.notices.waiting
    if old >= FULL_PERCENT > new:
        node.notices.changed.notify_all()
        waiting.extend([SpaceNotice(each) for each in node.callbacks])
        node.callbacks.clear()
    waiting.extend([ChangeNotice(each, old, new) for each in node.listeners])


def _percent_used(node: MemoryUsage) -> int:
    if node.limit == 0:
        return 0
    return node.used * 100 // node.limit // node.min_delta * node.min_delta


def _register(node: MemoryUsage, callback: SpaceCallback) -> bool:
    if node.is_stopped:
        return False
    if node.parent is not None and _register(node.parent, _LookAgain(node, callback)):
        return True
    return _register_here(node, callback)


def _register_here(node: MemoryUsage, callback: SpaceCallback) -> bool:
    if node.is_stopped or node.percent < FULL_PERCENT:
        return False
    node.callbacks.append(callback)
    return True


def _stop(node: MemoryUsage) -> None:
    node.is_stopped = True
    node.notices.waiting.extend([SpaceNotice(each) for each in node.callbacks])
    node.callbacks.clear()
    for child in list(node.children):
        _stop(child)
    _stay_while_used(node)


def _stay_while_used(node: MemoryUsage) -> None:
    """Remove a stopped node that has no charge from its parent; a charge's copy needs it."""
    if node.parent is None:
        return
    siblings = node.parent.children
    if node.used and node not in siblings:
        siblings.append(node)
    elif not node.used and node in siblings:
        siblings.remove(node)


def _waits_for_stopped(callback: SpaceCallback) -> bool:
    while isinstance(callback, _LookAgain):
        if callback.node.is_stopped:
            return True
        callback = callback.callback
    return False


# Copies and names.


def _name_callback(
    callback: SpaceCallback,
    at: MemoryUsage,
    name: Callable[[SpaceCallback | UsageListener], Hashable],
) -> Hashable:
    """Name a waiting callback, and the path to the node that is checked before it."""
    if isinstance(callback, _LookAgain):
        place = at.children.index(callback.node)
        return place, _name_callback(callback.callback, callback.node, name)
    return name(callback)


def charge_of(message: Message, minimum: int = MESSAGE_BYTES_MIN) -> int:
    """Return the bytes that a message's content is charged.

    That is its body and its properties as MessagePack; no properties cost no bytes. A sum below
    `minimum` is increased by `minimum`: a body of 100 bytes costs 1124. The releases measure the
    whole message as sent, which ours does not have, and marshal properties in their own form.
    """
    properties = len(msgspec.msgpack.encode(message.properties)) if message.properties else 0
    size = message.size + properties
    return size if size >= minimum else minimum + size


class Charged:
    """A message's content: `size` bytes, charged to `usage` while it has `references`.

    The first reference charges it and the last one discharges it. Threads that share it need a lock
    of their own.
    """

    __slots__ = ("references", "size", "usage")

    def __init__(self, size: int, usage: MemoryUsage | None = None) -> None:
        self.size = size
        self.usage = usage
        self.references = 0

    def house(self, usage: MemoryUsage) -> None:
        """Set the node to charge, unless there is one already (AMQ-2861).

        A copy for another queue is therefore a new `Charged`, without a node (AMQ-2487).
        """
        if self.usage is None:
            assert self.references == 0, "what is referred to has not been charged to a node"
            self.usage = usage

    def retain(self) -> int:
        """Add a reference; return the number of references."""
        self.references += 1
        if self.references == 1 and self.usage is not None:
            self.usage.increase(self.size)
        return self.references

    def release(self) -> int:
        """Remove a reference; return the number left."""
        assert self.references > 0, "what is not referred to is let go"
        self.references -= 1
        if self.references == 0 and self.usage is not None:
            self.usage.decrease(self.size)
        return self.references

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for contents that are charged alike at the same node."""
        return self.size, self.references, self.usage is not None

"""A broker with a disk: its durable queues and confirmed messages outlive a crash.

Owns crash and restart, and the work that is done when nothing else happens. The content of the disk
belongs to `storage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.broker import Broker
from brokerproof.reference.front.refusals import refused
from brokerproof.reference.shared.atomics import Lock
from brokerproof.reference.shared.disk import PowerLost, SimulatedDisk
from brokerproof.reference.systems import Premises, storage_of
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.operations import (
    Crash,
    Declare,
    Drain,
    Inspect,
    Operation,
    Publish,
    Reset,
    Restart,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.front.storage import Storage
    from brokerproof.spec.protocol.answers import Event
    from brokerproof.spec.protocol.candidate import Start, Unsynced

DOWN = refused("the broker is down")


class DurableBroker(Broker):
    """A broker on a disk. Without power, or after a crash, it is down."""

    __slots__ = ("is_down", "mailbox", "storage")

    is_down: bool
    mailbox: Lock
    storage: Storage

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Admit threads one at a time: a process reads its mailbox in order."""

        def start_in_turn(name: str, run: Callable[[], None]) -> None:
            def run_in_turn() -> None:
                with self.mailbox:
                    run()

            start(name, run_in_turn)

        super().on_threads(start_in_turn, tell)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, then the work that is due at rest.

        If the power goes during this, the operation may or may not have happened, and the broker is
        down.
        """
        with self.mailbox:
            return self._handle(operation)

    def _handle(self, operation: Operation) -> Answer:
        if isinstance(operation, Crash | Restart):
            return Answer(error=self._crash_or_restart(operation))
        if self.is_down and not isinstance(operation, Reset):
            return Answer(error=DOWN)
        if isinstance(operation, Declare | Publish) and (why := _unwritable(operation)):
            return Answer(error=refused(f"it cannot be written to a disk: {why}"))
        try:
            answer = super().handle(operation)
            if self.settings.runner == "eager" or isinstance(operation, Drain):
                self._come_to_rest(operation)
            # Events of the work at rest belong to the same answer.
            events = (*answer.events, *self.outbox.take_events())
            parked = self._is_parked(operation, answer.error)
            return Answer(events, answer.error, answer.inspection, parked)
        except PowerLost:
            events = self.outbox.take_events()
            self._go_down()
            return Answer(events, Error("crashed", f"the power went during {name_of(operation)}"))

    def _is_parked(self, operation: Operation, error: Error | None) -> bool:
        if not isinstance(operation, Publish) or error is not None:
            return False
        queue = self.queues.get(operation.queue)
        return queue is not None and queue.has_parked_last()

    def _come_to_rest(self, operation: Operation) -> None:
        if isinstance(operation, Inspect):
            return
        for queue in self.queues.values():
            queue.come_to_rest(drained=isinstance(operation, Drain))

    def _crash_or_restart(self, operation: Crash | Restart) -> Error | None:
        if isinstance(operation, Restart) != self.is_down:
            return DOWN if self.is_down else refused("the broker is up")
        if isinstance(operation, Crash):
            self._go_down()
            return None
        try:
            self._come_back()
        except PowerLost:
            self._go_down()
            return Error("crashed", "the power went during the restart")
        return None

    def _go_down(self) -> None:
        """Lose all memory, and the unsynced part of the disk."""
        self.storage.crash()
        deliveries = self.outbox.deliveries
        super()._reset()
        # Delivery names are unique, across crashes too.
        self.outbox.deliveries = deliveries
        self.is_down = True

    def _come_back(self) -> None:
        """Start again from the disk alone."""
        self.storage.start()
        for definition in list(self.storage.definitions.values()):
            self.declare(
                definition.name,
                definition.order,
                auto_delete=definition.auto_delete,
                durable=True,
            )
        self.is_down = False

    def _reset(self) -> None:
        super()._reset()
        self.mailbox = Lock()
        if hasattr(self, "storage"):
            self.storage.close()
        self.storage = storage_of(self.settings)
        self.is_down = False

    def _premises(self) -> Premises:
        return Premises(self.settings, self.outbox, self.executor, self.clients, self.storage)

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike."""
        return self.is_down, super().fingerprint(), self.storage.fingerprint()


def _unwritable(operation: Declare | Publish) -> str:
    """Return why a name or property (a lone surrogate, 2**64) cannot be encoded; empty if not."""
    try:
        msgspec.msgpack.encode(operation)
    except (OverflowError, UnicodeEncodeError) as error:
        return str(error)
    return ""


class PoweredBroker(DurableBroker):
    """A broker on a simulated disk: it can be copied, and its power can go at any change."""

    __slots__ = ()

    def changes(self) -> int:
        """Return the number of changes made to the disk; see `OnDisk`."""
        return self._disk().changes

    def power_lasts(self, changes: int | None, unsynced: Unsynced | None = None) -> None:
        """Set after how many more changes the power goes, None for never; see `OnDisk`."""
        disk = self._disk()
        disk.power_lost_at = None if changes is None else disk.changes + changes
        self.storage.unsynced = unsynced or self.settings.unsynced

    def _disk(self) -> SimulatedDisk:
        disk = self.storage.disk
        assert isinstance(disk, SimulatedDisk)
        return disk


class BrokerOnFiles(DurableBroker):
    """A broker on files in a temporary folder that is removed with it; it cannot be copied.

    A crash is the end of its process: bytes not passed to the operating system are lost.
    """

    __slots__ = ()

    # Exploring threads needs many copies of one start, and this broker cannot be copied.
    on_threads = None  # type: ignore[assignment]

    def close(self) -> None:
        """Remove the folder; the broker is not used afterwards."""
        self.storage.close()

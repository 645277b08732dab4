"""A broker with a disk: its durable queues outlive a crash, and what was promised of them.

Owns crash and restart, and when the work is done that waits until nothing else happens. Refuses to
know what is on the disk (`storage`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

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
    """A broker on a disk; without power, or after a crash, it is down."""

    __slots__ = ("is_down", "mailbox", "storage")

    is_down: bool
    mailbox: Lock
    storage: Storage

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Let threads in, one at a time: a process reads its mail in the order in which it came."""

        def start_in_turn(name: str, run: Callable[[], None]) -> None:
            def run_in_turn() -> None:
                with self.mailbox:
                    run()

            start(name, run_in_turn)

        super().on_threads(start_in_turn, tell)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, and then what is due when nothing else happens.

        Where the power goes meanwhile, the operation has happened or not, and the broker is down.
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
            # What is done then is told with the answer, too.
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
        """Lose all that is in memory, and of the disk what was not synced."""
        self.storage.crash()
        deliveries = self.outbox.deliveries
        super()._reset()
        # No delivery is ever named like another, be it before a crash.
        self.outbox.deliveries = deliveries
        self.is_down = True

    def _come_back(self) -> None:
        """Start again with what is on the disk; what is down has nothing else."""
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

    def fork(self) -> Self:
        """Return an independent copy."""
        copy = super().fork()
        copy.is_down = self.is_down
        copy.mailbox = Lock()
        copy.storage = self.storage.fork()
        for queue in copy.queues.values():
            queue.move_to(copy.storage)
        return copy

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike."""
        return self.is_down, super().fingerprint(), self.storage.fingerprint()


def _unwritable(operation: Declare | Publish) -> str:
    """Return why a name or a property cannot be written, as half a character or 2**64."""
    try:
        msgspec.msgpack.encode(operation)
    except (OverflowError, UnicodeEncodeError) as error:
        return str(error)
    return ""


class PoweredBroker(DurableBroker):
    """A broker on a simulated disk: it can be copied, and its power can go at any change."""

    __slots__ = ()

    def changes(self) -> int:
        """Return how many changes the disk has been asked for; see `OnDisk`."""
        return self._disk().changes

    def power_lasts(self, changes: int | None, unsynced: Unsynced | None = None) -> None:
        """Let the power go, if ever, after so many more changes; see `OnDisk`."""
        disk = self._disk()
        disk.power_lost_at = None if changes is None else disk.changes + changes
        self.storage.unsynced = unsynced or self.settings.unsynced

    def _disk(self) -> SimulatedDisk:
        disk = self.storage.disk
        assert isinstance(disk, SimulatedDisk)
        return disk


class BrokerOnFiles(DurableBroker):
    """A broker on files of a temporary folder, which goes with it; it cannot be copied.

    A crash is the end of its process: what it had not handed to the operating system is lost.
    """

    __slots__ = ()

    # Threads are let in by those who run many copies of one start, and this has one only.
    on_threads = None  # type: ignore[assignment]

    def close(self) -> None:
        """Let go of the folder; nothing is asked of the broker afterwards."""
        self.storage.close()

"""The stores of a broker's queues: each has a front before its index; all share one journal.

Owns the front of each queue (messages added or acknowledged since the last flush) and recovery.

The journal gets every addition and acknowledgement at once, the index only at a `flush`. A batch
may therefore miss a new message, or meet an acknowledged entry. The release flushes in the
background; here a caller, a full front, a count, a full recovery or a set position flushes.

Syncing: nothing is durable before `QueueStores.sync` returns. A caller syncs before it tells a
client that a message is safe, an acknowledgement counts or a queue is gone. Indexes and data files
are never synced: a start rebuilds them from the journal. The journal also syncs when a new file
begins.

Source: the AMQ store of ActiveMQ 5.1 to 5.3, with one change. Here one record clears or deletes a
queue, where the release acknowledges each message, so that a crash leaves no half of it. (A purge
clears a store without paged-in messages, and otherwise goes by message; a priority queue has a
store for each level.)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from brokerproof.reference.activemq.disk.journal import (
    Journal,
    JournalRecord,
    Kind,
    Location,
    location_of,
)
from brokerproof.reference.activemq.disk.reference_store import (
    Listener,
    ReferenceStore,
    StoreParameters,
)
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import Disk

_MADE_FROM_THE_JOURNAL: Final = re.compile(r"index-.*|data-.*-\d+")


class JournaledStore:
    """The store of one queue; `references` is its index with the position of its batches.

    `added` has the messages not yet in the index, in order; `acknowledged` has the entries still in
    it. No key is in both, so a flush may apply first one and then the other.
    """

    __slots__ = ("_front_max", "_journal", "acknowledged", "added", "name", "references")

    def __init__(
        self, name: str, journal: Journal, references: ReferenceStore, front_max: int
    ) -> None:
        self.name = name
        self._journal = journal
        self.references = references
        self._front_max = front_max
        self.added: dict[str, Location] = {}
        self.acknowledged: dict[str, None] = {}

    def add(self, key: str, value: bytes) -> None:
        """Store a message. It replaces one with the same key, and takes the last place.

        Durable after the next sync.
        """
        if key in self.acknowledged:
            self.flush()
        location = self._journal.add(self.name, key, value)
        replaced = self.added.pop(key, None)
        if replaced is not None:
            self._journal.release(replaced)
        self.added[key] = location
        if len(self.added) > self._front_max:
            self.flush()

    def remove(self, key: str) -> bool:
        """Acknowledge a message; return whether it was stored. Durable after the next sync."""
        waiting = self.added.pop(key, None)
        is_indexed = key in self.references.container and key not in self.acknowledged
        if waiting is None and not is_indexed:
            return False
        self._journal.acknowledge(self.name, key)
        if waiting is not None:
            self._journal.release(waiting)
        if is_indexed:
            self.acknowledged[key] = None
            if len(self.acknowledged) > self._front_max:
                self.flush()
        return True

    def flush(self) -> None:
        """Apply the additions to the index, in order, and then the acknowledgements."""
        added, self.added = self.added, {}
        acknowledged, self.acknowledged = self.acknowledged, {}
        for key, location in added.items():
            self._release(self.references.put(key, location.packed()))
        for key in acknowledged:
            self._release(self.references.remove(key))

    def _release(self, reference: bytes | None) -> None:
        if reference is not None:
            self._journal.release(location_of(reference))

    def count(self) -> int:
        """Return the number of messages; flushes."""
        self.flush()
        return len(self.references.container)

    def get(self, key: str) -> bytes | None:
        """Return a message that is not acknowledged, or None."""
        location = self.added.get(key)
        if location is not None:
            return self._journal.read(location)
        if key in self.acknowledged:
            return None
        reference = self.references.container.get(key)
        return None if reference is None else self.message(reference)

    def recover(self, listener: Listener) -> int:
        """Show a listener all messages until it refuses one; return how many it took; flushes."""
        self.flush()
        return self.references.recover(listener, self)

    def recover_next(self, most: int, listener: Listener) -> int:
        """Show a listener the next batch; see `ReferenceStore.recover_next`.

        The batch sees only the index. If it recovers nothing although there is space, the front is
        flushed and the batch is tried once more.
        """
        count = self.references.recover_next(most, listener, self)
        if count == 0 and listener.has_space():
            self.flush()
            count = self.references.recover_next(most, listener, self)
        return count

    def reset_batching(self) -> None:
        """Start the next batch at the head."""
        self.references.reset_batching()

    def set_batch(self, key: str) -> None:
        """Start the next batch behind a message; flushes, unless such positions are ignored."""
        if self.references.parameters.set_batch == "honoured":
            self.flush()
        self.references.set_batch(key)

    def clear(self) -> None:
        """Acknowledge all messages at once; durable after the next sync."""
        self._release_all()
        self.references.clear()

    def delete(self) -> None:
        """Delete the store and its files; its journal records no longer count."""
        self._release_all()
        self.references.container.delete()

    def _release_all(self) -> None:
        if self.added or self.references.container:
            self._journal.clear(self.name)
        for location in self.added.values():
            self._journal.release(location)
        for _, reference in self.references.container.entries():
            self._release(reference)
        self.added = {}
        self.acknowledged = {}

    def is_acknowledged(self, key: str) -> bool:
        """Return whether an acknowledgement of an entry still in the index waits."""
        return key in self.acknowledged

    def message(self, reference: bytes) -> bytes:
        """Return the message that an entry's value refers to."""
        return self._journal.read(location_of(reference))

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return (
            self.name,
            tuple(self.added.items()),
            tuple(self.acknowledged),
            self.references.fingerprint(),
        )

    def meaning(self) -> Hashable:
        """Return the content and read position of a store; see `QueueStores.meaning`."""
        references = self.references
        entries = tuple(
            (key, self.message(reference)) for key, reference in references.container.entries()
        )
        pos = None if references.pos is None else references.container.key_at(references.pos)
        added = tuple((key, self._journal.read(location)) for key, location in self.added.items())
        return self.name, entries, pos, references.last_id, added, frozenset(self.acknowledged)


def _messages_after(records: Iterable[JournalRecord]) -> dict[str, dict[str, Location]]:
    """Return the locations of the messages of each queue that remain after these records."""
    left: dict[str, dict[str, Location]] = {}
    for record in records:
        messages = left.setdefault(record.queue, {})
        if record.kind is Kind.CLEAR:
            messages.clear()
        else:
            messages.pop(record.key, None)
        if record.kind is Kind.ADD:
            messages[record.key] = record.location
    return left


class QueueStores:
    """The stores of all queues of a broker; constructing them is a start, after a crash or not.

    Only the named queues get their messages back; the journal's other queues are cleared. A queue
    opened later begins empty, even if its name existed before. The files `journal-*`, `index-*` and
    `data-*` on the disk belong to these stores.
    """

    __slots__ = ("_journal", "_parameters", "_stores", "disk")

    def __init__(self, disk: Disk, parameters: StoreParameters, names: Iterable[str] = ()) -> None:
        self.disk = disk
        self._parameters = parameters
        for each in disk.names():
            if _MADE_FROM_THE_JOURNAL.fullmatch(each):
                disk.delete(each)
        self._journal = Journal(disk, parameters.journal_file_bytes)
        self._stores: dict[str, JournaledStore] = {}
        self._replay(set(names))

    def _replay(self, names: set[str]) -> None:
        """Rebuild the stores of the named queues from the journal (AMQ-I31)."""
        replayed = _messages_after(self._journal.replay())
        for name in sorted(names):
            references = self.open(name).references
            for key, location in replayed.pop(name, {}).items():
                self._journal.hold(location)
                references.put(key, location.packed())
        # All messages in use are held by now, so the next steps may delete files.
        for name, messages in sorted(replayed.items()):
            if messages:
                self._journal.clear(name)
        self._journal.sync()

    def open(self, name: str) -> JournaledStore:
        """Return the store of a queue; create it if there is none."""
        store = self._stores.get(name)
        if store is None:
            references = ReferenceStore(self.disk, quote(name, safe=""), self._parameters)
            store = JournaledStore(name, self._journal, references, self._parameters.front_max)
            self._stores[name] = store
        return store

    def delete(self, name: str) -> None:
        """Remove the store of a queue with all its messages; durable after the next sync."""
        self._stores.pop(name).delete()

    def names(self) -> list[str]:
        """Return the names of the queues that have a store, sorted."""
        return sorted(self._stores)

    def sync(self) -> None:
        """Make all earlier changes durable before returning.

        Unused files of the journal are deleted.
        """
        self._journal.sync()

    def needs_sync(self) -> bool:
        """Return whether a crash may still undo a change."""
        return self._journal.is_dirty

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        stores = tuple(self._stores[name].fingerprint() for name in self.names())
        return self._journal.fingerprint(), stores

    def meaning(self) -> Hashable:
        """Return a value that is equal for stores that behave alike, whatever is in their files.

        For searches on a simulated disk: positions in files grow without bound, this value does
        not. Stores with an equal value show the same messages in the same batches, now and after
        every crash with the same loss. They may differ in costs, and in when a file becomes full.
        """
        copy: QueueStores = copied(self)
        disk = copy.disk
        assert isinstance(disk, SimulatedDisk), "what is on a real disk is not named"
        disk.has_power, disk.power_lost_at = True, None
        journal = copy._journal
        stores = tuple(copy._stores[name].meaning() for name in copy.names())
        if not journal.is_dirty:
            return stores, (), ()
        # Unsynced records are listed one by one: a crash may keep any prefix of them.
        records = list(journal.records())
        durable = [record for record in records if journal.is_synced(record)]
        kept = tuple(
            (name, tuple((key, journal.read(location)) for key, location in messages.items()))
            for name, messages in sorted(_messages_after(durable).items())
            if messages
        )
        pending = tuple(
            (record.kind, record.queue, record.key, journal.value_of(record))
            for record in records[len(durable) :]
        )
        return stores, kept, pending

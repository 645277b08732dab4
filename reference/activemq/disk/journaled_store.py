"""The stores of a broker's queues: each a journal's front before an index, all with one journal.

Owns what of each queue waits to be put into its index (messages added, messages acknowledged), and
how all of them come back after a crash. Refuses to know what a cursor reads, and who is told what.

A message that is added, or acknowledged, is appended to the journal at once, and to the index only
by a `flush`. So the index lags behind, and a batch may meet what is acknowledged and still there,
and not meet what is there already. The release flushes in the background; here it is the caller, or
a front that is full, or whoever counts, recovers all, or sets a position.

What must be synced when. Nothing here is durable before `QueueStores.sync` has returned; whoever
tells a client that its message is safe, or that its acknowledgement counts, or that its queue is
gone, syncs before. Indexes and their data are never synced, because a start throws them away and
makes them from the journal. Beyond that, the journal syncs by itself only where it begins a file.

Source: the AMQ store of ActiveMQ 5.1 to 5.3. One thing is added to its journal: a queue that is
cleared or deleted is so by one record, where the release acknowledges message by message, so that a
crash leaves no half of it. (A purge clears a store of which nothing is paged in, else it goes by
message too; a queue of priorities has a store for each level.)
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
from brokerproof.reference.shared.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from brokerproof.reference.shared.disk import Disk

_MADE_FROM_THE_JOURNAL: Final = re.compile(r"index-.*|data-.*-\d+")


class JournaledStore:
    """The store of one queue; `references` is its index with the position of its batches.

    `added` has what is not in the index yet, in order, and `acknowledged` what is still there. A
    key is never in both, so that applying first the one and then the other is the same as doing
    things in their order.
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
        """Store a message; if one is stored by this key, it is replaced, and the place is the last.

        It is durable after the next sync.
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
        """Acknowledge a message, and say whether it was there; durable after the next sync."""
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
        """Apply to the index what was added, in order, and then what was acknowledged."""
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
        """Return how many messages there are; flushes."""
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

        What is not in the index yet is not met, unless nothing else is recovered while there is
        space: then the front is flushed, and the batch is tried once more.
        """
        count = self.references.recover_next(most, listener, self)
        if count == 0 and listener.has_space():
            self.flush()
            count = self.references.recover_next(most, listener, self)
        return count

    def reset_batching(self) -> None:
        """Let the next batch begin at the head."""
        self.references.reset_batching()

    def set_batch(self, key: str) -> None:
        """Let the next batch begin behind a message; flushes, unless such a wish is ignored."""
        if self.references.parameters.set_batch == "honoured":
            self.flush()
        self.references.set_batch(key)

    def clear(self) -> None:
        """Acknowledge all messages at once; durable after the next sync."""
        self._release_all()
        self.references.clear()

    def delete(self) -> None:
        """Remove the store with its files; what is left of it in the journal counts no more."""
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
        """Whether an acknowledgement of an entry that is still there waits."""
        return key in self.acknowledged

    def message(self, reference: bytes) -> bytes:
        """Return the message that an entry's value refers to."""
        return self._journal.read(location_of(reference))

    def fork(self, disk: Disk, journal: Journal) -> JournaledStore:
        """Return a copy on a copied disk and journal."""
        copy = object.__new__(JournaledStore)
        copy.name = self.name
        copy._journal = journal
        copy.references = self.references.fork(disk)
        copy._front_max = self._front_max
        copy.added = self.added.copy()
        copy.acknowledged = self.acknowledged.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return (
            self.name,
            tuple(self.added.items()),
            tuple(self.acknowledged),
            self.references.fingerprint(),
        )

    def meaning(self) -> Hashable:
        """Return what a store has and where it is read on; see `QueueStores.meaning`."""
        references = self.references
        entries = tuple(
            (key, self.message(reference)) for key, reference in references.container.entries()
        )
        pos = None if references.pos is None else references.container.key_at(references.pos)
        added = tuple((key, self._journal.read(location)) for key, location in self.added.items())
        return self.name, entries, pos, references.last_id, added, frozenset(self.acknowledged)


def _messages_after(records: Iterable[JournalRecord]) -> dict[str, dict[str, Location]]:
    """Return where the messages of each queue are that are left after all these records."""
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
    """The stores of all queues of a broker; making them is a start, after a crash or not.

    Only the messages of the queues named come back; what the journal has of others is cleared. A
    queue that is opened later begins empty, also if one of this name was there before. On the disk
    the files `journal-*`, `index-*` and `data-*` are theirs; others are left alone.
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
        """Make the stores of the queues named from the journal (AMQ-I31)."""
        replayed = _messages_after(self._journal.replay())
        for name in sorted(names):
            references = self.open(name).references
            for key, location in replayed.pop(name, {}).items():
                self._journal.hold(location)
                references.put(key, location.packed())
        # All is held by now: what follows may delete files.
        for name, messages in sorted(replayed.items()):
            if messages:
                self._journal.clear(name)
        self._journal.sync()

    def open(self, name: str) -> JournaledStore:
        """Return the store of a queue, which is made if there is none."""
        store = self._stores.get(name)
        if store is None:
            references = ReferenceStore(self.disk, quote(name, safe=""), self._parameters)
            store = JournaledStore(name, self._journal, references, self._parameters.front_max)
            self._stores[name] = store
        return store

    def delete(self, name: str) -> None:
        """Remove the store of a queue and all its messages; durable after the next sync."""
        self._stores.pop(name).delete()

    def names(self) -> list[str]:
        """Return the names of the queues that have a store, sorted."""
        return sorted(self._stores)

    def sync(self) -> None:
        """Return when all that was added, acknowledged, cleared and deleted would survive a crash.

        Files of the journal that nobody needs any more are deleted.
        """
        self._journal.sync()

    def needs_sync(self) -> bool:
        """Whether anything was done that a crash may still undo."""
        return self._journal.is_dirty

    def fork(self, disk: Disk) -> QueueStores:
        """Return a copy on a copied disk."""
        copy = object.__new__(QueueStores)
        copy.disk = disk
        copy._parameters = self._parameters
        copy._journal = self._journal.fork(disk)
        copy._stores = {
            name: store.fork(disk, copy._journal) for name, store in self._stores.items()
        }
        return copy

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        stores = tuple(self._stores[name].fingerprint() for name in self.names())
        return self._journal.fingerprint(), stores

    def meaning(self) -> Hashable:
        """Return a value that is equal for stores that behave alike, whatever their files have.

        For whoever searches on a simulated disk: where things lie in files grows for ever, what it
        means does not. Stores of one meaning show the same messages in the same batches, now and
        after every crash of the same loss; what differs is when a file becomes full, and costs.
        """
        assert isinstance(self.disk, SimulatedDisk), "what is on a real disk is not named"
        disk = self.disk.fork()
        disk.has_power, disk.power_lost_at = True, None
        copy: QueueStores = self.fork(disk)  # whose reads are not counted
        journal = copy._journal
        stores = tuple(copy._stores[name].meaning() for name in copy.names())
        if not journal.is_dirty:
            return stores, (), ()
        # What is not durable is named record by record: a crash may keep any first part of it.
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

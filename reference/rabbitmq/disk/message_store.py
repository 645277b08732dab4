"""The message store: bodies on disk by id, counted by the queues that refer to them.

Owns the files of records, the index over them, and the reports that a write is durable. Queues are
its clients. `store_recovery` brings it back after a stop; `compaction` recovers unused room.

Messages are appended to the current file. A full file is synced, and a new one follows, so only the
current file can have unsynced bytes. Another file is deleted when nothing in it is in use.

Simpler than the release: all happens at once, so writes and removals do not wait in a mailbox, and
nothing is read while it is moved. An id leaves the index with its last reference. The release keeps
it until its file is collected, and revives it on a new write, which here is an append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokerproof.reference.rabbitmq.disk.compaction import compact, find_pair
from brokerproof.reference.rabbitmq.disk.store_index import Location, StoreIndex
from brokerproof.reference.rabbitmq.disk.store_records import body_of, record_of
from brokerproof.reference.rabbitmq.disk.terms import (
    StoreTerms,
    forget_terms,
    read_terms,
    write_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from brokerproof.reference.rabbitmq.parameters import Parameters
    from brokerproof.reference.shared.disk import Disk

GARBAGE_MAX: Final = 0.5
"""The part of all bytes that may be unused before files are compacted."""


class StoreFile:
    """A file's size in bytes, and the bytes of messages in use."""

    __slots__ = ("name", "number", "size", "used")

    def __init__(self, store: str, number: int, size: int = 0, used: int = 0) -> None:
        self.name = f"{store}.{number}.rdq"
        self.number = number
        self.size = size
        self.used = used


class StoreClient:
    """A queue as a client of a durable store, which reports its writes.

    A write is *written* when its file was synced, and *ignored* when the client removed the message
    before that. Each id is reported once, as one or the other; `unsynced` are those still to come.
    """

    __slots__ = ("on_ignored", "on_written", "ref", "unsynced")

    def __init__(
        self,
        ref: str,
        on_written: Callable[[Collection[bytes]], None],
        on_ignored: Callable[[Collection[bytes]], None],
    ) -> None:
        self.ref = ref
        self.on_written = on_written
        self.on_ignored = on_ignored
        self.unsynced: set[bytes] = set()


class MessageStore:
    """One store, of the persistent messages of all queues or of their transient ones.

    The transient store is not `durable`: no client waits for its syncs, so there are none.
    """

    __slots__ = (
        "_cache",
        "_cache_bytes",
        "_cached",
        "_file_size",
        "clients",
        "current",
        "disk",
        "durable",
        "files",
        "index",
        "is_dirty",
        "name",
        "size",
        "used",
    )

    def __init__(self, disk: Disk, name: str, parameters: Parameters, *, durable: bool) -> None:
        self.disk = disk
        self.name = name
        self.durable = durable
        self._file_size = parameters.file_size
        self._cache_bytes = parameters.cache_bytes
        self._cache: dict[bytes, bytes] = {}
        self._cached = 0
        self.index = StoreIndex()
        self.clients: dict[str, StoreClient] = {}
        self.current = StoreFile(name, 0)
        self.files = {0: self.current}
        self.size = 0
        self.used = 0
        self.is_dirty = False

    def connect(self, client: StoreClient) -> None:
        """Connect a client under a unique reference."""
        assert client.ref not in self.clients, f"{client.ref} is connected already"
        self.clients[client.ref] = client

    def disconnect(self, client: StoreClient) -> None:
        """Disconnect a client; it gets no more reports."""
        del self.clients[client.ref]

    def write(self, client: StoreClient, msg_id: bytes, body: bytes) -> None:
        """Add a reference to a message; append its body if the store does not have it."""
        if self.durable:
            client.unsynced.add(msg_id)
        location = self.index.get(msg_id)
        if location is not None:
            self.index.pop(msg_id)
            self.index.put(msg_id, location._replace(references=location.references + 1))
            return
        record = record_of(msg_id, body)
        size = len(record)
        file = self.current
        self.disk.append(file.name, record)
        self.is_dirty = self.durable
        self.index.put(msg_id, Location(1, file.number, file.size, size))
        file.size += size
        file.used += size
        self.size += size
        self.used += size
        self._cached += size
        if self._cached > self._cache_bytes:
            self._cache = {}
            self._cached = size
        if size <= self._cache_bytes:
            self._cache[msg_id] = body
        if file.size >= self._file_size:
            self._start_new_file()

    def _start_new_file(self) -> None:
        full = self.current
        self.sync()
        self._cache = {}
        self._cached = 0
        self.current = StoreFile(self.name, full.number + 1)
        self.files[self.current.number] = self.current
        if full.used == 0:
            self._delete(full)
        self._compact_if_wasteful()

    def read(self, msg_id: bytes) -> bytes:
        """Return a message's body; `KeyError` if the store does not have it."""
        body = self._cache.get(msg_id)
        if body is not None:
            return body
        location = self.index.get(msg_id)
        if location is None:
            raise KeyError(msg_id)
        record = self.disk.read(self.files[location.file].name, location.offset, location.size)
        return body_of(record, msg_id)

    def contains(self, msg_id: bytes) -> bool:
        """Return whether a client refers to a message."""
        return self.index.get(msg_id) is not None

    def remove(self, client: StoreClient, msg_ids: Iterable[bytes]) -> None:
        """Remove one reference from each message; unreferenced bytes become garbage."""
        ignored = []
        for msg_id in msg_ids:
            location = self.index.pop(msg_id)
            assert location is not None, "a message is written before it is removed"
            if location.references > 1:
                self.index.put(msg_id, location._replace(references=location.references - 1))
            else:
                self._free(msg_id, location)
            if msg_id in client.unsynced:
                client.unsynced.discard(msg_id)
                ignored.append(msg_id)
        if ignored:
            client.on_ignored(ignored)
        self._compact_if_wasteful()

    def _free(self, msg_id: bytes, location: Location) -> None:
        self._cache.pop(msg_id, None)
        file = self.files[location.file]
        file.used -= location.size
        self.used -= location.size
        if file.used == 0 and file is not self.current:
            self._delete(file)

    def _delete(self, file: StoreFile) -> None:
        del self.files[file.number]
        self.size -= file.size
        self.disk.delete(file.name)

    def _compact_if_wasteful(self) -> None:
        """Combine two files if much is garbage; each such step lowers the number of files."""
        size = self.size
        if size > 2 * self._file_size and size - self.used > GARBAGE_MAX * size:
            pair = find_pair(self, self._file_size)
            if pair is not None:
                compact(self, *pair)

    def sync(self) -> None:
        """Make all writes durable, and report to each client its own writes."""
        if self.is_dirty:
            self.disk.sync(self.current.name)
            self.is_dirty = False
        for client in self.clients.values():
            if client.unsynced:
                written, client.unsynced = client.unsynced, set()
                client.on_written(written)

    def needs_sync(self) -> bool:
        """Return whether a client waits for the report of a write."""
        return any(client.unsynced for client in self.clients.values())

    def terminate(self, clients: Iterable[str]) -> None:
        """Stop cleanly, so that the next start need not scan the files."""
        self.sync()
        files = [(each.number, each.size, each.used) for each in self.files.values()]
        terms = StoreTerms(sorted(clients), files, self.index.dump())
        write_terms(self.disk, f"{self.name}.terms", terms)

    def terms(self) -> StoreTerms | None:
        """Return the terms of a clean shutdown, or None."""
        return read_terms(self.disk, f"{self.name}.terms", StoreTerms)

    def forget_terms(self) -> None:
        """Remove the terms: from now on only another clean shutdown counts."""
        forget_terms(self.disk, f"{self.name}.terms")

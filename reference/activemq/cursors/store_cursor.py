"""The pending messages of one store: a batch in memory, and the rest behind the store's position.

Owns the batch, the cache that fills it as messages arrive, the pending count, and the detection of
duplicates. Does not know how the store keeps messages, nor their consumers.

While the cache is on, all pending messages are in the batch. An arrival without room turns the
cache off and sets the store's position behind the last cached message, where the next batch starts.
A message already in the batch or paged in is a true duplicate: a restarted reading meets it again.
The audit alone does not decide, since it knows nothing of numbers below its window (`audit`).

Sources: the analysis of ActiveMQ's queue (5.1), the "storage pointer" of its section on receiving
and sending; ActiveMQ's store cursor, 5.1 to 5.3; AMQ-1957, AMQ-1984, AMQ-2016, AMQ-2020, AMQ-2149.
Model: `models/activemq/cursor_page_in.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.activemq.disk.reference_store import NoMessage, Recovered
from brokerproof.reference.activemq.memory.references import Reference, Stored, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from brokerproof.reference.activemq.audit import MessageAudit
    from brokerproof.reference.activemq.disk.journaled_store import JournaledStore
    from brokerproof.reference.activemq.memory.queue_memory import GivesWay, QueueMemory
    from brokerproof.reference.activemq.memory.usage import Charged
    from brokerproof.reference.activemq.parameters import CursorParameters

PRODUCER = ""
"""The only producer in the audit: the queue itself, which numbers all arrivals."""


@dataclass(slots=True, eq=False)
class Cached:
    """A message of the batch."""

    stored: Stored
    content: Charged


class Surroundings(Protocol):
    """The queue, as its cursors see it."""

    @property
    def audit(self) -> MessageAudit:
        """The audit, shared by all cursors of the queue."""
        ...

    @property
    def paged_in(self) -> Mapping[str, Reference]:
        """The paged-in messages by id."""
        ...

    def others(self, cursor: GivesWay) -> Iterable[GivesWay]:
        """Return the parts that give way to a message that this cursor reads."""
        ...


class StoreCursor:
    """The cursor of one store; `size` is the number of its pending messages."""

    __slots__ = (
        "batch",
        "cache_enabled",
        "last_cached",
        "level",
        "memory",
        "needs_reset",
        "parameters",
        "queue",
        "size",
        "store",
        "store_has_messages",
    )

    def __init__(
        self,
        store: JournaledStore,
        level: int,
        memory: QueueMemory,
        parameters: CursorParameters,
        queue: Surroundings,
    ) -> None:
        self.store = store
        self.level = level
        self.memory = memory
        self.parameters = parameters
        self.queue = queue
        # An ordered dictionary: a plain one is slow to delete from the front.
        self.batch: OrderedDict[str, Cached] = OrderedDict()
        self.size = store.count()
        self.cache_enabled = self.size == 0
        self.last_cached: str | None = None
        self.needs_reset = False
        self.store_has_messages = self.size > 0

    def is_empty(self) -> bool:
        """Return whether no message is pending; after AMQ-1957 the size may be negative."""
        return self.size <= 0

    def add_last(self, stored: Stored) -> None:
        """Store an arriving message and make it pending; keep it in memory too if there is room."""
        message = stored.message
        self.store.add(message.id, encoded(stored))
        if self.size == 0 and self.parameters.cache == "placed":
            self._cache_goes_on()
        if self.cache_enabled:
            if self.memory.has_room(self.memory.size_of(message)):
                self._cache(stored)
            else:
                self._cache_goes_off()
        self.size += 1

    def _cache_goes_on(self) -> None:
        """Turn the cache on: with nothing pending, arrivals need no reading. 5.1 never did."""
        if not self.cache_enabled:
            self.cache_enabled = True
            self.last_cached = None

    def _cache(self, stored: Stored) -> None:
        if self._is_new(stored):
            self.batch[stored.message.id] = Cached(stored, self.memory.charge(stored.message))
        self.last_cached = stored.message.id

    def _is_new(self, stored: Stored) -> bool:
        return not self.queue.audit.is_duplicate(PRODUCER, stored.arrival)

    def _cache_goes_off(self) -> None:
        self.cache_enabled = False
        if self.last_cached is not None and self.parameters.cache == "placed":
            self.store.set_batch(self.last_cached)
            self.needs_reset = False

    def has_next(self, most: int) -> bool:
        """Return whether there is a next message; read up to `most` if none is in memory."""
        if not self.batch:
            self._fill_batch(most)
        return bool(self.batch)

    def _fill_batch(self, most: int) -> None:
        self._start_over_if_due()
        if self.cache_enabled or not (self.store_has_messages or self.size > 0):
            return
        self.store_has_messages = False
        try:
            self.store.recover_next(most, self)
        except NoMessage:
            # The release's pass ends like this: it logs the failure and reports it to no client.
            return
        self.store_has_messages = bool(self.batch)

    def _start_over_if_due(self) -> None:
        if self.needs_reset:
            self.store.reset_batching()
            self.needs_reset = False

    def has_space(self) -> bool:
        """Return whether the store may read on; see `Listener`."""
        return self.memory.make_room(self.memory.minimum, self.queue.others(self))

    def recover(self, key: str, value: bytes) -> Recovered:
        """Take a message that the store has read into the batch; see `Listener`."""
        is_checked = self.parameters.paged == "checked"
        if is_checked and (key in self.batch or key in self.queue.paged_in):
            return Recovered.DUPLICATE
        stored = decoded(value)
        size = self.memory.size_of(stored.message)
        if not self.memory.make_room(size, self.queue.others(self)):
            return Recovered.NO_ROOM
        if not self._is_new(stored):
            self.store_has_messages = True
            return Recovered.DUPLICATE
        self.batch[key] = Cached(stored, self.memory.charge(stored.message))
        return Recovered.TAKEN

    def arrival_of_next(self) -> int | None:
        """Return the number of the next message, which need not be in memory.

        None if the position has gone past all pending messages.
        """
        for cached in self.batch.values():
            return cached.stored.arrival
        self._start_over_if_due()
        for key in self._ahead():
            if key not in self.queue.paged_in:
                value = self.store.get(key)
                assert value is not None, "what is not acknowledged is in the store"
                return decoded(value).arrival
        return None

    def _ahead(self) -> Iterator[str]:
        """Yield the keys that the next readings would meet, in order."""
        references = self.store.references
        container, at = references.container, references.pos
        entry = container.first() if at is None else container.next(at)
        while entry is not None:
            key = container.key_at(entry)
            if not self.store.is_acknowledged(key):
                yield key
            entry = container.next(entry)
        yield from list(self.store.added)

    def take_next(self) -> Reference:
        """Remove the first message from the batch and return it; it is no longer pending."""
        _, cached = self.batch.popitem(last=False)
        self.size -= 1
        return Reference(cached.stored, self.level, cached.content, kept=True)

    def clear(self) -> None:
        """Drop the batch; it is read again from the head of the store (gc)."""
        for cached in self.batch.values():
            self.queue.audit.rollback(PRODUCER, cached.stored.arrival)
            cached.content.release()
        self.batch.clear()
        self.cache_enabled = False
        self.needs_reset = True

    def give_way(self) -> bool:
        """Drop the batch to make room; return whether there was one."""
        if not self.batch:
            return False
        self.clear()
        return True

    def can_let_go(self, reference: Reference) -> bool:
        """Return True: the store still has the content."""
        del reference
        return True

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Load the content of a message of this store into memory."""
        self.memory.load(reference, self.store.get, others)

    def remove(self, reference: Reference) -> None:
        """Remove a settled message from the store."""
        self.store.remove(reference.id)

    def purge(self) -> None:
        """Drop all pending messages."""
        self.clear()
        self.store.flush()
        keys = [key for key, _ in self.store.references.container.entries()]
        pending = [key for key in keys if key not in self.queue.paged_in]
        if len(pending) == len(keys):
            self.store.clear()
        else:
            for key in pending:
                self.store.remove(key)
        self.size = 0

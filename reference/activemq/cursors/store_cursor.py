"""What of one store is pending: a batch in memory, and the rest behind the store's position.

Owns the batch, the cache that fills it as messages arrive, the count of what is pending, and what
is a duplicate. Refuses to know where the store keeps messages and who is given them.

While the cache is on, all that is pending is in the batch. When a message arrives for which there
is no room it goes off, and the store's position is set behind the last message that was cached, so
that the next batch is read from there. A message that is in the batch already, or paged in, is a
true duplicate, which a reading that began again meets; the audit alone is never believed, since of
what is below its window it knows nothing (`audit`).

Source: ActiveMQ's store cursor, 5.1 to 5.3; AMQ-1957, AMQ-1984, AMQ-2016, AMQ-2020, AMQ-2149.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from brokerproof.reference.activemq.cursors.references import Reference, Stored, decoded, encoded
from brokerproof.reference.activemq.disk.reference_store import NoMessage, Recovered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from brokerproof.reference.activemq.audit import MessageAudit
    from brokerproof.reference.activemq.disk.journaled_store import JournaledStore
    from brokerproof.reference.activemq.memory_usage import Charged
    from brokerproof.reference.activemq.parameters import CursorParameters
    from brokerproof.reference.activemq.queue_memory import GivesWay, QueueMemory

PRODUCER = ""
"""The one producer whose numbering the audit follows: the queue, which numbers what arrives."""


class Cached(NamedTuple):
    """A message of the batch."""

    stored: Stored
    content: Charged


class Surroundings(Protocol):
    """The queue around a cursor."""

    @property
    def audit(self) -> MessageAudit:
        """What was seen, of all cursors of the queue."""
        ...

    @property
    def paged_in(self) -> Mapping[str, Reference]:
        """What is paged in, by id."""
        ...

    def others(self, cursor: GivesWay) -> Iterable[GivesWay]:
        """Return who gives way to a message that this cursor reads."""
        ...


class StoreCursor:
    """The cursor of one store; `size` is how many of its messages are pending."""

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
        # Not a plain dictionary, which forgets slowly at the front.
        self.batch: OrderedDict[str, Cached] = OrderedDict()
        self.size = store.count()
        self.cache_enabled = self.size == 0
        self.last_cached: str | None = None
        self.needs_reset = False
        self.store_has_messages = self.size > 0

    def is_empty(self) -> bool:
        """Whether nothing is pending; where counters drift, a negative count says so too."""
        return self.size <= 0

    def add_last(self, stored: Stored) -> None:
        """Take in a message that arrives, and store it."""
        message = stored.message
        self.store.add(message.id, encoded(stored))
        if self.size == 0 and self.parameters.counters == "exact":
            self._cache_goes_on()
        if self.cache_enabled:
            if self.memory.has_room(self.memory.size_of(message)):
                self._cache(stored)
            else:
                self._cache_goes_off()
        self.size += 1

    def _cache_goes_on(self) -> None:
        """Nothing is pending: what arrives need not be read again. 5.1 never came back to this."""
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
        """Whether there is a next message; a batch of up to `most` is read if none is in memory."""
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
            # The release's pass ends so: the failure is logged, and nobody is told.
            return
        self.store_has_messages = bool(self.batch)

    def _start_over_if_due(self) -> None:
        if self.needs_reset:
            self.store.reset_batching()
            self.needs_reset = False

    def has_space(self) -> bool:
        """Whether the store is to go on reading; see `Listener`."""
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

        None if none is ahead though some are pending: the position has gone past them.
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
        """Yield what the next readings would meet, in order."""
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
        """Let go of the first message of the batch, which is no longer pending."""
        _, cached = self.batch.popitem(last=False)
        self.size -= 1
        return Reference(cached.stored, self.level, cached.content, kept=True)

    def count_off_again(self) -> None:
        """Count off what was given back and is acknowledged, though it was (AMQ-1984)."""
        self.size -= 1

    def clear(self) -> None:
        """Let go of the batch, which is read again from the head of the store (gc)."""
        for cached in self.batch.values():
            self.queue.audit.rollback(PRODUCER, cached.stored.arrival)
            cached.content.release()
        self.batch.clear()
        self.cache_enabled = False
        self.needs_reset = True

    def give_way(self) -> bool:
        """Let go of the batch for something that comes before it; say whether there was one."""
        if not self.batch:
            return False
        self.clear()
        return True

    def can_let_go(self, reference: Reference) -> bool:
        """Whether the content of a message can be found again: the store has it."""
        del reference
        return True

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Have the content of a message of this store in memory again."""
        self.memory.load(reference, self.store.get, others)

    def remove(self, reference: Reference) -> None:
        """Let the store forget a message that is done with."""
        self.store.remove(reference.id)

    def purge(self) -> None:
        """Drop all that is pending."""
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

"""A node: the parts that share a disk, which are two stores and the queues with their indexes.

Owns starting and stopping: what counts as a clean shutdown, and the order of recovery.

A start is clean for the store if every durable queue and the store itself have left terms (the
files of a clean shutdown, `disk/terms`) that agree on the clients. Otherwise the store's files are
scanned, and a message there is in use if a queue's index has it. A queue whose own terms are good
then still knows its deliveries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from brokerproof.reference.rabbitmq.disk import index_recovery, store_recovery
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.rabbitmq.disk.terms import QueueTerms
    from brokerproof.reference.rabbitmq.parameters import Parameters
    from brokerproof.reference.shared.disk import Disk

PERSISTENT_STORE = "store-persistent"
TRANSIENT_STORE = "store-transient"


class Node:
    """One process of a broker on one disk. Construction starts it with the named durable queues.

    Times are in µs of any clock that does not go back.
    """

    __slots__ = ("disk", "parameters", "persistent_store", "queues", "transient_store")

    def __init__(
        self,
        disk: Disk,
        parameters: Parameters,
        durable_queues: Iterable[str] = (),
        *,
        now_us: int = 0,
    ) -> None:
        self.disk = disk
        self.parameters = parameters
        self.queues: dict[str, VariableQueue] = {}
        store_recovery.wipe(disk, TRANSIENT_STORE)
        self.transient_store = MessageStore(disk, TRANSIENT_STORE, parameters, durable=False)
        self.persistent_store = MessageStore(disk, PERSISTENT_STORE, parameters, durable=True)
        self._recover(sorted(durable_queues), now_us)

    def _recover(self, names: list[str], now_us: int) -> None:
        store = self.persistent_store
        indexes = {
            name: index_recovery.load(self.disk, file_prefix(name), self.parameters)
            for name in names
        }
        terms = {name: index.terms() for name, index in indexes.items()}
        stored = store.terms()
        refs = sorted(each.store_ref for each in terms.values() if each is not None)
        is_clean = stored is not None and len(refs) == len(names) and refs == stored.clients
        # From here on a crash counts as one during operation.
        store.forget_terms()
        for index in indexes.values():
            index.forget_terms()
        if is_clean:
            assert stored is not None
            store_recovery.recover_cleanly(store, stored)
        else:
            references: dict[bytes, int] = {}
            for index in indexes.values():
                index_recovery.remove_duplicates(index, self.disk)
                for entry in index_recovery.live_entries(index):
                    if entry.is_persistent:
                        references[entry.msg_id] = references.get(entry.msg_id, 0) + 1
            store_recovery.recover_from_files(store, references)
        for name, index in indexes.items():
            self._recover_queue(name, index, terms[name], now_us, is_clean=is_clean)

    def _recover_queue(
        self, name: str, index: QueueIndex, terms: QueueTerms | None, now_us: int, *, is_clean: bool
    ) -> None:
        if is_clean:
            assert terms is not None
            index_recovery.take_over_counts(index, terms.unacknowledged)
            count = terms.persistent_count
        else:
            count = index_recovery.drop_without_content(
                index,
                self.persistent_store.contains,
                keeps_deliveries=terms is not None or self.parameters.recovered == "known",
            )
        queue = self._connect(name, index, durable=True, now_us=now_us)
        queue.recover(index.bounds(), count, may_have_stale=is_clean)

    def declare(self, name: str, *, durable: bool, now_us: int = 0) -> VariableQueue:
        """Return a new queue; files of an earlier one of the same name are removed."""
        assert name not in self.queues, f"{name} exists"
        index_recovery.wipe(self.disk, file_prefix(name))
        index = QueueIndex(self.disk, file_prefix(name), self.parameters)
        return self._connect(name, index, durable=durable, now_us=now_us)

    def _connect(
        self, name: str, index: QueueIndex, *, durable: bool, now_us: int
    ) -> VariableQueue:
        queue = self.queues[name] = VariableQueue(
            name,
            index,
            self.persistent_store,
            self.transient_store,
            self.parameters,
            durable=durable,
            now_us=now_us,
        )
        return queue

    def delete(self, name: str) -> None:
        """Remove a queue with all its files."""
        self.queues.pop(name).delete()

    def sync(self) -> None:
        """Make durable what outlives a crash, bodies before positions; confirm what is due."""
        self.persistent_store.sync()
        for queue in self.queues.values():
            queue.sync()

    def terminate(self) -> None:
        """Stop cleanly; the node is not used afterwards."""
        durable = []
        for name, queue in self.queues.items():
            if queue.durable:
                queue.terminate()
                durable.append(name)
            else:
                queue.delete()
        self.queues.clear()
        self.persistent_store.terminate(durable)


def file_prefix(queue: str) -> str:
    """Return the prefix of the names of a queue's files."""
    return f"queue-{quote(queue, safe='')}"

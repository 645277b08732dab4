"""The state of a paging queue, laid out for checks.

Owns the reading of a queue's state into a `View`. It judges and changes nothing; the disk counts
its reads of the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.index_recovery import live_entries
from brokerproof.reference.rabbitmq.paging.invariants import View

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
    from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue


def view_of(queue: VariableQueue, *, owns_stores: bool) -> View:
    """Return a queue's state; `owns_stores` says that no other queue shares its stores."""
    confirms = queue.confirms
    references = None
    if owns_stores:
        references = (
            _references(queue.holdings.persistent_store),
            _references(queue.holdings.transient_store),
        )
    return View(
        q1=tuple(queue.q1),
        q2=tuple(queue.q2),
        delta=queue.delta,
        q3=tuple(queue.q3),
        q4=tuple(queue.q4),
        next_seq=queue.next_seq,
        transient_threshold=queue.transient_threshold,
        length=queue.length,
        ram_count=queue.ram_count,
        persistent_count=queue.persistent_count,
        pending=queue.pending,
        ram_acks=queue.ram_acks.seqs(),
        entries=[
            entry
            for entry in live_entries(queue.holdings.index)
            if entry.is_persistent or entry.seq >= queue.transient_threshold
        ],
        segment=queue.parameters.segment,
        unconfirmed=confirms.unconfirmed,
        msgs_on_disk=confirms.msgs_on_disk,
        msg_indices_on_disk=confirms.msg_indices_on_disk,
        confirmed=confirms.confirmed,
        references=references,
    )


def _references(store: MessageStore) -> dict[bytes, int]:
    return {msg_id: location.references for msg_id, location in store.index.items()}

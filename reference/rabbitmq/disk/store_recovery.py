"""Recovery of the message store: from its terms, or from its files and all queues' indexes.

Owns both ways. The caller counts the references of each id. References are on disk only in the
terms of a clean shutdown. After a crash the files are scanned, and a message is in use if a queue's
index has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.compaction import DRAFT_SUFFIX
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore, StoreFile
from brokerproof.reference.rabbitmq.disk.store_index import Location
from brokerproof.reference.rabbitmq.disk.store_records import records_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.reference.rabbitmq.disk.terms import StoreTerms
    from brokerproof.reference.shared.disk import Disk


def file_numbers(disk: Disk, name: str) -> list[int]:
    """Return the numbers of a store's files, ascending."""
    found = (re.fullmatch(re.escape(name) + r"\.(\d+)\.rdq", each) for each in disk.names())
    return sorted(int(each[1]) for each in found if each)


def wipe(disk: Disk, name: str) -> None:
    """Remove all files of a store of this name: transient messages never come back."""
    for each in disk.names():
        if re.fullmatch(re.escape(name) + r"\.(\d+\.rdq(\.draft)?|terms|terms\.draft)", each):
            disk.delete(each)


def remove_drafts(store: MessageStore) -> None:
    """Remove the draft of a compaction that a loss of power ended."""
    for each in store.disk.names():
        if each.startswith(f"{store.name}.") and each.endswith(f".rdq{DRAFT_SUFFIX}"):
            store.disk.delete(each)


def recover_cleanly(store: MessageStore, terms: StoreTerms) -> None:
    """Take over the state of a clean shutdown."""
    _take_files(store, [StoreFile(store.name, *each) for each in terms.files])
    store.index.load(terms.index)


def recover_from_files(store: MessageStore, references: Mapping[bytes, int]) -> None:
    """Find the messages that are referred to; the rest is garbage."""
    remove_drafts(store)
    files = []
    for number in file_numbers(store.disk, store.name):
        file = StoreFile(store.name, number)
        data = store.disk.read(file.name, 0, store.disk.size(file.name))
        for msg_id, offset, size in records_of(data):
            file.size = offset + size
            if msg_id in references and store.index.get(msg_id) is None:
                file.used += size
                store.index.put(msg_id, Location(references[msg_id], number, offset, size))
        if file.size < len(data):
            store.disk.truncate(file.name, file.size)
        else:
            store.disk.sync(file.name)  # it was found, which does not say that it is durable
        files.append(file)
    _take_files(store, files)


def _take_files(store: MessageStore, files: list[StoreFile]) -> None:
    """Take over files; writing continues in a new one."""
    there = set(store.disk.names())
    store.files = {file.number: file for file in files if file.used}
    for file in files:
        if not file.used and file.name in there:
            store.disk.delete(file.name)
    store.current = StoreFile(store.name, max((file.number for file in files), default=-1) + 1)
    store.files[store.current.number] = store.current
    store.size = sum(file.size for file in store.files.values())
    store.used = sum(file.used for file in store.files.values())

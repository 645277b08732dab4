"""The reference store: a queue's entries in order, and the position of a cursor's batches.

Owns the batch position, its resets, and the loop that reads a batch, in each historical form. The
journal's front answers two questions (`Front`), and the cursor says of each message whether it took
it (`Listener`).

An entry's value is the location of the message in the journal. The position is the record of the
entry looked at last; the next batch begins behind it, or at the head without one. It never stands
on an unlinked record. It is reset when that record is unlinked, when the last recovered entry is
removed, and when the store is empty. A skipped message is therefore met again after a reset, and
the audit decides whether it is taken then.

*Acknowledged but still there*: an acknowledgement may wait in the front while its entry is listed.
There the loop finds no value. The analysis only says that the release's value may be null; that
this is the case is our reading.

Sources: the analysis of ActiveMQ's queue, which prints the loop of 5.1 and a fix; the releases
5.1.0 and 5.3.0 (KahaReferenceStore).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from brokerproof.reference.activemq.disk.data_files import DATA_FILE_BYTES
from brokerproof.reference.activemq.disk.journal import JOURNAL_FILE_BYTES
from brokerproof.reference.activemq.disk.linked_container import LinkedContainer

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.activemq.parameters import Duplicates, FreeListRule, Reading
    from brokerproof.reference.shared.disk import Disk

SetBatch = Literal["honoured", "ignored"]
"""Whether a position set by the cursor counts (5.3), or is ignored (5.1)."""

FRONT_MAX: Final = 4_096


class NoMessage(Exception):
    """The printed loop asked for the id of an absent message.

    It stands for the release's NullPointerException. The position stays, and messages recovered
    before in the same batch stay recovered.
    """


class Recovered(enum.Enum):
    """A cursor's answer for a message."""

    TAKEN = enum.auto()
    DUPLICATE = enum.auto()
    NO_ROOM = enum.auto()


class Listener(Protocol):
    """A cursor that messages are read for. It does not change the store during a reading."""

    def has_space(self) -> bool:
        """Return whether there is memory for one more message."""
        ...

    def recover(self, key: str, value: bytes) -> Recovered:
        """Take a message, or return why not. A duplicate is reported even without room."""
        ...


class Front(Protocol):
    """The journal's front, as a batch sees it."""

    def is_acknowledged(self, key: str) -> bool:
        """Return whether an acknowledgement of a listed entry waits."""
        ...

    def message(self, reference: bytes) -> bytes:
        """Return the message that an entry's value refers to."""
        ...


@dataclass(frozen=True)
class StoreParameters:
    """How the stores of a broker behave; the defaults have no defect.

    Sizes are in bytes. The front holds up to `front_max` messages, and as many acknowledgements.
    """

    reading: Reading = "stop"
    duplicates: Duplicates = "free"
    set_batch: SetBatch = "honoured"
    free_list: FreeListRule = "whole"
    data_file_bytes: int = DATA_FILE_BYTES
    journal_file_bytes: int = JOURNAL_FILE_BYTES
    front_max: int = FRONT_MAX


class _Loop(NamedTuple):
    """The differences between the loops.

    A loop may check for space before it recovers a message, where others leave that to the cursor.
    It may pass a message refused for lack of space. It may ask for the message's id before checking
    that the message exists.
    """

    asks_for_space: bool
    passes_refused: bool
    asks_for_id_first: bool


_LOOPS: Final[dict[Reading, _Loop]] = {
    "stop": _Loop(asks_for_space=False, passes_refused=False, asks_for_id_first=False),
    "advance": _Loop(asks_for_space=True, passes_refused=True, asks_for_id_first=False),
    "document": _Loop(asks_for_space=True, passes_refused=False, asks_for_id_first=False),
    "printed": _Loop(asks_for_space=True, passes_refused=False, asks_for_id_first=True),
}


class ReferenceStore:
    """One queue's entries, and the position of its batches.

    `pos` is the record of the entry looked at last, and `last_id` the key of the entry recovered
    last; either may be None.
    """

    __slots__ = ("container", "last_id", "parameters", "pos")

    def __init__(self, disk: Disk, container: str, parameters: StoreParameters) -> None:
        self.parameters = parameters
        self.container = LinkedContainer(
            disk,
            container,
            data_file_bytes=parameters.data_file_bytes,
            free_list=parameters.free_list,
        )
        self.pos: int | None = None
        self.last_id: str | None = None

    def put(self, key: str, reference: bytes) -> bytes | None:
        """Append an entry; an entry with the same key is removed first, and its value returned."""
        if key not in self.container:
            return self.container.put(key, reference)
        replaced = self.remove(key)
        self.container.put(key, reference)
        return replaced

    def remove(self, key: str) -> bytes | None:
        """Remove an entry and return its value; None if the key is absent.

        The next batch begins at the head if the store is empty, if this entry was recovered last,
        or if the position stands on it. The release has the first case, which follows from the
        others.
        """
        offset = self.container.offset_of(key)
        if offset is None:
            return None
        value = self.container.remove(key)
        if not self.container or self.last_id == key or self.pos == offset:
            self.reset_batching()
        return value

    def clear(self) -> None:
        """Remove all entries."""
        self.container.clear()
        self.reset_batching()

    def reset_batching(self) -> None:
        """Start the next batch at the head (AMQ-I5)."""
        self.pos = None
        self.last_id = None

    def set_batch(self, key: str) -> None:
        """Start the next batch behind an entry, or at the head if the entry is gone."""
        if self.parameters.set_batch == "honoured":
            self.pos = self.container.offset_of(key)

    def recover_next(self, most: int, listener: Listener, front: Front) -> int:
        """Show a listener entries until it took `most` or has no space; return how many it took.

        At least one entry is looked at, even without space. The printed loop raises `NoMessage` at
        an entry that is acknowledged but still listed.
        """
        loop = _LOOPS[self.parameters.reading]
        counts_duplicates = self.parameters.duplicates == "counted"
        container = self.container
        count = 0
        entry = container.first() if self.pos is None else container.next(self.pos)
        while entry is not None:
            key = container.key_at(entry)
            if front.is_acknowledged(key):
                if loop.asks_for_id_first:
                    raise NoMessage(key)
                self.last_id = None
            else:
                said = self._recover(entry, key, listener, front)
                if said is Recovered.TAKEN or (said is Recovered.DUPLICATE and counts_duplicates):
                    count += 1
                    self.last_id = key
                elif said is Recovered.NO_ROOM and not loop.passes_refused:
                    break
            self.pos = entry
            entry = container.next(entry)
            if count >= most or not listener.has_space():
                break
        return count

    def recover(self, listener: Listener, front: Front) -> int:
        """Show a listener all entries until it refuses one; return how many it took.

        The caller has flushed, so no listed entry is acknowledged. The batch position stays. A
        duplicate is passed, even where a batch would count it.
        """
        count = 0
        entry = self.container.first()
        while entry is not None:
            said = self._recover(entry, self.container.key_at(entry), listener, front)
            if said is Recovered.NO_ROOM:
                break
            count += said is Recovered.TAKEN
            entry = self.container.next(entry)
        return count

    def _recover(self, entry: int, key: str, listener: Listener, front: Front) -> Recovered:
        if _LOOPS[self.parameters.reading].asks_for_space and not listener.has_space():
            return Recovered.NO_ROOM
        return listener.recover(key, front.message(self.container.value_at(entry)))

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return self.container.fingerprint(), self.pos, self.last_id

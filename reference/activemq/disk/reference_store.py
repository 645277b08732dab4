"""The reference store: a queue's entries in order, and how far a cursor has read them in batches.

Owns the batch position over the container, what resets it, and the loop that reads a batch, in the
forms that it had. Refuses to know the journal and its front, of which it asks two things, and the
cursor, which says of each message whether it took it.

An entry's value says where the journal has the message. The position is the record of the entry
that was looked at last; the next batch begins behind it, or at the head where there is none. It
never stands on a record that is not in the list: it is reset when that record is unlinked, when the
entry is that was recovered last, and when nothing is left. So a message that was skipped is met
again after a reset, and whether it is taken then is for the audit to say.

*Acknowledged but still there*: an acknowledgement may wait in the front while its entry is still in
the list. There the loop finds no value. That this is when the release's value is null is our
reading; the analysis says only that it may be.

Sources: the analysis of ActiveMQ's queue, which prints the loop of 5.1 and a fix; the releases
5.1.0 and 5.3.0 (KahaReferenceStore).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from brokerproof.reference.activemq.disk.data_files import DATA_FILE_BYTES
from brokerproof.reference.activemq.disk.journal import JOURNAL_FILE_BYTES
from brokerproof.reference.activemq.disk.linked_container import FreeListRule, LinkedContainer

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.shared.disk import Disk

Reading = Literal["stop", "advance", "document", "printed"]
"""Which loop reads a batch: `advance` is 5.1.0's, which passes an entry for which there is no room;
`stop` is 5.3.0's; `document` the analysis's fix as it is meant, `printed` as it is printed."""
Duplicates = Literal["free", "counted"]
"""Whether a duplicate uses up a batch and counts as recovered, as in 5.1 and 5.2, or not."""
SetBatch = Literal["honoured", "ignored"]
"""Whether a position that the cursor sets counts, as in 5.3, or not, as in 5.1."""

FRONT_MAX: Final = 4_096


class NoMessage(Exception):
    """The printed loop asked for the id of a message that is not there.

    It stands for the release's NullPointerException. The position is left where it was then, and
    what was recovered before in the same batch stays recovered.
    """


class Recovered(enum.Enum):
    """What a cursor says of a message that it is shown."""

    TAKEN = enum.auto()
    DUPLICATE = enum.auto()
    NO_ROOM = enum.auto()


class Listener(Protocol):
    """A cursor that messages are read for. It changes nothing in the store meanwhile."""

    def has_space(self) -> bool:
        """Whether there is memory for one message more."""
        ...

    def recover(self, key: str, value: bytes) -> Recovered:
        """Take a message, or say why not. A duplicate is one also where there is no room."""
        ...


class Front(Protocol):
    """What a batch asks of the journal's front."""

    def is_acknowledged(self, key: str) -> bool:
        """Whether an acknowledgement of an entry that is still there waits."""
        ...

    def message(self, reference: bytes) -> bytes:
        """Return the message that an entry's value refers to."""
        ...


@dataclass(frozen=True)
class StoreParameters:
    """How the stores of a broker behave; the defaults are those of a sound one.

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
    """In what the loops differ.

    One may ask for space itself before a message is recovered, where the others leave it to the
    cursor; it may pass what was refused for lack of space; and it may ask for the message's id
    before it asks whether there is a message.
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

    `pos` is the record of the entry that was looked at last, and `last_id` the key of the one that
    was recovered last; None where there is none.
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
        """Append an entry; one that has the key is removed before, and its value returned."""
        if key not in self.container:
            return self.container.put(key, reference)
        replaced = self.remove(key)
        self.container.put(key, reference)
        return replaced

    def remove(self, key: str) -> bytes | None:
        """Remove an entry, and return its value; None if no entry has the key.

        The next batch begins at the head if none is left, or if this was the entry that was
        recovered last, or the one on which the position stands. The first is the release's, and
        follows from the others.
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
        """Let the next batch begin at the head (AMQ-I5)."""
        self.pos = None
        self.last_id = None

    def set_batch(self, key: str) -> None:
        """Let the next batch begin behind an entry, or at the head if it is gone."""
        if self.parameters.set_batch == "honoured":
            self.pos = self.container.offset_of(key)

    def recover_next(self, most: int, listener: Listener, front: Front) -> int:
        """Show a listener the next entries, until it has `most` more, or no space; return how many.

        At least one entry is looked at, though there be no space, if there is one. `NoMessage` is
        what the printed loop comes to at an entry that is acknowledged but still there.
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

        Nothing is acknowledged and still there: the caller has flushed. The position of batches
        stays as it is. A duplicate is passed, also where a batch would count it.
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

    def fork(self, disk: Disk) -> ReferenceStore:
        """Return a copy on a copied disk."""
        copy = object.__new__(ReferenceStore)
        copy.parameters = self.parameters
        copy.container = self.container.fork(disk)
        copy.pos = self.pos
        copy.last_id = self.last_id
        return copy

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return self.container.fingerprint(), self.pos, self.last_id

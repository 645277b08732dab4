"""The store's index: from a message's id to references, file, offset and size.

Owns that mapping, for a million messages in about fifty bytes each.

Recent messages are in a dictionary, which is fast. When it is full, all of it moves to a table of
packed numbers, which is small. A dictionary alone would need some 200 bytes for each message, and
messages on disk should cost little RAM.
"""

from __future__ import annotations

import struct
from array import array
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from brokerproof.reference.rabbitmq.disk.records import ID_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

RECENT_MAX: Final = 4_096
"""The capacity of the dictionary, in messages."""
_RECORD: Final = struct.Struct(f">{ID_BYTES}sIIII")
_SLOTS_MIN: Final = 8
_NO_ENTRY: Final = 0


class Location(NamedTuple):
    """A message's reference count, and the place of its record."""

    references: int
    file: int
    offset: int
    size: int


class PackedTable:
    """Locations by id in flat arrays: open addressing with linear probing, at most half full.

    A slot has the number of an entry, counted from 1. A free entry keeps the next free one as its
    offset.
    """

    __slots__ = ("_count", "_files", "_free", "_ids", "_offsets", "_references", "_sizes", "_slots")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all entries, and release the memory."""
        self._slots = array("I", bytes(4 * _SLOTS_MIN))
        self._ids = bytearray(ID_BYTES)
        self._references = array("I", [0])
        self._files = array("I", [0])
        self._offsets = array("I", [0])
        self._sizes = array("I", [0])
        self._free = _NO_ENTRY
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def _slot_of(self, msg_id: bytes) -> int:
        """Return the slot of the id, or the empty one where it would be put."""
        slots, has_id = self._slots, self._ids.startswith
        mask = len(slots) - 1
        slot = hash(msg_id) & mask
        while (entry := slots[slot]) and not has_id(msg_id, entry * ID_BYTES):
            slot = (slot + 1) & mask
        return slot

    def get(self, msg_id: bytes) -> Location | None:
        """Return a message's location, or None."""
        entry = self._slots[self._slot_of(msg_id)]
        return self._location(entry) if entry else None

    def _location(self, entry: int) -> Location:
        return Location(
            self._references[entry], self._files[entry], self._offsets[entry], self._sizes[entry]
        )

    def put(self, msg_id: bytes, location: Location) -> None:
        """Set a message's location, new or known."""
        slot = self._slot_of(msg_id)
        entry = self._slots[slot]
        if not entry:
            if 2 * (self._count + 1) > len(self._slots):
                self._grow()
                slot = self._slot_of(msg_id)
            entry = self._slots[slot] = self._new_entry(msg_id)
            self._count += 1
        self._references[entry] = location.references
        self._files[entry] = location.file
        self._offsets[entry] = location.offset
        self._sizes[entry] = location.size

    def _new_entry(self, msg_id: bytes) -> int:
        entry = self._free
        if entry != _NO_ENTRY:
            self._free = self._offsets[entry]
            self._ids[entry * ID_BYTES : (entry + 1) * ID_BYTES] = msg_id
            return entry
        self._ids += msg_id
        for column in (self._references, self._files, self._offsets, self._sizes):
            column.append(0)
        return len(self._files) - 1

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("I", bytes(8 * len(old)))
        for entry in old:
            if entry:
                self._slots[self._slot_of(self._id_of(entry))] = entry

    def _id_of(self, entry: int) -> bytes:
        return bytes(self._ids[entry * ID_BYTES : (entry + 1) * ID_BYTES])

    def pop(self, msg_id: bytes) -> Location | None:
        """Remove a message and return its location, or None."""
        hole = self._slot_of(msg_id)
        entry = self._slots[hole]
        if not entry:
            return None
        location = self._location(entry)
        self._close_up(hole)
        self._offsets[entry] = self._free
        self._references[entry] = 0
        self._free = entry
        self._count -= 1
        if self._count == 0:
            self.clear()
        return location

    def _close_up(self, hole: int) -> None:
        """Fill a hole with later entries that belong before it, so that no search ends early."""
        slots = self._slots
        mask = len(slots) - 1
        slot = hole
        while True:
            slot = (slot + 1) & mask
            entry = slots[slot]
            if not entry:
                break
            home = hash(self._id_of(entry)) & mask
            if (slot - home) & mask >= (slot - hole) & mask:
                slots[hole] = entry
                hole = slot
        slots[hole] = _NO_ENTRY

    def items(self) -> Iterator[tuple[bytes, Location]]:
        """Yield ids and locations in arbitrary order."""
        for entry in self._slots:
            if entry:
                yield self._id_of(entry), self._location(entry)


class StoreIndex:
    """All locations of a store: recent ones in a dictionary, the others packed."""

    __slots__ = ("_packed", "_recent")

    def __init__(self) -> None:
        self._recent: dict[bytes, Location] = {}
        self._packed = PackedTable()

    def __len__(self) -> int:
        return len(self._recent) + len(self._packed)

    def get(self, msg_id: bytes) -> Location | None:
        """Return a message's location, or None."""
        location = self._recent.get(msg_id)
        if location is None and self._packed:
            location = self._packed.get(msg_id)
        return location

    def put(self, msg_id: bytes, location: Location) -> None:
        """Set the location of a message that is not in the index."""
        recent = self._recent
        recent[msg_id] = location
        if len(recent) > RECENT_MAX:
            for each, its_location in recent.items():
                self._packed.put(each, its_location)
            self._recent = {}

    def pop(self, msg_id: bytes) -> Location | None:
        """Remove a message and return its location, or None."""
        location = self._recent.pop(msg_id, None)
        if location is None and self._packed:
            location = self._packed.pop(msg_id)
        return location

    def items(self) -> list[tuple[bytes, Location]]:
        """Return ids and locations, by id."""
        return sorted([*self._recent.items(), *self._packed.items()])

    def dump(self) -> bytes:
        """Return the content as bytes, equal for equal content."""
        both = chain(self._recent.items(), self._packed.items())
        return b"".join(sorted(_RECORD.pack(msg_id, *location) for msg_id, location in both))

    def load(self, dumped: bytes) -> None:
        """Add all that was dumped."""
        for msg_id, *numbers in _RECORD.iter_unpack(dumped):
            self.put(msg_id, Location(*numbers))

"""The queue index: which messages of a queue are on disk, and their places.

Owns the journal, the segments, and the merge of both in RAM. Message bodies belong to the store;
`index_recovery` brings an index back after a stop.

A segment's file has the entries of `segment` consecutive sequence numbers; the *place* of an entry
is its number within the segment, from 0 on. An operation is appended to the journal's file and
noted at its segment in RAM. When enough have gathered, a *flush* appends them to the files of their
segments and empties the journal. A message that is published, delivered and acknowledged between
two flushes never reaches a segment's file.

One step more than the release: a flush syncs the journal before it writes segments. Otherwise a
power cut in a flush may leave a segment with operations that the journal has lost, and the
release's tables have no row for this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.combinations import (
    AFTER_ACKNOWLEDGE,
    AFTER_DELIVER,
    AFTER_PUBLISH,
    FILE_PLUS_JOURNAL,
    MARKS,
    NOTHING,
    PD,
    PDA,
    P,
)
from brokerproof.reference.rabbitmq.disk.records import (
    ACKNOWLEDGE,
    DELIVER,
    JOURNAL_MARK,
    JOURNAL_PUBLISH,
    NO_EXPIRY,
    RECORD_BYTES,
    TRANSIENT,
    IndexEntry,
    SegmentContent,
    entry_of,
    segment_content,
    segment_records,
)
from brokerproof.reference.rabbitmq.disk.terms import (
    QueueTerms,
    forget_terms,
    read_terms,
    write_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from brokerproof.reference.rabbitmq.parameters import Parameters
    from brokerproof.reference.shared.disk import Disk


class Segment:
    """The part of a segment in RAM.

    `journal` has the states of places by the journal alone. `published` has the journal's
    publish records by place, one behind the other, up to the highest place needed. `unacknowledged`
    counts the live entries of journal and file together (Q2).
    """

    __slots__ = ("has_file", "journal", "published", "unacknowledged")

    def __init__(self, *, has_file: bool = False) -> None:
        self.journal: dict[int, int] = {}
        self.published = bytearray()
        self.unacknowledged = 0
        self.has_file = has_file

    def keep(self, place: int, record: bytes) -> None:
        """Store a publish record."""
        published = self.published
        at = place * RECORD_BYTES
        if at < len(published):
            published[at : at + RECORD_BYTES] = record
        else:
            published += bytes(at - len(published))
            published += record

    def record(self, place: int) -> bytes:
        """Return the publish record of a place that the journal has published."""
        at = place * RECORD_BYTES
        return bytes(self.published[at : at + RECORD_BYTES])

    def noted(self) -> list[tuple[int, int]]:
        """Return places and states, by place, where the journal has a state."""
        return sorted(noted for noted in self.journal.items() if noted[1] != NOTHING)

    def forget_journal(self) -> None:
        """Clear the journal's part: the segment's file has all of it."""
        self.journal = {}
        self.published = bytearray()


def ignore_ids(msg_ids: Collection[bytes]) -> None:
    """Ignore the ids."""


class QueueIndex:
    """The index of one queue.

    `on_synced` is called after a sync or a flush with the ids of messages that need a confirm and
    whose publish is now durable; `unsynced` are those still to come. `dirty_count` is the number of
    operations in the journal's file.
    """

    __slots__ = (
        "_append",
        "_disk",
        "_journal_limit",
        "dirty_count",
        "journal_name",
        "name",
        "on_synced",
        "segment_size",
        "segments",
        "unsynced",
    )

    def __init__(self, disk: Disk, name: str, parameters: Parameters) -> None:
        self._disk = disk
        self._append = disk.append
        self.name = name
        self.journal_name = f"{name}.journal"
        self.segment_size = parameters.segment
        self._journal_limit = parameters.journal_limit
        self.segments: dict[int, Segment] = {}
        self.dirty_count = 0
        self.unsynced: set[bytes] = set()
        self.on_synced: Callable[[Collection[bytes]], None] = ignore_ids

    def publish(
        self,
        seq: int,
        msg_id: bytes,
        expiry: int | None,
        *,
        is_persistent: bool,
        needs_confirming: bool,
    ) -> None:
        """Note a message at its place; its content is on disk already (W1)."""
        if needs_confirming:
            self.unsynced.add(msg_id)
        number, place = divmod(seq, self.segment_size)
        segment = self.segments.get(number)
        if segment is None:
            segment = self.segments[number] = Segment()
        header = seq if is_persistent else seq | TRANSIENT
        record = JOURNAL_PUBLISH.pack(header, msg_id, NO_EXPIRY if expiry is None else expiry)
        journal = segment.journal
        journal[place] = AFTER_PUBLISH[journal.get(place, NOTHING)]
        segment.keep(place, record)
        segment.unacknowledged += 1
        self._append(self.journal_name, record)
        self.dirty_count += 1
        if self.dirty_count > self._journal_limit:
            self.flush()

    def deliver(self, seqs: Iterable[int]) -> None:
        """Note the first delivery of messages."""
        for seq in seqs:
            self.mark_delivered(seq)
            if self.dirty_count > self._journal_limit:
                self.flush()

    def acknowledge(self, seqs: Iterable[int]) -> None:
        """Note that delivered messages are acknowledged; their entries are no longer live."""
        for seq in seqs:
            self.mark_acknowledged(seq)
            if self.dirty_count > self._journal_limit:
                self.flush()

    def mark_delivered(self, seq: int) -> None:
        """Note one delivery, and leave the flush to the caller."""
        number, place = divmod(seq, self.segment_size)
        journal = self.segments[number].journal
        journal[place] = AFTER_DELIVER[journal.get(place, NOTHING)]
        self._append(self.journal_name, JOURNAL_MARK.pack(seq | DELIVER))
        self.dirty_count += 1

    def mark_acknowledged(self, seq: int) -> None:
        """Note one acknowledgement, and leave the flush to the caller."""
        number, place = divmod(seq, self.segment_size)
        segment = self.segments[number]
        journal = segment.journal
        journal[place] = AFTER_ACKNOWLEDGE[journal.get(place, NOTHING)]
        segment.unacknowledged -= 1
        self._append(self.journal_name, JOURNAL_MARK.pack(seq | ACKNOWLEDGE))
        self.dirty_count += 1

    def flush(self) -> None:
        """Move the journal into the segments' files, and delete the files without a live entry."""
        if self.dirty_count:
            self._disk.sync(self.journal_name)
        for number in sorted(self.segments):
            segment = self.segments[number]
            if segment.unacknowledged == 0:
                if segment.has_file:
                    self._disk.delete(self.file_name(number))
                del self.segments[number]
            elif segment.journal:
                self._append_to_file(number, segment)
        if self.dirty_count:
            self._disk.truncate(self.journal_name, 0)
            self.dirty_count = 0
        self._report_synced()

    def _append_to_file(self, number: int, segment: Segment) -> None:
        gathered = bytearray()
        for place, state in segment.noted():
            if state != PDA:
                record = segment.record(place) if state & P else b""
                gathered += segment_records(place, record, MARKS[state])
        if gathered:
            name = self.file_name(number)
            self._append(name, gathered)
            self._disk.sync(name)
            segment.has_file = True
        segment.forget_journal()

    def sync(self) -> None:
        """Make the journal durable, and report the ids whose publish is durable now."""
        if self.dirty_count:
            self._disk.sync(self.journal_name)
        self._report_synced()

    def needs_sync(self) -> bool:
        """Return whether a message waits for the report of its publish."""
        return bool(self.unsynced)

    def _report_synced(self) -> None:
        if self.unsynced:
            synced, self.unsynced = self.unsynced, set()
            self.on_synced(synced)

    def read(self, start: int, end: int) -> list[IndexEntry]:
        """Return the live entries from `start` to before `end`, in order (Q5)."""
        entries: list[IndexEntry] = []
        size = self.segment_size
        for number in range(start // size, -(-end // size)):
            segment = self.segments.get(number)
            if segment is not None:
                first = number * size
                content = self.content_of(number, segment)
                for place in sorted(content.states):
                    if start <= first + place < end:
                        delivered = content.states[place] == PD
                        record = content.published[place]
                        entries.append(entry_of(first + place, record, is_delivered=delivered))
        return entries

    def content_of(self, number: int, segment: Segment) -> SegmentContent:
        """Return the live places of a segment, by its file and the journal together."""
        content = self.load_file(number, segment)
        states, published = content.states, content.published
        for place in [place for place, state in states.items() if state == PDA]:
            del states[place]
        for place, noted in segment.noted():
            state = FILE_PLUS_JOURNAL[states.get(place, NOTHING), noted].state
            if state == NOTHING:
                states.pop(place, None)
            else:
                states[place] = state
                if noted & P:
                    published[place] = segment.record(place)
        return content

    def load_file(self, number: int, segment: Segment) -> SegmentContent:
        """Return the content of a segment's file, acknowledged entries included."""
        if not segment.has_file:
            return segment_content(b"")
        name = self.file_name(number)
        return segment_content(self._disk.read(name, 0, self._disk.size(name)))

    def file_name(self, number: int) -> str:
        """Return the name of a segment's file."""
        return f"{self.name}.{number}.idx"

    def bounds(self) -> tuple[int, int]:
        """Return the first sequence number of the lowest segment, and the one after the highest.

        Called at a start only; sequence numbers continue from the second.
        """
        if not self.segments:
            return 0, 0
        return min(self.segments) * self.segment_size, (max(self.segments) + 1) * self.segment_size

    def terminate(self, store_ref: str, persistent_count: int) -> None:
        """Stop cleanly, so that the next start need not scan the files."""
        self.sync()
        counts = {number: each.unacknowledged for number, each in sorted(self.segments.items())}
        write_terms(
            self._disk, f"{self.name}.terms", QueueTerms(store_ref, persistent_count, counts)
        )

    def terms(self) -> QueueTerms | None:
        """Return the terms of a clean shutdown, or None."""
        return read_terms(self._disk, f"{self.name}.terms", QueueTerms)

    def forget_terms(self) -> None:
        """Remove the terms: from now on only another clean shutdown counts."""
        forget_terms(self._disk, f"{self.name}.terms")

    def delete(self) -> None:
        """Remove the index with all its files."""
        for number, segment in self.segments.items():
            if segment.has_file:
                self._disk.delete(self.file_name(number))
        if self.dirty_count:
            self._disk.truncate(self.journal_name, 0)
        self.segments.clear()
        self.dirty_count = 0
        self.unsynced.clear()

"""Recovery of a queue's index: load the journal, and repair the effects of a crash.

Owns the two kinds of start. It only asks the store whether it has a message's content.

After a clean shutdown the journal is loaded and the counts are those of the terms. After a crash
the journal may repeat what a flush had already written (`JOURNAL_MINUS_FILE`), the last record of a
file may be torn, and a message's content may be missing. If a queue's terms are good and only the
store's are not, its messages keep their known deliveries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.combinations import (
    AFTER_ACKNOWLEDGE,
    AFTER_DELIVER,
    AFTER_PUBLISH,
    JOURNAL_MINUS_FILE,
    NOTHING,
    PDA,
    A,
    P,
)
from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex, Segment
from brokerproof.reference.rabbitmq.disk.records import (
    ACKNOWLEDGE,
    DELIVER,
    entry_of,
    journal_operations,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from brokerproof.reference.rabbitmq.disk.records import IndexEntry
    from brokerproof.reference.rabbitmq.parameters import Parameters
    from brokerproof.reference.shared.disk import Disk


def wipe(disk: Disk, name: str) -> None:
    """Remove all files of an index of this name."""
    for each in disk.names():
        if re.fullmatch(re.escape(name) + r"\.(\d+\.idx|journal|terms|terms\.draft)", each):
            disk.delete(each)


def load(disk: Disk, name: str, parameters: Parameters) -> QueueIndex:
    """Return the index with its journal in RAM; counts are of the journal alone."""
    index = QueueIndex(disk, name, parameters)
    names = disk.names()
    for each in names:
        numbered = re.fullmatch(re.escape(name) + r"\.(\d+)\.idx", each)
        if numbered:
            index.segments[int(numbered[1])] = Segment(has_file=True)
    if index.journal_name in names:
        _load_journal(index, disk)
    return index


def _load_journal(index: QueueIndex, disk: Disk) -> None:
    data = disk.read(index.journal_name, 0, disk.size(index.journal_name))
    whole = 0
    for kind, seq, record in journal_operations(data):
        whole += len(record)
        number, place = divmod(seq, index.segment_size)
        segment = index.segments.setdefault(number, Segment())
        before = segment.journal.get(place, NOTHING)
        if kind == DELIVER:
            segment.journal[place] = AFTER_DELIVER[before]
        elif kind == ACKNOWLEDGE:
            segment.journal[place] = AFTER_ACKNOWLEDGE[before]
            segment.unacknowledged -= 1
        else:
            segment.journal[place] = AFTER_PUBLISH[before]
            segment.keep(place, record)
            segment.unacknowledged += 1
        index.dirty_count += 1
    if whole < len(data):
        disk.truncate(index.journal_name, whole)


def take_over_counts(index: QueueIndex, unacknowledged: Mapping[int, int]) -> None:
    """Take over the counts of a clean shutdown."""
    for number, count in unacknowledged.items():
        index.segments.setdefault(number, Segment()).unacknowledged = count


def remove_duplicates(index: QueueIndex, disk: Disk) -> None:
    """Remove from the journal what the files have, and torn records from the files."""
    for number, segment in index.segments.items():
        states, _, whole = index.load_file(number, segment)
        if segment.has_file and whole < disk.size(index.file_name(number)):
            disk.truncate(index.file_name(number), whole)
        elif segment.has_file and segment.journal:
            # Its operations are about to leave the journal, so the file must be durable.
            disk.sync(index.file_name(number))
        in_file = sum(state != PDA for state in states.values())
        duplicates = 0
        for place, noted in segment.noted():
            difference = JOURNAL_MINUS_FILE[noted, states.get(place, NOTHING)]
            duplicates += difference.duplicate
            segment.journal[place] = difference.journal
        segment.unacknowledged += in_file - duplicates


def live_entries(index: QueueIndex) -> Iterator[IndexEntry]:
    """Yield all live entries, in order."""
    for number in sorted(index.segments):
        first = number * index.segment_size
        yield from index.read(first, first + index.segment_size)


def drop_without_content(
    index: QueueIndex, contains: Callable[[bytes], bool], *, keeps_deliveries: bool
) -> int:
    """Remove entries without content, and return the number of messages left.

    The rest count as delivered, unless the index's knowledge of deliveries is good. The release
    notes this in RAM alone; here the journal gets it too. Otherwise the files would be ahead of the
    journal if the power went again before the flush was done.
    """
    count = 0
    for number in sorted(index.segments):
        segment = index.segments[number]
        first = number * index.segment_size
        content = index.content_of(number, segment)
        for place, state in sorted(content.states.items()):
            entry = entry_of(first + place, content.published[place], is_delivered=state != P)
            has_content = contains(entry.msg_id)
            if not entry.is_delivered and not (has_content and keeps_deliveries):
                index.mark_delivered(first + place)
            if not has_content:
                index.mark_acknowledged(first + place)
        assert segment.unacknowledged == sum(
            not segment.journal.get(place, NOTHING) & A for place in content.states
        ), "Q2: the count of a segment is that of its live entries"
        count += segment.unacknowledged
    index.flush()
    return count

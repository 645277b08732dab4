"""The invariants of a paging queue between operations: the release's own assertions, and more.

Owns each rule once, by its id, with its sentence. Rules read a `View`, which `inspection` fills in;
the few that the queue itself asserts after each operation read the same fields of the queue.

The release asserts A1 to A5 after each operation (A6 since 3.0.1), M1 to M3 of each message, D1 of
delta, and F1, F2, R1, W1 and PD within an operation. The others are stated in its comments, or
follow from them and were checked on long random runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from brokerproof.reference.rabbitmq.paging.statuses import Delta, InvariantBroken, MessageStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from brokerproof.reference.rabbitmq.disk.records import IndexEntry

SENTENCES = {
    "A1": "q1 has messages only while q3 has",
    "A2": "q2 has messages only while delta has",
    "A3": "delta has messages only while q3 has",
    "A4": "the queue is empty exactly when q3 and q4 are",
    "A5": "no count is below 0",
    "A6": "no more messages are in RAM than are ready",
    "D1": "delta has room for what it counts",
    "M1": "of a persistent message the position is on disk",
    "M2": "where the position is on disk, the body is",
    "M3": "a body is in RAM or on disk",
    "F1": "when the last message leaves q3 and delta has none, q2 is empty",
    "F2": "when the last message leaves q3 and delta has none, q4 is empty",
    "R1": "the index has no more of a part of delta than delta counts",
    "W1": "a position is written after the body",
    "PD": "a message goes straight to a consumer only while nothing is ready",
    "I1": "the length is that of the five places together",
    "I2": "q4, q3, delta, q2, q1 one after the other are in rising order",
    "I3": "delta counts the live entries of its range that are nowhere else",
    "I4": "all in q1 and q4 have their bodies in RAM",
    "I5": "all in q2 and q3 have their bodies on disk alone",
    "I6": "what is in RAM is q1 and q4",
    "I7": "of the pending messages those with bodies in RAM are known",
    "I8": "nothing is both pending and ready",
    "I9": "the persistent messages ready or pending are counted",
    "I10": "what is pending was delivered",
    "I11": "what is pending is before all of q1 and q2",
    "I12": "all sequence numbers were given before the next one",
    "I13": "the index has what was written to it and is not done with, and nothing else",
    "I14": "the stores have what was written to them and is not done with, and nothing else",
    "I15": "what waits for the other half waits for a confirm, and for one half only",
    "I16": "delta is behind q3 and before q2",
    "I19": "the first ready message is the first in q4, or in q3 if there is none",
    "C2": "nothing is both confirmed and waiting to be",
}
"""Each rule's sentence, by its id."""


class Broken(NamedTuple):
    """A rule that does not hold."""

    id: str
    sentence: str


class Counted(Protocol):
    """The fields that the assertions after each operation read, of a queue or of its view."""

    @property
    def q1(self) -> Collection[MessageStatus]: ...  # noqa: D102 - as in `View`
    @property
    def q2(self) -> Collection[MessageStatus]: ...  # noqa: D102
    @property
    def delta(self) -> Delta: ...  # noqa: D102
    @property
    def q3(self) -> Collection[MessageStatus]: ...  # noqa: D102
    @property
    def q4(self) -> Collection[MessageStatus]: ...  # noqa: D102
    @property
    def length(self) -> int: ...  # noqa: D102
    @property
    def ram_count(self) -> int: ...  # noqa: D102
    @property
    def persistent_count(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class View:
    """The state of a queue, first to last in each place.

    `entries` are the live entries of its index, in order, without those of transient messages from
    before a restart (`seq < transient_threshold`). `references` is each store's reference count by
    id, persistent first, over all queues; None if other queues share the stores.
    """

    q1: Sequence[MessageStatus]
    q2: Sequence[MessageStatus]
    delta: Delta
    q3: Sequence[MessageStatus]
    q4: Sequence[MessageStatus]
    next_seq: int
    transient_threshold: int
    length: int
    ram_count: int
    persistent_count: int
    pending: Mapping[int, MessageStatus]
    ram_acks: AbstractSet[int]
    entries: Sequence[IndexEntry]
    segment: int
    unconfirmed: AbstractSet[bytes]
    msgs_on_disk: AbstractSet[bytes]
    msg_indices_on_disk: AbstractSet[bytes]
    confirmed: AbstractSet[bytes]
    references: tuple[Mapping[bytes, int], Mapping[bytes, int]] | None


def broken(rule: str) -> InvariantBroken:
    """Return the exception for a rule that does not hold."""
    return InvariantBroken(rule, SENTENCES[rule])


def assert_sound(queue: Counted) -> None:
    """Raise the first of A1 to A6 that does not hold."""
    for rule in broken_counts(queue):
        raise broken(rule)


def assert_status_sound(status: MessageStatus) -> None:
    """Raise the first of M1 to M3 that does not hold."""
    for rule in broken_of_status(status):
        raise broken(rule)


def broken_counts(queue: Counted) -> Sequence[str]:
    """Return which of A1 to A6 do not hold."""
    length, q3, delta_count = queue.length, queue.q3, queue.delta.count
    found: tuple[str, ...] = ()
    if not q3:
        if queue.q1:
            found += ("A1",)
        if delta_count:
            found += ("A3",)
    if queue.q2 and not delta_count:
        found += ("A2",)
    if (length == 0) != (not q3 and not queue.q4):
        found += ("A4",)
    if length < 0 or queue.ram_count < 0 or queue.persistent_count < 0:
        found += ("A5",)
    if queue.ram_count > length:
        found += ("A6",)
    return found


def broken_of_status(status: MessageStatus) -> Sequence[str]:
    """Return which of M1 to M3 do not hold."""
    found: tuple[str, ...] = ()
    if status.is_persistent and not status.index_on_disk:
        found += ("M1",)
    if status.index_on_disk and not status.msg_on_disk:
        found += ("M2",)
    if status.body is None and not status.msg_on_disk:
        found += ("M3",)
    return found


def broken_invariants(view: View) -> list[Broken]:
    """Return every rule that does not hold, each once."""
    found = dict.fromkeys(
        (
            *broken_counts(view),
            *_of_messages(view),
            *_of_order(view),
            *_of_delta(view),
            *_of_disk(view),
            *_of_confirms(view),
        )
    )
    return [Broken(rule, SENTENCES[rule]) for rule in found]


def _ready(view: View) -> list[MessageStatus]:
    return [*view.q4, *view.q3, *view.q2, *view.q1]


def _of_messages(view: View) -> Iterator[str]:
    for status in (*_ready(view), *view.pending.values()):
        yield from broken_of_status(status)
    if view.length != len(_ready(view)) + view.delta.count:
        yield "I1"
    if any(status.body is None for status in (*view.q1, *view.q4)):
        yield "I4"
    if any(status.body is not None or not status.msg_on_disk for status in (*view.q2, *view.q3)):
        yield "I5"
    if view.ram_count != len(view.q1) + len(view.q4):
        yield "I6"
    if view.ram_acks != {seq for seq, one in view.pending.items() if one.body is not None}:
        yield "I7"
    if not all(status.is_delivered for status in view.pending.values()):
        yield "I10"


def _of_order(view: View) -> Iterator[str]:
    before = [status.seq for status in (*view.q4, *view.q3)]
    after = [status.seq for status in (*view.q2, *view.q1)]
    in_delta = [entry.seq for entry in _delta_entries(view)]
    ready = [*before, *in_delta, *after]
    if any(first >= second for first, second in pairwise(ready)):
        yield "I2"
    if view.pending.keys() & set(ready):
        yield "I8"
    if view.pending and after and max(view.pending) >= min(after):
        yield "I11"
    if any(seq >= view.next_seq for seq in (*ready, *view.pending)):
        yield "I12"
    if ready and min(ready) != next(iter(before), None):
        yield "I19"


def _delta_entries(view: View) -> list[IndexEntry]:
    """Return the entries in delta's range that no other place has."""
    known = {status.seq for status in _ready(view)} | view.pending.keys()
    start, end = view.delta.start, view.delta.end
    return [entry for entry in view.entries if start <= entry.seq < end and entry.seq not in known]


def _of_delta(view: View) -> Iterator[str]:
    start, count, end = view.delta.start, view.delta.count, view.delta.end
    if start + count > end:
        yield "D1"
    if not view.delta.is_blank:
        if view.q3 and view.q3[-1].seq >= start:
            yield "I16"
        if view.q2 and view.q2[0].seq < end:
            yield "I16"
    in_delta = _delta_entries(view)
    if count != len(in_delta):
        yield "I3"
    boundary = min((start // view.segment + 1) * view.segment, end)
    if sum(entry.seq < boundary for entry in in_delta) > count:
        yield "R1"
    if len(view.q3) == 1 and count == 0 and view.q2:
        yield "F1"
    persistent = sum(one.is_persistent for one in (*_ready(view), *view.pending.values()))
    if view.persistent_count != persistent + sum(entry.is_persistent for entry in in_delta):
        yield "I9"


def _of_disk(view: View) -> Iterator[str]:
    in_delta = _delta_entries(view)
    held = [*_ready(view), *view.pending.values()]
    indexed = {status.seq: status.is_delivered for status in held if status.index_on_disk}
    indexed |= {entry.seq: entry.is_delivered for entry in in_delta}
    if indexed != {entry.seq: entry.is_delivered for entry in view.entries}:
        yield "I13"
    if view.references is not None:
        for is_persistent, references in zip((True, False), view.references, strict=True):
            expected: dict[bytes, int] = {}
            stored = [
                *(
                    status.msg_id
                    for status in held
                    if status.msg_on_disk and status.is_persistent == is_persistent
                ),
                *(entry.msg_id for entry in in_delta if entry.is_persistent == is_persistent),
            ]
            for msg_id in stored:
                expected[msg_id] = expected.get(msg_id, 0) + 1
            if expected != references:
                yield "I14"


def _of_confirms(view: View) -> Iterator[str]:
    halves = view.msgs_on_disk | view.msg_indices_on_disk
    if not halves <= view.unconfirmed or view.msgs_on_disk & view.msg_indices_on_disk:
        yield "I15"
    if view.unconfirmed & view.confirmed:
        yield "C2"

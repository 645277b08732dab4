"""The queue index by itself: its order, its files, and that recovery is exact at every step.

After a crash the index must be as after some prefix of its operations, and the prefix includes all
synced ones.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pytest

from brokerproof.reference.rabbitmq.disk import combinations, index_recovery, queue_index
from brokerproof.reference.rabbitmq.disk.combinations import (
    FILE_PLUS_JOURNAL,
    JOURNAL_MINUS_FILE,
    NOTHING,
    PDA,
    A,
    D,
    Differences,
    OrderBroken,
    P,
    Sums,
)
from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
from brokerproof.reference.rabbitmq.disk.records import (
    ACKNOWLEDGE,
    DELIVER,
    JOURNAL_MARK,
    JOURNAL_PUBLISH,
    segment_records,
)
from brokerproof.reference.rabbitmq.paging import Parameters, PowerLost, SimulatedDisk
from brokerproof.reference.shared.copies import copied
from tests.reference.rabbitmq.paging.paging_bench import msg_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

SIZES = Parameters(segment=2, journal_limit=10_000)
Live = dict[int, bool]
"""The live entries of an index: whether each is delivered."""


class Step(NamedTuple):
    """One thing to do to an index."""

    what: str
    seq: int = 0


def script(text: str) -> list[Step]:
    """Return the steps of a script such as ``publish 0, deliver 0, flush``."""
    words = (step.split() for step in text.split(", "))
    return [Step(each[0], int(each[1]) if len(each) > 1 else 0) for each in words]


def do(index: QueueIndex, step: Step) -> None:
    """Carry out a step."""
    match step.what:
        case "publish":
            index.publish(
                step.seq, msg_id(step.seq), None, is_persistent=True, needs_confirming=False
            )
        case "deliver":
            index.deliver([step.seq])
        case "acknowledge":
            index.acknowledge([step.seq])
        case "flush":
            index.flush()
        case "sync":
            index.sync()


def after(steps: Sequence[Step]) -> Live:
    """Return the live entries that steps give, without an index."""
    live: Live = {}
    for step in steps:
        if step.what == "publish":
            live[step.seq] = False
        elif step.what == "deliver":
            live[step.seq] = True
        elif step.what == "acknowledge":
            del live[step.seq]
    return live


def live_of(index: QueueIndex) -> Live:
    """Return the live entries of an index; their ids are the right ones."""
    entries = list(index_recovery.live_entries(index))
    assert all(entry.msg_id == msg_id(entry.seq) for entry in entries)
    return {entry.seq: entry.is_delivered for entry in entries}


def recover(disk: SimulatedDisk, contains: Callable[[bytes], bool] = lambda _: True) -> QueueIndex:
    """Return the index after a crash, with its delivery marks."""
    index = index_recovery.load(disk, "i", SIZES)
    index_recovery.remove_duplicates(index, disk)
    count = index_recovery.drop_without_content(index, contains, keeps_deliveries=True)
    assert count == len(live_of(index))
    assert_counts(index)
    return index


def assert_counts(index: QueueIndex) -> None:
    """Hold Q2, Q5 and Q6."""
    low, following = index.bounds()
    seqs = [entry.seq for entry in index_recovery.live_entries(index)]
    assert seqs == sorted(seqs)
    assert low % SIZES.segment == following % SIZES.segment == 0
    assert all(low <= seq < following for seq in seqs)
    for number, segment in index.segments.items():
        live = [seq for seq in seqs if seq // SIZES.segment == number]
        assert segment.unacknowledged == len(live)


def crashes(steps: Sequence[Step]) -> Iterator[tuple[SimulatedDisk, list[Live]]]:
    """Yield every disk that a crash within the steps can leave, and its permitted states.

    The power goes at each change, and each file keeps each part of its unsynced data.
    """
    at = 0
    while True:
        disk = SimulatedDisk()
        disk.power_lost_at = at
        index = QueueIndex(disk, "i", SIZES)
        done, synced = 0, 0
        try:
            for step in steps:
                done += 1
                do(index, step)
                if step.what in ("sync", "flush"):
                    synced = done
        except PowerLost:
            lawful = [after(steps[:last]) for last in range(synced, done + 1)]
            yield from ((torn, lawful) for torn in torn_disks(disk))
            at += 1
        else:
            return


def torn_disks(disk: SimulatedDisk, parts: int = 1000) -> Iterator[SimulatedDisk]:
    """Yield the disks after a crash: so many parts of the unsynced data of any one file.

    All records have an even size, so that among many parts each has its whole records, and a torn
    one behind them.
    """
    unsynced = disk.unsynced()
    for name, size in {**unsynced, "": 0}.items():
        for kept in {*range(0, size + 1, max(2, size // parts)), size}:
            torn = copied(disk)
            torn.crash({**unsynced, name: kept})
            yield torn


def random_steps(draw: random.Random, count: int) -> list[Step]:
    """Return lawful steps on a few places."""
    states = dict.fromkeys(range(4), NOTHING)
    steps: list[Step] = []
    while len(steps) < count:
        if draw.random() < 0.3:
            steps.append(Step(draw.choice(["flush", "sync"])))
            continue
        seq = draw.randrange(4)
        if states[seq] != PDA:
            what = {NOTHING: "publish", P: "deliver", P | D: "acknowledge"}[states[seq]]
            states[seq] = {NOTHING: P, P: P | D, P | D: PDA}[states[seq]]
            steps.append(Step(what, seq))
    return steps


def assert_recovery_is_exact(steps: Sequence[Step]) -> None:
    """Crash at every change, and at every change of the recovery, and check the result."""
    for disk, lawful in crashes(steps):
        at = disk.changes
        while True:
            again = copied(disk)
            again.power_lost_at = at
            try:
                recovered = live_of(recover(again))
                assert recovered in lawful
                break
            except PowerLost:
                for torn in torn_disks(again, parts=3):
                    assert live_of(recover(torn)) in lawful
            at += 1


@pytest.mark.each_time(3)
@pytest.mark.parametrize("seed", range(8))
def test_recovery_is_exact_whenever_the_power_goes(seed: int) -> None:
    assert_recovery_is_exact(random_steps(random.Random(seed), 8))  # noqa: S311


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8, 200))
def test_recovery_is_exact_on_many_more_runs(seed: int) -> None:
    assert_recovery_is_exact(random_steps(random.Random(seed), 11))  # noqa: S311


Row = TypeVar("Row", bound=tuple[int, ...])


class CountedSums(Sums):
    """The sums, which count the rows that are read."""

    def __init__(self) -> None:
        super().__init__(FILE_PLUS_JOURNAL)
        self.taken: dict[tuple[int, int], int] = {}

    def __getitem__(self, row: tuple[int, int]) -> combinations.Sum:
        self.taken[row] = self.taken.get(row, 0) + 1
        return super().__getitem__(row)


class CountedDifferences(Differences):
    """The differences, which count the rows that are read."""

    def __init__(self) -> None:
        super().__init__(JOURNAL_MINUS_FILE)
        self.taken: dict[tuple[int, int], int] = {}

    def __getitem__(self, row: tuple[int, int]) -> combinations.Difference:
        self.taken[row] = self.taken.get(row, 0) + 1
        return super().__getitem__(row)


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> CountedSums:
    counted = CountedSums()
    monkeypatch.setattr(queue_index, "FILE_PLUS_JOURNAL", counted)
    return counted


@pytest.fixture
def differences(monkeypatch: pytest.MonkeyPatch) -> CountedDifferences:
    counted = CountedDifferences()
    monkeypatch.setattr(index_recovery, "JOURNAL_MINUS_FILE", counted)
    return counted


LIFE = "publish 0, deliver 0, acknowledge 0"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("publish 0", (NOTHING, P)),
        ("publish 0, deliver 0", (NOTHING, P | D)),
        (LIFE, (NOTHING, PDA)),
        ("publish 0, flush, deliver 0", (P, D)),
        ("publish 0, flush, deliver 0, acknowledge 0", (P, D | A)),
        ("publish 0, deliver 0, flush, acknowledge 0", (P | D, A)),
    ],
)
def test_file_and_journal_are_added_by_the_row(
    text: str, row: tuple[int, int], sums: CountedSums
) -> None:
    # The other place of the segment keeps its file from being deleted.
    steps = script(f"publish 1, {text}")
    index = QueueIndex(SimulatedDisk(), "i", SIZES)
    for step in steps:
        do(index, step)
    assert live_of(index) == after(steps)
    assert_counts(index)
    assert sums.taken[row] >= 1


def test_every_row_of_the_sums_has_a_run(sums: CountedSums) -> None:
    for seed in range(20):
        index = QueueIndex(SimulatedDisk(), "i", SIZES)
        steps = random_steps(random.Random(seed), 10)  # noqa: S311
        for number, step in enumerate(steps):
            do(index, step)
            assert live_of(index) == after(steps[: number + 1])
    assert sums.taken.keys() == FILE_PLUS_JOURNAL.keys()


BY_RUNS = {
    row
    for row in JOURNAL_MINUS_FILE
    # Those that have been acknowledged in the journal alone never get to a file, and the mark of a
    # delivery is not lost: no run of this index has these two. They are put on the disk by hand.
    if row not in {(PDA, PDA), (A, P)}
}


def test_every_row_of_the_differences_has_a_run(differences: CountedDifferences) -> None:
    scripts = [
        "publish 0, deliver 0, flush",
        "publish 0, flush, deliver 0, flush, acknowledge 0, publish 1, flush",
        "publish 0, publish 1, flush, deliver 0, acknowledge 0, flush",
        "publish 0, deliver 0, flush, acknowledge 0, flush",
        "publish 0, flush, deliver 0, acknowledge 0, flush",
        "publish 0, publish 1, deliver 0, acknowledge 0, flush",
        "publish 0, publish 1, deliver 1, flush, deliver 0, acknowledge 1, flush",
    ]
    for text in scripts:
        assert_recovery_is_exact(script(text))
        for disk, _ in crashes(script(text)):
            lose_every_content(disk)
    assert differences.taken.keys() >= BY_RUNS


def lose_every_content(disk: SimulatedDisk) -> None:
    """Recover where no message has its content, with the power going at each change of that."""
    at = disk.changes
    while True:
        again = copied(disk)
        again.power_lost_at = at
        try:
            assert live_of(recover(again, lambda _: False)) == {}
        except PowerLost:
            for torn in torn_disks(again, parts=30):
                assert live_of(recover(torn, lambda _: False)) == {}
            at += 1
        else:
            return


JOURNALS = {
    NOTHING: b"",
    P: JOURNAL_PUBLISH.pack(0, msg_id(0), 0),
    D: JOURNAL_MARK.pack(DELIVER),
    A: JOURNAL_MARK.pack(ACKNOWLEDGE),
}


@pytest.mark.parametrize(("row", "difference"), JOURNAL_MINUS_FILE.items())
def test_a_journal_that_repeats_its_file_counts_once(
    row: tuple[int, int], difference: combinations.Difference, differences: CountedDifferences
) -> None:
    journal, file = row
    disk = SimulatedDisk()
    disk.append("i.journal", b"".join(JOURNALS[journal & each] for each in (P, D, A)))
    if file:
        disk.append(
            "i.0.idx",
            segment_records(0, JOURNALS[P] if file & P else b"", (file & (D | A)).bit_count()),
        )
    index = index_recovery.load(disk, "i", SIZES)
    index_recovery.remove_duplicates(index, disk)
    assert differences.taken == {row: 1}
    assert index.segments[0].journal.get(0) == (difference.journal if row[0] else None)
    # Whatever either has seen has happened; so it is live unless one has seen its end.
    live = bool((journal | file) & P) and not (journal | file) & A
    assert index.segments[0].unacknowledged == live
    assert list(live_of(index)) == [0] * live


def test_the_row_of_a_deleted_file_has_this_shortest_run(
    differences: CountedDifferences, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = script("publish 0, deliver 0, flush, acknowledge 0, flush")
    assert_recovery_is_exact(steps)
    assert (A, NOTHING) in differences.taken
    fewer = Differences(JOURNAL_MINUS_FILE)
    del fewer[A, NOTHING]
    monkeypatch.setattr(index_recovery, "JOURNAL_MINUS_FILE", fewer)
    with pytest.raises(OrderBroken):
        assert_recovery_is_exact(steps)


def test_a_flush_that_does_not_sync_the_journal_first_cannot_be_recovered_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = script("publish 0, sync, deliver 0, flush")
    assert_recovery_is_exact(steps)
    sync = SimulatedDisk.sync

    def sync_segments_alone(disk: SimulatedDisk, name: str) -> None:
        if name != "i.journal":
            sync(disk, name)

    monkeypatch.setattr(QueueIndex, "sync", lambda self: sync(self._disk, self.journal_name))
    monkeypatch.setattr(SimulatedDisk, "sync", sync_segments_alone)
    with pytest.raises(OrderBroken):
        assert_recovery_is_exact(steps)


@pytest.mark.parametrize(
    "text",
    [
        "deliver 0",
        "publish 0, publish 0",
        "publish 0, acknowledge 0",
        "publish 0, deliver 0, deliver 0",
        f"{LIFE}, acknowledge 0",
        f"publish 1, {LIFE}, deliver 0",
    ],
)
def test_what_is_out_of_order_is_refused(text: str) -> None:
    index = QueueIndex(SimulatedDisk(), "i", SIZES)
    *lawful, last = script(text)
    for step in lawful:
        do(index, step)
    with pytest.raises((OrderBroken, KeyError)):
        do(index, last)


def test_an_acknowledgement_without_a_delivery_is_found_when_file_and_journal_meet() -> None:
    index = QueueIndex(SimulatedDisk(), "i", SIZES)
    for step in script("publish 0, flush, acknowledge 0"):
        do(index, step)
    with pytest.raises(OrderBroken, match="do not add up"):
        index.read(0, 2)


def test_what_began_and_ended_between_two_flushes_never_reaches_a_file() -> None:
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", SIZES)
    for step in script(f"{LIFE}, publish 1, flush"):
        do(index, step)
    only_one = disk.size("i.0.idx")
    assert live_of(index) == {1: False}
    other = SimulatedDisk()
    for step in script("publish 1, flush"):
        do(index := QueueIndex(other, "i", SIZES), step)
    assert only_one == len(segment_records(1, JOURNALS[P], 0))


def test_a_file_without_live_entries_goes_at_the_next_flush() -> None:
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", SIZES)
    for step in script("publish 0, flush, deliver 0, acknowledge 0"):
        do(index, step)
    assert "i.0.idx" in disk.names()
    index.flush()
    assert disk.names() == ["i.journal"]
    assert index.segments == {}
    assert index.bounds() == (0, 0)


def test_a_full_journal_is_flushed_by_itself() -> None:
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", Parameters(segment=4, journal_limit=3))
    for step in script("publish 0, publish 1, deliver 0"):
        do(index, step)
    assert index.dirty_count == 3
    do(index, Step("deliver", 1))
    assert index.dirty_count == 0
    assert disk.size("i.journal") == 0
    assert live_of(index) == {0: True, 1: True}


def test_a_read_across_segments_numbers_each_by_its_own() -> None:
    index = QueueIndex(SimulatedDisk(), "i", SIZES)
    for step in script("publish 0, publish 1, publish 2, publish 5"):
        do(index, step)
    assert [entry.seq for entry in index.read(0, 6)] == [0, 1, 2, 5]
    assert [entry.seq for entry in index.read(1, 5)] == [1, 2]
    assert index.read(3, 3) == []
    assert index.bounds() == (0, 6)


def test_only_publishes_that_need_a_confirm_are_told_of_once() -> None:
    index = QueueIndex(SimulatedDisk(), "i", SIZES)
    told: list[set[bytes]] = []

    def note(msg_ids: Collection[bytes]) -> None:
        told.append(set(msg_ids))

    index.on_synced = note
    for number in range(3):
        index.publish(number, msg_id(number), None, is_persistent=True, needs_confirming=number > 0)
    assert index.needs_sync()
    index.sync()
    assert told == [{msg_id(1), msg_id(2)}]
    assert not index.needs_sync()
    index.publish(3, msg_id(3), None, is_persistent=True, needs_confirming=True)
    index.flush()
    assert told == [{msg_id(1), msg_id(2)}, {msg_id(3)}]


def test_expiry_and_persistence_come_back_from_both_files() -> None:
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", SIZES)
    index.publish(0, msg_id(0), 12345, is_persistent=False, needs_confirming=False)
    index.publish(1, msg_id(1), None, is_persistent=True, needs_confirming=False)
    from_journal = index.read(0, 2)
    assert [(entry.expiry, entry.is_persistent) for entry in from_journal] == [
        (12345, False),
        (None, True),
    ]
    index.flush()
    assert index.read(0, 2) == from_journal
    assert list(index_recovery.live_entries(index_recovery.load(disk, "i", SIZES))) == from_journal

"""What a watch says of a history that grows is what a check says of the whole, once each."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.streams import ClockStep
from brokerproof.pipeline.rules import violations
from brokerproof.pipeline.rules.violations import strongest
from brokerproof.pipeline.tables import SCHEMA, batch_of, place_of, records_of
from brokerproof.pipeline.watch.batches import clock_lines
from brokerproof.pipeline.watch.watching import (
    Clock,
    QueueState,
    judged,
    still_needed,
    subscribers_of,
)
from brokerproof.spec.histories import CONTROL, NEVER, Record
from tests.pipeline.intervals.test_streams import steady
from tests.pipeline.plain_queues import BROKEN_BY, Fault, Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, recorded, table_of
from tests.pipeline.rules.test_unanswered_gets import losses

if TYPE_CHECKING:
    from collections.abc import Sequence

Key = tuple[str, str, str, str]
KEY = ("requirement", "run", "queue", "message")
FAULTS: tuple[Fault | None, ...] = (None, *BROKEN_BY)


@dataclass
class Watched:
    """A watch without Spark and files: a batch goes on from what the one before left."""

    late: int
    keep: int | None = None
    table: pa.Table = field(default_factory=SCHEMA.empty_table)
    control: pa.Table = field(default_factory=SCHEMA.empty_table)
    states: list[QueueState] = field(default_factory=list)
    newest: dict[str, int] = field(default_factory=dict)
    files: int = 0
    said: Counter[Key] = field(default_factory=Counter)
    withdrawn: int = 0
    rows_at_most: int = 0

    def batch(self, records: Sequence[Record], *, finished: bool = False) -> None:
        """Judge some more records."""
        first = place_of(self.files, 0)
        places = [first + number for number, _ in enumerate(records, 1)]
        new = pa.Table.from_batches([batch_of(records, places)])
        for each in records:
            self.newest[each.run] = max(each.start, self.newest.get(each.run, 0))
        about_none = pc.is_in(new.column("op"), pa.array(sorted(CONTROL)))
        fresh = new.filter(about_none)
        self.control = pa.concat_tables([self.control, fresh])
        stirred = frozenset(fresh.column("run").to_pylist())
        clock = Clock(self.newest, self.late, self.keep, first, stirred, finished)
        of_control = Control.of(
            record for batch in self.control.to_batches() for record in records_of(batch)
        )
        table = pa.concat_tables([self.table, new.filter(pc.invert(about_none))])
        self.table, self.states = judged(
            table, self.states, of_control, subscribers_of(self.control), clock
        )
        if self.keep is not None:
            oldest: dict[str, int] = {}
            for state in self.states:
                coming = clock.forgets_before(state.run)
                oldest[state.run] = min(state.oldest, coming, oldest.get(state.run, NEVER))
            self.control = still_needed(self.control, oldest)
        self.files += 1
        self.rows_at_most = max(self.rows_at_most, self.table.num_rows)
        for state in self.states:
            self.said.update(
                (row["requirement"], state.run, state.queue, row["message"]) for row in state.found
            )
            gone = [(r.requirement, state.run, state.queue, r.message) for r in state.withdrawn]
            self.said.subtract(gone)
            self.withdrawn += len(gone)

    def stays(self) -> pa.Table:
        """Return what is broken in the end."""
        rows = [row for state in self.states for row in state.stays]
        return strongest([pa.Table.from_pylist(rows, violations.SCHEMA)])


def as_seen(records: Sequence[Record]) -> list[Record]:
    """Return a recording whose consumers know of each delivery what the page on histories asks.

    It was made after the subscription, and not before what they know of the one before it.
    """
    subscribed = {each.consumer: each.start for each in records if each.op == "consume"}
    given = sorted(
        (n for n, each in enumerate(records) if each.op == "deliver"),
        key=lambda n: records[n].end or 0,
        reverse=True,
    )
    least: dict[str | None, int] = {}
    result = list(records)
    for number in given:
        each = records[number]
        start = min(each.start, least.get(each.consumer, NEVER))
        start = max(start, subscribed.get(each.consumer, 0))
        least[each.consumer] = start
        result[number] = msgspec.structs.replace(each, start=start, end=max(start, each.end or 0))
    return result


def in_files(
    records: Sequence[Record], late: int, files: int, chance: random.Random
) -> list[list[Record]]:
    """Return the records in files, each in one that comes no later than `late` after it."""
    subscribed = {each.consumer for each in records if each.op == "consume"}

    def comes(each: Record) -> int:
        is_seen = each.op == "deliver" and each.consumer in subscribed
        return (each.end or 0 if is_seen else each.start) + chance.randint(0, late)

    order = sorted(records, key=comes)
    cuts = sorted(chance.sample(range(1, len(order)), min(files - 1, len(order) - 1)))
    return [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]


def recording(
    seed: int, *, steps: int = 50, selective: float = 0.03
) -> tuple[list[Record], int, random.Random]:
    """Return a random recording, and how late it may be told."""
    chance = random.Random(seed)  # noqa: S311
    width = chance.choice((0, 5, 30, 100))
    shape = Shape(steps=steps, queues=chance.choice((1, 2)), selective=selective)
    simulation = simulated(seed, shape, chance.choice(FAULTS))
    records = blurred(simulation.happened, seed, width, natural=True)
    return as_seen(records), 2 * width + 1, chance


def broken(files: Sequence[Sequence[Record]]) -> pa.Table:
    """Return what is broken according to a check of all files."""
    return judged_alone(table_of([each for file in files for each in file])).violations


def checked(files: Sequence[Sequence[Record]]) -> set[Key]:
    """Return the keys of what is broken according to a check of all files."""
    rows = broken(files).to_pylist()
    return {(row["requirement"], row["run"], row["queue"], row["message"]) for row in rows}


def raised(watched: Watched) -> set[Key]:
    """Return what was raised and not taken back; nothing may have been raised twice."""
    assert set(watched.said.values()) <= {0, 1}
    return {key for key, many in watched.said.items() if many}


SEEDS = 30


def test_a_watch_ends_with_what_a_check_says() -> None:
    _ends_with_what_a_check_says(range(3))


def test_a_watch_of_many_histories_ends_with_what_a_check_says() -> None:
    found, early, withdrawn = _ends_with_what_a_check_says(range(SEEDS))
    # What is raised late only is no use to anybody.
    assert found > early > found / 3
    assert withdrawn < found / 50


def test_losses_of_several_batches_are_counted_against_all_gets() -> None:
    records = losses(100, gets=3)
    watched = Watched(late=1)
    for number in range(0, len(records), 20):
        watched.batch(records[number : number + 20])
    watched.batch([], finished=True)
    assert len(raised(watched)) == 97
    assert raised(watched) == checked([records])


def _ends_with_what_a_check_says(seeds: range) -> tuple[int, int, int]:
    found, early, withdrawn = 0, 0, 0
    for seed in seeds:
        records, late, chance = recording(seed)
        files = in_files(records, late, chance.choice((2, 4, 8)), chance)
        expected = checked(files)
        watched = Watched(late)
        for file in files:
            watched.batch(file)
        before = raised(watched)
        assert before <= expected, seed
        withdrawn += watched.withdrawn
        watched.batch([], finished=True)
        assert raised(watched) == expected, seed
        assert watched.stays() == broken(files), seed
        found, early = found + len(expected), early + len(before)
    return found, early, withdrawn


@pytest.mark.thorough
def test_what_is_raised_with_a_bounded_memory_is_what_a_check_says_too() -> None:
    found = 0
    for seed in range(SEEDS):
        records, late, chance = recording(seed, selective=0)
        files = in_files(records, late, 8, chance)
        watched = Watched(late, keep=chance.choice((0, 50, 200)))
        for file in files:
            watched.batch(file)
        watched.batch([], finished=True)
        assert raised(watched) <= checked(files), seed
        found += len(raised(watched))
    assert found > SEEDS / 2


def test_that_a_clock_went_back_is_said_once() -> None:
    for back, size in ((0, 0), (100, 86)):
        watched = Watched(late=1000)
        records = steady(back=back, at=30)
        said = []
        for file in (records[:20], records[20:40], records[40:]):
            watched.batch(file)
            said += [state.clock_step for state in watched.states]
        place = place_of(1, 11)  # the eleventh record of the second file
        assert [each for each in said if each] == ([ClockStep(size, place)] if size else [])
        assert [state.clock_back for state in watched.states] == [size]


def test_rows_of_messages_that_cannot_be_judged_are_counted_as_in_a_check() -> None:
    for back in (0, 100):
        records = steady(back=back, at=30)
        watched = Watched(late=1000)
        for file in (records[:40], records[40:], []):
            watched.batch(file, finished=not file)
        [state] = watched.states
        aside = judged_alone(table_of(records)).aside.column("category").to_pylist()
        assert Counter(aside) == state.unjudged
        assert bool(aside) == bool(back)


def test_the_line_about_a_clock_names_the_file_if_it_is_a_new_one() -> None:
    step = ClockStep(86_000, place_of(4, 7))
    states = [
        QueueState(run="r", queue="q", clock_step=step),
        QueueState(run="r", queue="p", clock_back=86_000),
    ]
    [line] = clock_lines(states, ["a", "b"], files=6)
    assert line.startswith("a:7: the clock of the recorder went back by at least 86,000, or the ")
    [line] = clock_lines(states, ["b"], files=6)
    assert line.startswith("an earlier file:7: the clock")


def test_a_state_that_is_thrown_away_is_noticed() -> None:
    differ = 0
    for seed in range(SEEDS):
        records, late, chance = recording(seed)
        files = in_files(records, late, 8, chance)
        watched = Watched(late)
        for number, file in enumerate(files):
            watched.batch(file)
            if number == 3:
                watched.table, watched.states = SCHEMA.empty_table(), []
        watched.batch([], finished=True)
        once_each = set(watched.said.values()) <= {0, 1}
        differ += not once_each or raised(watched) != checked(files)
    assert differ > SEEDS / 2


def test_what_is_done_with_is_forgotten() -> None:
    shape = Shape(
        steps=400,
        queues=1,
        returns=False,
        breaks=False,
        browsers=False,
        unknown=0,
        selective=0,
        may_drop=0,
    )
    records = as_seen(blurred(simulated(1, shape).happened, 1, 5, natural=True))
    files = in_files(records, 11, 20, random.Random(1))  # noqa: S311
    for_ever, shortly = Watched(11), Watched(11, keep=20)
    for file in files:
        for_ever.batch(file)
        shortly.batch(file)
    assert for_ever.rows_at_most > 3 * shortly.table.num_rows
    assert raised(for_ever) == raised(shortly) == set()


# By hand: each file is a line of what was recorded, times are steps.


def publish(message: str, start: int, end: int) -> Record:
    """Return a publish that was confirmed."""
    return Record(op="publish", queue="q", message=message, start=start, end=end)


def deliver(message: str, consumer: str, position: int, start: int, end: int) -> Record:
    """Return a delivery."""
    return recorded("deliver", start, end, message=message, consumer=consumer, position=position)


def subscribe(consumer: str, start: int) -> Record:
    """Return a subscription."""
    return Record(op="consume", queue="q", consumer=consumer, start=start, end=start + 1)


DECLARED = Record(op="declare", queue="q", start=0, end=0)
"""Without it nothing is said of order."""


def clock(start: int) -> Record:
    """Return a record that only says how late it is."""
    return Record(op="declare", queue="another", start=start, end=start)


def test_what_is_delivered_before_its_publish_is_told_waits_for_it() -> None:
    watched = Watched(late=10)
    watched.batch([subscribe("c", 0), deliver("m", "c", 0, 0, 20), clock(25)])
    assert raised(watched) == set()
    watched.batch([publish("m", 15, 22), clock(60)])
    assert raised(watched) == set()


def test_a_delivery_without_a_publish_is_raised_when_that_is_late() -> None:
    watched = Watched(late=10)
    watched.batch([subscribe("c", 0), deliver("m", "c", 0, 0, 20), clock(25)])
    watched.batch([clock(31)])
    assert raised(watched) == {("nothing-invented", "run", "q", "m")}
    watched.batch([clock(100)])
    assert raised(watched) == {("nothing-invented", "run", "q", "m")}


def test_a_message_held_by_two_waits_for_a_release_to_be_told() -> None:
    given = [subscribe("c", 0), subscribe("d", 0), publish("m", 5, 6), deliver("m", "c", 0, 0, 10)]
    again = deliver("m", "d", 0, 0, 20)
    release = recorded("release", 15, 40, message="m", consumer="c", position=0)
    patient, late = Watched(late=10), Watched(late=10)
    for watched in (patient, late):
        watched.batch([*given, again, clock(25)])
        assert raised(watched) == set()
    patient.batch([release, clock(60)])
    assert raised(patient) == set()
    late.batch([clock(60)])
    assert raised(late) == {("nothing-twice", "run", "q", "m")}
    # It was not told in time, as the option asks; then at least what was said is taken back.
    late.batch([release])
    assert raised(late) == set()
    assert late.withdrawn == 1


@pytest.mark.parametrize("answered", [False, True])
def test_a_crash_may_lose_what_was_given_unless_its_publish_was_answered(answered: bool) -> None:
    kept = msgspec.structs.replace(publish("m", 1, 2), persistent=True)
    unsure = msgspec.structs.replace(kept, outcome="unknown", end=None)
    watched = Watched(late=10)
    declared = Record(op="declare", queue="q", start=0, end=0, durable=True)
    watched.batch([declared, kept if answered else unsure, deliver("m", "c", 0, 3, 4)])
    watched.batch([Record(op="crash", start=5, end=6), Record(op="restart", start=7, end=8)])
    watched.batch([Record(op="drained", queue="q", start=9, end=10), clock(60)])
    watched.batch([], finished=True)
    assert raised(watched) == ({("survives-restart", "run", "q", "m")} if answered else set())


def test_order_waits_for_what_may_have_been_given_unseen() -> None:
    published = [subscribe("c", 0), subscribe("d", 0), publish("m", 5, 6), publish("n", 7, 8)]
    overtaking = deliver("n", "c", 0, 9, 10)
    watched = Watched(late=10)
    watched.batch([DECLARED, *published, overtaking, clock(60)])
    assert raised(watched) == set()
    # What d sees next may have been given to it at 1 already, and may be m once more.
    watched.batch([deliver("m", "c", 1, 40, 41), publish("x", 50, 51), clock(61)])
    watched.batch([deliver("x", "c", 2, 52, 53), clock(70)])
    assert raised(watched) == set()
    left = Record(op="cancel", consumer="d", start=54, end=55)
    watched.batch([left, clock(90)])
    assert raised(watched) == {("fifo-order", "run", "q", "n")}


def test_a_consumer_that_selects_takes_back_what_was_said_of_order() -> None:
    published = [subscribe("c", 0), publish("m", 5, 6), publish("n", 7, 8)]
    given = [deliver("n", "c", 0, 9, 10), deliver("m", "c", 1, 11, 12)]
    watched = Watched(late=10)
    watched.batch([DECLARED, *published, *given, deliver("x", "c", 2, 70, 71), clock(90)])
    assert ("fifo-order", "run", "q", "n") in raised(watched)
    selects = msgspec.structs.replace(subscribe("s", 95), selective=True)
    watched.batch([selects])
    assert ("fifo-order", "run", "q", "n") not in raised(watched)


def test_a_consumer_is_remembered_until_its_channel_is_closed() -> None:
    consume = msgspec.structs.replace(subscribe("c", 0), channel="1")
    deleted = Record(op="delete", queue="q", start=5, end=6)
    closed = Record(op="close", channel="1", start=7, end=8)

    def remembered(*records: Record) -> list[str]:
        control = table_of(records)
        kinds: list[str] = still_needed(control, {"run": 50}).column("op").to_pylist()
        return kinds

    # Whether it was given something unseen is asked when its channel closes, whatever its queue is.
    assert remembered(consume, deleted) == ["consume"]
    assert remembered(consume, deleted, closed) == []


def test_a_consumer_whose_name_comes_again_is_remembered_by_itself() -> None:
    first, again = (
        msgspec.structs.replace(subscribe("c", start), channel=channel)
        for start, channel in ((0, "1"), (30, "2"))
    )
    cancel = Record(op="cancel", consumer="c", channel="1", start=10, end=11)
    control = pa.Table.from_batches([batch_of([first, cancel, again], range(1, 4))])
    assert subscribers_of(control).of["run", "q"] == {
        "c": (0, 11),
        "c (subscribed at 30)": (30, NEVER),
    }
    kept = still_needed(control, {"run": 20})
    assert kept.column("start").to_pylist() == [30]
    assert still_needed(control, {"run": 5}).num_rows == 3

"""Recordings of the same runs with less in them, or with names used again: sound ones stay sound.

Each random recording is altered in one way that leaves what happened as it was. The kernels and the
naive evaluator agree on it, no sound queue is accused, and faults are found all the same, but for
those that are about what the recording does not say any more.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from brokerproof.spec.histories import Record
from tests.pipeline.recorders import recorded
from tests.pipeline.rules.naive import judged_naively
from tests.pipeline.rules.test_kernels_agree import judged, of_run, recording

Alteration = Callable[[Sequence[Record], int], list[Record]]

SEEDS = range(5_000, 5_120)
ABOUT_ORDER = {
    "fifo-order",
    "priority-order",
    "release-rewinds",
    "browser-in-order",
    "browser-once",
    "browser-never-rewound",
}
SETTLEMENTS = ("acknowledge", "reject", "release")


def undeclared(records: Sequence[Record], _seed: int) -> list[Record]:
    """Leave out the declarations."""
    return [each for each in records if each.op != "declare"]


def names_of_channels(records: Sequence[Record], _seed: int) -> list[Record]:
    """Count the consumers of each channel from 1, as some clients name them."""
    made: dict[str | None, int] = {}
    named: dict[str | None, tuple[str, str | None]] = {}
    for each in records:
        if each.op == "consume" and each.channel is not None:
            made[each.channel] = made.get(each.channel, 0) + 1
            named[each.consumer] = (str(made[each.channel]), each.channel)
    result = []
    for each in records:
        name, channel = named.get(each.consumer, (each.consumer, each.channel))
        result.append(replace(each, consumer=name, channel=channel))
    return result


def one_name_again(records: Sequence[Record], _seed: int) -> list[Record]:
    """Let a consumer have the name of one that has been cancelled."""
    channels = {each.consumer: each.channel for each in records if each.op == "consume"}
    free = [each for each in records if each.op == "cancel" and each.end is not None]
    named: dict[str | None, str | None] = {}
    for each in records:
        gone = [cancel for cancel in free if (cancel.end or 0) < each.start]
        if each.op == "consume" and gone and each.consumer != gone[0].consumer:
            named[each.consumer] = gone[0].consumer
            free.remove(gone[0])
    return [
        replace(
            each,
            consumer=named.get(each.consumer, each.consumer),
            channel=channels.get(each.consumer, each.channel),
        )
        for each in records
    ]


def unanswered_gets(records: Sequence[Record], seed: int) -> list[Record]:
    """Leave out the answers to some gets whose messages were not settled."""
    chance = random.Random(seed)  # noqa: S311
    settled = {(each.consumer, each.position) for each in records if each.op in SETTLEMENTS}
    result = []
    for each in records:
        is_get = each.consumer is not None and each.consumer.startswith("g")
        may_be = is_get and each.op in {"deliver", "empty"}
        if may_be and (each.consumer, each.position) not in settled and chance.random() < 0.5:
            result.append(
                recorded(
                    "get",
                    each.start,
                    None,
                    run=each.run,
                    queue=each.queue,
                    consumer=each.consumer,
                    channel=each.channel,
                    mode=each.mode,
                    outcome="unknown",
                )
            )
        else:
            result.append(each)
    return result


def torn_streams(records: Sequence[Record], seed: int) -> list[Record]:
    """Number some deliveries, with their settlements, as another to the same consumer is."""
    chance = random.Random(seed)  # noqa: S311
    given = [each for each in records if each.op == "deliver"]
    again: dict[tuple[str | None, int | None, str | None], int | None] = {}
    for one, other in itertools.pairwise(given):
        if one.consumer == other.consumer and chance.random() < 0.3:
            again[other.consumer, other.position, other.message] = one.position
    return [
        replace(
            each, position=again.get((each.consumer, each.position, each.message), each.position)
        )
        for each in records
    ]


ALTERATIONS = (undeclared, names_of_channels, one_name_again, unanswered_gets, torn_streams)


@pytest.mark.each_time(1)
@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda each: each.__name__)
def test_sound_recordings_stay_sound_and_wrong_ones_are_found(alter: Alteration) -> None:
    changed, found = 0, Counter[str]()
    for seed in SEEDS:
        records, is_sound = recording(seed)
        altered = alter(of_run(records, "r"), seed)
        changed += altered != of_run(records, "r")
        naive = judged_naively(altered)
        assert judged(altered, range(1, len(altered) + 1)) == naive, seed
        if is_sound:
            assert naive == set(), seed
        found.update(each.requirement for each in naive)
    assert changed > len(SEEDS) // 10
    assert {"nothing-twice", "nothing-invented", "nothing-lost"} <= set(found)
    assert bool(set(found) & ABOUT_ORDER) == (alter is not undeclared)

"""The two kernels against loops over all pairs, with ties of every kind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from brokerproof.pipeline import dominance
from brokerproof.pipeline.dominance import Early, Late, greatest, overtaken
from brokerproof.pipeline.names import NO_ROW, Ints
from brokerproof.spec.histories import NEVER


class Row(NamedTuple):
    """One early or late thing; the value of a late one is its bound."""

    group: int
    key: int
    other_key: int
    value: int
    rank: int


def rows(chance: random.Random, size: int, spread: int) -> list[Row]:
    """Return rows with many ties, now and then at the ends of all times."""
    ranks = chance.sample(range(size), size)

    def time() -> int:
        return chance.choice((chance.randrange(spread), chance.randrange(spread), -1, NEVER))

    groups = chance.choice((1, 3))
    return [Row(chance.randrange(groups), time(), time(), time(), rank) for rank in ranks]


def columns(chosen: Sequence[Row]) -> list[Ints]:
    table = np.array(chosen, dtype=np.int64).reshape(-1, len(Row._fields))
    return [table[:, number].copy() for number in range(len(Row._fields))]


def strongest(early: Sequence[Row], which: Sequence[int]) -> int:
    """Return the one of the greatest value, and of those the one of the lowest rank."""
    return max(which, key=lambda n: (early[n].value, -early[n].rank), default=NO_ROW)


def by_pairs(early: Sequence[Row], late: Sequence[Row], *, both_keys: bool) -> list[int]:
    """Return for each late one whom it overtakes, by asking it of all."""
    return [
        strongest(
            early,
            [
                number
                for number, e in enumerate(early)
                if e.group == each.group
                and e.key < each.key
                and (e.other_key < each.other_key or not both_keys)
                and e.value > each.value
            ],
        )
        for each in late
    ]


def sizes(seed: int) -> tuple[list[Row], list[Row]]:
    chance = random.Random(seed)  # noqa: S311
    spread = chance.choice((3, 10, 1000))
    early, late = (rows(chance, chance.choice((0, 1, 2, 7, 40)), spread) for _ in range(2))
    return early, late


@pytest.mark.parametrize("seeds", [range(first, first + 200) for first in range(0, 1000, 200)])
def test_overtaken_is_what_pairs_say(seeds: range) -> None:
    for seed in seeds:
        early, late = sizes(seed)
        group, key, _, value, rank = columns(early)
        of_group, below, _, bound, _ = columns(late)
        found = overtaken(Early(group, key, value, rank), Late(of_group, below, bound))
        assert found.tolist() == by_pairs(early, late, both_keys=False)


@pytest.mark.parametrize("seeds", [range(first, first + 200) for first in range(0, 1000, 200)])
def test_overtaken_of_two_keys_is_what_pairs_say(seeds: range) -> None:
    for seed in seeds:
        early, late = sizes(seed)
        group, key, other_key, value, rank = columns(early)
        of_group, below, also_below, bound, _ = columns(late)
        found = dominance.overtaken(
            Early(group, key, value, rank, other_key), Late(of_group, below, bound, also_below)
        )
        assert found.tolist() == by_pairs(early, late, both_keys=True)


def test_without_ranks_the_first_given_is_first() -> None:
    for seed in range(200):
        early, late = sizes(seed)
        early = [each._replace(rank=number) for number, each in enumerate(early)]
        group, key, _, value, _ = columns(early)
        of_group, below, _, bound, _ = columns(late)
        found = overtaken(Early(group, key, value), Late(of_group, below, bound))
        assert found.tolist() == by_pairs(early, late, both_keys=False)


def test_the_greatest_of_each_group_stands_for_all_of_it() -> None:
    for seed in range(200):
        early, _ = sizes(seed)
        group, key, _, value, rank = columns(early)
        expected = sorted(
            strongest(early, [n for n, each in enumerate(early) if each.group == g])
            for g in {each.group for each in early}
        )
        assert greatest(Early(group, key, value, rank)).tolist() == expected


def test_a_kernel_that_lets_equal_keys_pass_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def eager(early: Early, late: Late, second_key: Ints, below: Ints) -> Ints:
        return by_blocks(early, late, second_key, below + 1)

    by_blocks = dominance._by_blocks
    monkeypatch.setattr(dominance, "_by_blocks", eager)
    with pytest.raises(AssertionError):
        test_overtaken_of_two_keys_is_what_pairs_say(range(100))

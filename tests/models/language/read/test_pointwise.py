"""The pointwise reading of a guard that relates several elements: in certain worlds only."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    Order,
    action,
    exists,
    forall,
    initial,
    require,
)
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read import pointwise as reading
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.language.read.pointwise import (
    Pointwise,
    Possible,
    TooManyCases,
    World,
    merged,
)


class Book(Family):
    """A book on a shelf."""


class Shelf(Model):
    """Books in a row; the shelf is tidy while no book lies left of one that stands."""

    before: Order[Book]
    lies: Map[Book, Bool]
    seen: Map[Book, Bool]

    @initial
    def standing(self) -> None:
        """All stand."""
        self.lies.fill(False)
        self.seen.fill(False)

    @action
    def tip(self, which: Book) -> None:
        """A book falls over."""
        require(~self.lies[which])
        self.lies[which] = True

    @action
    def look(self, which: Book) -> None:
        """A reader looks at a book of a tidy shelf."""
        require(
            ~exists(Book, Book, lambda b, c: self.lies[b] & ~self.lies[c] & self.before(b, c)),
            "tidy",
        )
        require(forall(Book, lambda b: ~self.seen[b]), "first")
        self.seen[which] = True


SYSTEM = trace(Shelf)
POINTWISE = Pointwise(SYSTEM, Book)
BOOKS = 3


def shelf(lying: list[frozenset[int]]) -> World:
    """Return the world in which each book may lie (1) or stand (0)."""
    entries = [
        frozenset((each, 0) for each in case) if len(case) > 1 else (min(case), 0) for case in lying
    ]
    return (), tuple(entries)


def framed() -> reading.Frame:
    """Return the frame of three books in their order."""
    frame, _ = POINTWISE.empty({})
    for number in range(BOOKS):
        frame = POINTWISE.grow(frame, Book, {"before": (1 << number) - 1})
    return frame


EITHER = [frozenset((0,)), frozenset((1,)), frozenset((0, 1))]


@pytest.mark.parametrize("lying", list(itertools.product(EITHER, repeat=BOOKS)))
def test_a_wide_guard_holds_in_exactly_the_worlds_where_the_text_says_so(
    lying: tuple[frozenset[int], ...],
) -> None:
    plain = PlainReading(SYSTEM, Scope({Book: BOOKS}, range(1)))
    world = shelf(list(lying))
    taken, blames = POINTWISE.take(framed(), world, "look", (0,))
    lawful = {
        case
        for case in itertools.product(*map(sorted, lying))
        if plain.enabled("look", (*case, 0, 0, 0), (0,))
    }
    reached = {
        tuple(each[0] for each in entries if isinstance(each, tuple)) for (_, entries), _ in taken
    }
    assert reached == lawful
    assert all(set(blame) == {"tidy"} for blame in blames)
    assert len(blames) == len(list(itertools.product(*lying))) - len(lawful)


def test_a_world_that_stands_for_too_many_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SPLIT_MAX", 3)
    with pytest.raises(TooManyCases):
        POINTWISE.take(framed(), shelf([EITHER[2]] * 2 + [EITHER[0]]), "look", (0,))


def certain(worlds: Iterable[World]) -> set[World]:
    """Return the certain worlds that some worlds stand for."""
    return {
        (rest, entries)
        for rest, possible in worlds
        for entries in itertools.product(
            *(each if isinstance(each, frozenset) else (each,) for each in possible)
        )
    }


def foldable(worlds: Iterable[World]) -> list[tuple[World, World]]:
    """Return the pairs that differ in one element only, by comparing each with each."""
    return [
        (one, other)
        for one, other in itertools.combinations(worlds, 2)
        if one[0] == other[0]
        and sum(mine != yours for mine, yours in zip(one[1], other[1], strict=True)) == 1
    ]


LOCALS: list[Possible] = [(0,), (1,), (2,), frozenset(((0,), (1,))), frozenset(((1,), (2,)))]
WORLDS = st.lists(
    st.tuples(st.sampled_from([((0,),), ((1,),)]), st.tuples(*[st.sampled_from(LOCALS)] * 3)),
    max_size=12,
)


@given(WORLDS)
def test_worlds_are_folded_without_loss_until_no_two_differ_in_one_element(
    worlds: list[World],
) -> None:
    folded = merged(worlds)
    assert certain(folded) == certain(worlds)
    assert not foldable(folded)
    assert merged(reversed(worlds)) == folded


def test_worlds_that_differ_in_two_elements_stay_apart() -> None:
    apart: list[World] = [((), ((0,), (0,))), ((), ((1,), (1,)))]
    assert merged(apart) == frozenset(apart)
    assert not foldable(apart)
    assert foldable([*apart, ((), ((0,), (1,)))])


class Copied(Shelf):
    """An update, unlike a guard, is made of one element at a time."""

    @action
    def copy(self, which: Book) -> None:
        """A book lies if any does."""
        require(~self.seen[which])
        self.lies = self.lies.map(lambda b, _: exists(Book, lambda c: self.lies[c] & self.seen[b]))


def test_an_update_that_relates_several_is_refused() -> None:
    with pytest.raises(ModelError, match="never at two others"):
        Pointwise(trace(Copied), Book)

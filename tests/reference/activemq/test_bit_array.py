"""The window of numbers: its arithmetic by the releases' own answers, and against a plain set."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from brokerproof.reference.activemq import bit_array
from brokerproof.reference.activemq.bit_array import BitArrayBin, Landing, int32, truncated
from brokerproof.reference.shared.copies import copied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokerproof.reference.activemq.bit_array import AuditRules

RULES: tuple[AuditRules, ...] = ("5.1", "5.2")

GOLDEN: list[tuple[int, str, str, str]] = [
    (0, "63 64 63 0 64", "n/0 n/64 D D D", "n/0 n/64 n n D"),
    (0, "200 200 8 264 200 72", "n/0 n/64 D/64 n/128 n/192 D", "n/192 D n n/256 n n"),
    (63, "10 74 10 138 10 74", "n n D n/64 D D", "n n D n/64 n D"),
    (63, "1 2 130 1 2 64 130", "n n n/64 D D n D", "n n n/64 n n n D"),
    (100, "5 70 200 5 70 200 0", "n n n/64 D D n/128 D", "n n n/128 n n D n"),
    (128, "64 768 576 768 575 64", "n/0 n/64 n/128 n/192 n/256 D", "n/64 n/640 n D n n"),
]
"""Depth, numbers in order, and the answers of 5.1.0 and 5.2.0: new or duplicate, and `first`."""


def answered(window: BitArrayBin, numbers: str, like: str) -> str:
    """Return the answers of a window, with `first` wherever the other answers name it."""
    said = []
    for number, other in zip(numbers.split(), like.split(), strict=True):
        answer = "D" if window.set(int(number), True) else "n"
        said.append(f"{answer}/{window.first}" if "/" in other else answer)
    return " ".join(said)


@pytest.mark.parametrize(("depth", "numbers", "old", "new"), GOLDEN)
def test_both_releases_answer_as_they_did(depth: int, numbers: str, old: str, new: str) -> None:
    assert answered(BitArrayBin(depth, "5.1"), numbers, old) == old
    assert answered(BitArrayBin(depth, "5.2"), numbers, new) == new


def test_no_release_would_pass_for_the_other() -> None:
    for depth, numbers, old, new in GOLDEN:
        assert answered(BitArrayBin(depth, "5.2"), numbers, old) != old
        assert answered(BitArrayBin(depth, "5.1"), numbers, new) != new


def read_right_below(window: BitArrayBin) -> list[bool]:
    """Return the answers below a window that begins at 64: right below it, and a word further."""
    assert window.set(64, True) is False
    return [window.get(1), window.get(63), window.get(0)]


@pytest.mark.parametrize("rules", RULES)
def test_what_is_read_right_below_the_window_is_not_seen_and_further_down_it_is(
    rules: AuditRules,
) -> None:
    window = BitArrayBin(0, rules)
    window.set(0, True)
    assert read_right_below(window) == [False, False, True]
    assert window.first == 64


def test_division_downwards_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_array, "truncated", operator.floordiv)
    for rules in RULES:
        window = BitArrayBin(0, rules)
        window.set(0, True)
        assert read_right_below(window) == [True, True, True]


@pytest.mark.parametrize(
    ("depth", "size"),
    [(0, 1), (62, 1), (63, 2), (126, 2), (128, 3), (500, 8), (512, 9), (2048, 33), (10000, 157)],
)
@pytest.mark.parametrize("rules", RULES)
def test_a_depth_has_that_many_words(depth: int, size: int, rules: AuditRules) -> None:
    window = BitArrayBin(depth, rules)
    assert window.words == (0,) * size
    window.set(7, True)
    assert window.words == (1 << 7,) + (0,) * (size - 1)


@pytest.mark.parametrize(("depth", "word_bits"), [(2048, 64), (63, 64), (0, 2), (5, 2), (9, 4)])
@pytest.mark.parametrize("rules", RULES)
def test_of_numbers_without_a_gap_a_window_remembers_the_last_ones(
    depth: int, word_bits: int, rules: AuditRules
) -> None:
    window = BitArrayBin(depth, rules, word_bits)
    last = 40 * word_bits if word_bits < 64 else 5000
    for number in range(last + 1):
        assert window.set(number, True) is False
        first = max(0, word_bits * (number // word_bits - window.size + 1))
        assert window.first == first
        remembered = number + 1 - first
        assert remembered <= word_bits * window.size
        assert first == 0 or remembered > word_bits * (window.size - 1)
        assert window.last_set_index == number
    assert all(window.get(number) for number in range(first, last + 1))


def test_5_1_calls_2843_messages_duplicates_that_were_rolled_back() -> None:
    seen: dict[AuditRules, list[int]] = {}
    for rules in RULES:
        window = BitArrayBin(2048, rules)
        assert not any(window.set(number, True) for number in range(1, 5001))
        assert window.first == 2944
        for number in range(101, 5001):
            window.set(number, False)
        seen[rules] = [number for number in range(101, 5001) if window.set(number, True)]
    assert seen == {"5.1": list(range(101, 2944)), "5.2": []}


def test_5_1_loses_a_word_with_each_of_the_first_numbers_far_above() -> None:
    seen: dict[AuditRules, list[int]] = {}
    for rules in RULES:
        window = BitArrayBin(2048, rules)
        assert not any(window.set(number, True) for number in range(5000, 5060))
        seen[rules] = [number for number in range(5000, 5060) if window.set(number, True)]
    assert seen == {"5.1": list(range(5046, 5060)), "5.2": list(range(5000, 5060))}


class OldFirst(BitArrayBin):
    """`first` in 32 bits, as in the releases from 5.2.0 to 5.10."""

    __slots__ = ()

    def _land_exactly(self, index: int) -> Landing:
        landing = super()._land_exactly(index)
        return landing._replace(first=int32(landing.first))


def beyond_31_bits(window: BitArrayBin, start: int) -> None:
    """Demand that a window remembers numbers that go on from `start` without a gap."""
    numbers = range(start, start + 300)
    for number in numbers:
        assert window.set(number, True) is False, number
        assert window.get(number), number
        assert window.first is not None
        assert 0 <= number - window.first < window.word_bits * window.size, number
        assert window.last_set_index == number


@pytest.mark.parametrize("start", [2**31 - 100, 2**32 + 98, 2**40])
def test_numbers_beyond_31_bits_are_remembered(start: int) -> None:
    beyond_31_bits(BitArrayBin(128, "5.2"), start)


@pytest.mark.parametrize("start", [2**31 - 100, 2**32 + 98])
def test_with_a_first_number_of_32_bits_they_would_not_be(start: int) -> None:
    with pytest.raises(AssertionError):
        beyond_31_bits(OldFirst(128, "5.2"), start)


def test_in_5_1_the_window_begins_anew_beyond_31_bits() -> None:
    window = BitArrayBin(63, "5.1")
    window.set(0, True)
    window.first = 2**31 - 128
    beyond = 2**31
    with pytest.raises(AssertionError):
        beyond_31_bits(copied(window), beyond - 64)
    assert [window.set(each, True) for each in (beyond - 1, beyond, beyond + 64)] == [False] * 3
    assert window.first == -(2**31)
    assert window.words == (1, 1)
    assert window.set(beyond + 128, True) is True, "by the bit of a number that is 128 older"
    assert window.first == 0


class Step(NamedTuple):
    """A query of a window: `set` with a flag, or `get`."""

    number: int
    flag: bool | None


def steps(highest: int) -> st.SearchStrategy[list[Step]]:
    """Draw queries of numbers up to `highest`."""
    step = st.builds(Step, st.integers(0, highest), st.sampled_from([True, True, False, None]))
    return st.lists(step, max_size=30)


def surprises(window: BitArrayBin, run: Sequence[Step]) -> list[Step]:
    """Return the steps whose answer is not that of a plain set of all numbers."""
    seen = set[int]()
    wrong = []
    for step in run:
        expected = step.number in seen
        if step.flag is None:
            answer = window.get(step.number)
        else:
            answer = window.set(step.number, step.flag)
            (seen.add if step.flag else seen.discard)(step.number)
        if answer != expected:
            wrong.append(step)
    return wrong


def window_moves(run: Sequence[Step], size: int, word_bits: int) -> bool:
    """Say whether numbers are forgotten, or lie below the first one's word."""
    begins = run[0].number - run[0].number % word_bits if run else 0
    return any(not begins <= step.number < begins + size * word_bits for step in run)


@given(run=steps(9), depth=st.integers(0, 9), word_bits=st.integers(1, 4))
@settings(derandomize=True, max_examples=300)
def test_inside_the_window_it_is_a_plain_set(run: list[Step], depth: int, word_bits: int) -> None:
    window = BitArrayBin(depth, "5.2", word_bits)
    if not window_moves(run, window.size, word_bits):
        assert surprises(window, run) == []


@given(run=steps(30), depth=st.integers(0, 9), word_bits=st.integers(1, 4))
@settings(derandomize=True, max_examples=300)
def test_where_the_window_is_and_what_is_in_it(run: list[Step], depth: int, word_bits: int) -> None:
    window = BitArrayBin(depth, "5.2", word_bits)
    seen, highest, first = set[int](), 0, 0
    for at, step in enumerate(run):
        highest = max(highest, step.number)
        begins = step.number - step.number % word_bits if at == 0 else first
        first = max(begins, word_bits * (highest // word_bits - window.size + 1))
        expected = step.number in seen and step.number >= first
        if step.flag is not None:
            assert window.probe(step.number) == expected
            assert window.set(step.number, step.flag) == expected
            (seen.add if step.flag else seen.discard)(step.number)
        elif step.number >= first:
            assert window.get(step.number) == expected
        else:
            assert window.get(step.number) == (step.number <= first - word_bits)
        if step.number < first:
            seen.discard(step.number)
        assert window.first == first
        assert len(window.words) == window.size
        held = {
            first + word_bits * place + bit
            for place, word in enumerate(window.words)
            for bit in range(word_bits)
            if word >> bit & 1
        }
        assert held == {each for each in seen if each >= first}


@pytest.mark.parametrize("rules", RULES)
def test_outside_of_the_window_it_is_not_a_plain_set(rules: AuditRules) -> None:
    shortest = find(
        steps(9),
        lambda run: bool(surprises(BitArrayBin(3, rules, 2), run)),
        settings=settings(derandomize=True, max_examples=2000, database=None),
    )
    assert len(shortest) == {"5.1": 2, "5.2": 3}[rules]


def test_in_5_1_the_first_number_of_all_takes_the_bit_of_another() -> None:
    run = [Step(2, True), Step(0, True)]
    assert surprises(BitArrayBin(3, "5.1", 2), run) == [Step(0, True)]


@given(run=steps(20), after=steps(30), depth=st.integers(0, 5))
@pytest.mark.parametrize("rules", RULES)
@settings(derandomize=True, max_examples=100)
def test_a_copy_behaves_alike_and_is_independent(
    rules: AuditRules, run: list[Step], after: list[Step], depth: int
) -> None:
    window = BitArrayBin(depth, rules, 2)
    surprises(window, run)
    before = window.fingerprint()
    copy, other = copied(window), copied(window)
    assert surprises(copy, after) == surprises(other, after)
    assert copy.fingerprint() == other.fingerprint()
    assert copy.last_set_index == other.last_set_index
    copy.is_in_order(1)
    assert [each.is_in_order(2) for each in (copied(copy), other)] == [True, True]
    assert not copied(copy).is_in_order(3)
    assert window.fingerprint() == before


def test_windows_that_differ_have_other_fingerprints() -> None:
    names = set()
    for run in ([], [(0, False)], [(0, True)], [(1, False)], [(2, True)], [(4, True)]):
        window = BitArrayBin(3, "5.2", 2)
        for index, flag in run:
            window.set(index, flag)
        names.add(window.fingerprint())
        window.is_in_order(3)
        names.add(window.fingerprint())
    assert len(names) == 12


def test_the_last_number_set_stays_when_it_is_unset_and_a_look_may_raise_it() -> None:
    window = BitArrayBin(128, "5.2")
    assert window.last_set_index == -1
    window.set(70, True)
    assert (window.first, window.last_set_index) == (64, 70)
    window.set(70, False)
    assert window.last_set_index == 70
    assert window.get(130) is False
    assert window.last_set_index == 127, "the word of 130 is in use, without a number"
    window.set(69, True)
    assert window.last_set_index == 127
    assert window.get(1000) is False
    assert (window.first, window.last_set_index) == (832, 959), "the words up to there, all empty"


def test_numbers_in_order_are_told_by_the_one_before() -> None:
    window = BitArrayBin(0, "5.2")
    assert [window.is_in_order(each) for each in (7, 8, 10, 11, 11)] == [1, 1, 0, 1, 0]


@given(number=st.integers(), by=st.integers(1, 100))
def test_division_is_towards_zero_and_32_bits_wrap(number: int, by: int) -> None:
    assert abs(truncated(number, by)) == abs(number) // by
    assert truncated(number, by) * number >= 0
    assert int32(number).to_bytes(4, "big", signed=True) == (number % 2**32).to_bytes(4, "big")


@pytest.mark.parametrize("number", [-1, -64])
def test_numbers_below_0_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="numbers start at 0"):
        BitArrayBin(0, "5.2").set(number, True)

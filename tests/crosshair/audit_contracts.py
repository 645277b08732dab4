"""What the audit's windows keep to, for CrossHair to confirm over all paths.

Each function is one contract, as in `tests/crosshair/contracts.py`; `WINDOW` is what the wrong ones
replace. Words have two bits and windows one or two words, so that the paths can be counted.
"""

from __future__ import annotations

from typing import Final

from brokerproof.reference.activemq.bit_array import AuditRules, BitArrayBin, int32, truncated

RULES: Final[tuple[AuditRules, AuditRules]] = ("5.1", "5.2")


def _window(depth: int, rules: AuditRules = "5.2") -> BitArrayBin:
    return BitArrayBin(depth, rules, 2)


def inside_the_window_it_is_a_set(one: int, flag: bool, other: int) -> None:
    """What was set, and not unset, is seen, and nothing else."""
    assert 0 <= one < 4
    assert 0 <= other < 6
    window, seen = _window(2), set[int]()
    window.set(0, False)
    for number, each in ((one, True), (other, True), (one, flag)):
        window.set(number, each)
        (seen.add if each else seen.discard)(number)
    assert window.first is not None
    inside = range(window.first, window.first + 4)
    assert [window.probe(each) for each in inside] == [each in seen for each in inside]


def the_window_moves_no_further_than_it_must(one: int, other: int) -> None:
    """Both are whole words, and the highest number is in the last word if it moved."""
    assert 0 <= one < 4
    assert 0 <= other < 12
    window = _window(2)
    window.set(one, True)
    before = window.first
    window.set(other, True)
    first = window.first
    assert before is not None
    assert first is not None
    assert before <= first
    assert first % 2 == 0
    assert other < first + 4
    assert first == before or first + 2 <= other


def a_probe_says_what_set_says(which: int, one: int, other: int) -> None:
    """And leaves all as it was."""
    assert 0 <= which <= 1
    assert 0 <= one < 5
    assert 0 <= other < 7
    window = _window(0, RULES[which])
    window.set(one, True)
    before = window.fingerprint()
    probed = window.probe(other)
    assert window.fingerprint() == before
    assert window.set(other, True) == probed


def below_the_window_each_release_guesses(which: int, number: int) -> None:
    """5.1.0 takes it for seen, later ones for new, and nothing is stored."""
    assert 0 <= which <= 1
    assert 0 <= number < 2
    window = _window(0, RULES[which])
    window.set(0, False)
    window.set(2, True)
    before = window.fingerprint()
    assert window.set(number, True) == (which == 0)
    assert window.fingerprint() == before


def division_is_towards_zero(number: int) -> None:
    """What is left has the sign of what was divided."""
    assert isinstance(number, int)
    left = number - 64 * truncated(number, 64)
    assert -64 < left < 64
    assert left * number >= 0


def a_number_of_32_bits_is_kept(number: int) -> None:
    """And of any other what is left lies between the two ends."""
    assert isinstance(number, int)
    left = int32(number)
    assert -(2**31) <= left < 2**31
    assert left == number or not -(2**31) <= number < 2**31

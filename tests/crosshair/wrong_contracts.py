"""Contracts that must not pass: false ones, and true ones that no search confirms in time."""

from __future__ import annotations

from brokerproof.reference.front.credit import Window
from brokerproof.spec.messages import Priority, is_equal, level_of

QUEUES = tuple(Priority(levels) for levels in range(1, 11))


def the_highest_level_is_never_used(priority: int, levels: int) -> None:
    """False: some priority must be in it."""
    assert 0 <= priority <= 9
    assert 1 <= levels <= 10
    level = level_of(priority, QUEUES[levels - 1])
    assert level < levels - 1


def clamped_and_centred_levels_are_the_same(priority: int) -> None:
    """False but for the very low and the very high."""
    assert 0 <= priority <= 9
    order = QUEUES[1]
    assert level_of(priority, order, "amqp") == level_of(priority, order, "clamp")


def numbers_are_equal_to_what_follows(number: int) -> None:
    """False, for one number alone."""
    assert isinstance(number, int)
    equal = is_equal(number, 123_456)
    assert not equal


def a_window_is_always_open(limit: int, used: int) -> None:
    """False where it is full."""
    assert limit >= 0
    assert used >= 0
    credit = Window(limit, used=used)
    assert credit.has_credit()


def counting_ends_where_it_should(number: int) -> None:
    """True, but each number is a path of its own and there is no last one."""
    assert number >= 0
    counted = 0
    while counted < number:
        counted += 1
    assert counted == number


def nothing_is_said_of_anybody(number: int) -> None:
    """Says nothing: there is no such number."""
    assert number < 0
    assert number > 0
    level = level_of(number, QUEUES[0])
    assert level == number

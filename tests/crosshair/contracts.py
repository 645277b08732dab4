"""Properties of the pure functions, for CrossHair to confirm over all paths.

Each function is one contract: its leading assertions say for which arguments it speaks, the ones
behind the first other statement what then holds. No rule is stated again; a property is what any
right rule has. `test_contracts.py` demands that each is confirmed, not merely not refuted.

What a contract ranges over is chosen so that the paths can be counted: all whole numbers, each of
the ten priority queues, a table of scalars where types meet. Orders are made before CrossHair
looks, since structs of msgspec cannot be made of symbolic values; `Letter` stands for a message, of
which the functions only read the attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from brokerproof.checks.oracle.operation_steps import window_of
from brokerproof.checks.trace.ordering import is_after, replaces
from brokerproof.reference.front.credit import Window
from brokerproof.reference.qpid.push.entries import QueueEntry
from brokerproof.reference.qpid.push.entry_list import StandardEntryList
from brokerproof.spec.messages import (
    Fifo,
    LastValue,
    Message,
    Priority,
    Sorted,
    is_equal,
    level_of,
    selects,
)
from brokerproof.spec.protocol.capabilities import Capabilities

if TYPE_CHECKING:
    from brokerproof.spec.messages import PropertyValue

QUEUES = tuple(Priority(levels) for levels in range(1, 11))
OTHERS = (Fifo(), Sorted("k"), LastValue("k"))
SORTED = Sorted("k")
LAST_VALUE = LastValue("k")
AMQP = Capabilities()
CLAMP = Capabilities(priority_mapping="clamp")
SCALARS: tuple[PropertyValue, ...] = (True, False, 1, 0, 1.0, -0.0, 1.5, "", "1", "true")
"""CrossHair cannot go through all texts and fractions; of these it takes each pair."""
HIGH = StandardEntryList(1)
LOW = StandardEntryList(0)


@dataclass
class Letter:
    """What the functions read of a message."""

    priority: int = 4
    properties: dict[str, PropertyValue] = field(default_factory=dict)


def _letter(priority: int) -> Message:
    return cast("Message", Letter(priority))


def _with(value: PropertyValue) -> Message:
    return cast("Message", Letter(properties={"k": value}))


def amqp_levels_are_those_of_the_queue(priority: int, levels: int) -> None:
    """A level is one of 0 to n - 1."""
    assert 0 <= priority <= 9
    assert 1 <= levels <= 10
    level = level_of(priority, QUEUES[levels - 1], "amqp")
    assert 0 <= level < levels


def clamp_levels_are_those_of_the_queue(priority: int, levels: int) -> None:
    """A level is one of 0 to n - 1."""
    assert 0 <= priority <= 9
    assert 1 <= levels <= 10
    level = level_of(priority, QUEUES[levels - 1], "clamp")
    assert 0 <= level < levels


def amqp_levels_grow_with_priority(lower: int, higher: int, levels: int) -> None:
    """A more urgent message is in no lower level."""
    assert lower <= higher
    assert 1 <= levels <= 10
    queue = QUEUES[levels - 1]
    assert level_of(lower, queue, "amqp") <= level_of(higher, queue, "amqp")


def clamp_levels_grow_with_priority(lower: int, higher: int, levels: int) -> None:
    """A more urgent message is in no lower level."""
    assert lower <= higher
    assert 1 <= levels <= 10
    queue = QUEUES[levels - 1]
    assert level_of(lower, queue, "clamp") <= level_of(higher, queue, "clamp")


def one_level_is_level_0(priority: int) -> None:
    """A queue of one level has no priorities."""
    assert 0 <= priority <= 9
    queue = QUEUES[0]
    assert level_of(priority, queue, "amqp") == 0
    assert level_of(priority, queue, "clamp") == 0


def ten_levels_are_the_priorities(priority: int) -> None:
    """A queue of as many levels as there are priorities tells all apart, in both mappings."""
    assert 0 <= priority <= 9
    queue = QUEUES[9]
    assert level_of(priority, queue, "amqp") == priority
    assert level_of(priority, queue, "clamp") == priority


def other_orders_have_one_level(priority: int, which: int) -> None:
    """Only a priority queue looks at priorities."""
    assert 0 <= which <= 2
    order = OTHERS[which]
    assert level_of(priority, order) == 0


def numbers_are_equal_both_ways(one: int, other: int) -> None:
    """Equality of numbers is reflexive and symmetric."""
    assert isinstance(one, int)
    equal = is_equal(one, other)
    assert is_equal(one, one)
    assert equal == is_equal(other, one)


def scalars_are_equal_both_ways(one: int, other: int) -> None:
    """Equality is reflexive and symmetric, whatever is compared with whatever."""
    assert 0 <= one < len(SCALARS)
    assert 0 <= other < len(SCALARS)
    mine, yours = SCALARS[one], SCALARS[other]
    assert is_equal(mine, mine)
    assert is_equal(mine, yours) == is_equal(yours, mine)


def truth_values_are_equal_both_ways(one: bool, other: bool) -> None:
    """Equality of truth values is reflexive and symmetric."""
    assert isinstance(one, bool)
    equal = is_equal(one, other)
    assert is_equal(one, one)
    assert equal == is_equal(other, one)


def equality_is_passed_on(one: int, middle: int, other: int) -> None:
    """Equality is transitive."""
    assert is_equal(one, middle)
    assert is_equal(middle, other)
    equal = is_equal(one, other)
    assert equal


def a_truth_value_is_no_number(truth: bool, number: int) -> None:
    """True is not 1 and false is not 0, whichever comes first."""
    assert isinstance(truth, bool)
    equal = is_equal(truth, number)
    assert not equal
    assert not is_equal(number, truth)


def a_text_is_no_number(text: str, number: int) -> None:
    """What reads like a number is none."""
    assert isinstance(text, str)
    equal = is_equal(text, number)
    assert not equal
    assert not is_equal(number, text)


def no_condition_selects_all(value: int) -> None:
    """No selector, and one without conditions, selects every message."""
    assert isinstance(value, int)
    message = _with(value)
    assert selects(None, message)
    assert selects({}, message)
    assert selects({}, _letter(value))


def one_more_condition_selects_no_more(mine: int, other: int, here: int, there: int) -> None:
    """What meets two conditions meets each."""
    assert isinstance(mine, int)
    message = cast("Message", Letter(properties={"k": here, "l": there}))
    if selects({"k": mine, "l": other}, message):
        assert selects({"k": mine}, message)
        assert selects({"l": other}, message)


def what_is_absent_is_not_selected(value: int) -> None:
    """A condition on a property that a message lacks is not met."""
    assert isinstance(value, int)
    message = _with(value)
    assert not selects({"l": value}, message)


def turns_by_priority_are_an_order(one: int, other: int, levels: int) -> None:
    """No message overtakes its equal, and of two at most one overtakes."""
    assert 0 <= one <= 9
    assert 0 <= other <= 9
    assert 1 <= levels <= 10
    queue, mine, yours = QUEUES[levels - 1], _letter(one), _letter(other)
    for claims in (AMQP, CLAMP):
        assert not is_after(mine, mine, queue, claims)
        assert not (is_after(mine, yours, queue, claims) and is_after(yours, mine, queue, claims))


def turns_by_value_are_an_order(one: int, middle: int, other: int) -> None:
    """By the value of a property: irreflexive and transitive."""
    assert isinstance(one, int)
    first, second, third = _with(one), _with(middle), _with(other)
    assert not is_after(first, first, SORTED, AMQP)
    if is_after(first, second, SORTED, AMQP) and is_after(second, third, SORTED, AMQP):
        assert is_after(first, third, SORTED, AMQP)


def of_last_values_each_would_replace_the_other(one: int, other: int) -> None:
    """Who replaces whom is decided by arrival alone; an equal value always is replaced."""
    assert isinstance(one, int)
    mine, yours = _with(one), _with(other)
    assert replaces(mine, mine, LAST_VALUE)
    assert replaces(mine, yours, LAST_VALUE) == replaces(yours, mine, LAST_VALUE)
    assert not replaces(mine, mine, SORTED)


def windows_can_be_read_back(messages: int | None, size: int | None) -> None:
    """As the contract takes them, windows are still those that were asked for."""
    assert messages is None or messages >= 0
    assert size is None or size >= 0
    limited, window, limited_size, window_size = window_of((messages, size))
    assert (window if limited else None) == messages
    assert (window_size if limited_size else None) == size
    assert {limited, limited_size} <= {0, 1}


def credit_is_used_where_there_is_some(limit: int | None, used: int) -> None:
    """Room is taken if there is room, and a window is never overfilled by that."""
    assert used >= 0
    assert limit is None or limit >= 0
    credit = Window(limit, used=used)
    had = credit.has_credit()
    assert credit.use(1) == had
    assert credit.used == used + had
    assert not had or limit is None or credit.used <= limit


def credit_given_back_is_there_again(limit: int | None, used: int) -> None:
    """Giving back undoes one use."""
    assert used >= 0
    assert limit is None or limit >= 0
    credit = Window(limit, used=used)
    if credit.use(1):
        credit.restore(1)
        assert credit.used == used
        assert credit.has_credit()


def a_new_window_leaves_what_is_held(limit: int | None, used: int, new: int | None) -> None:
    """What is held stays held; a window of 0 has room for nothing."""
    assert used >= 0
    assert limit is None or limit >= 0
    assert new is None or new >= 0
    credit = Window(limit, used=used)
    credit.set_limits(new, None)
    assert credit.used == used
    assert new != 0 or not credit.has_credit()


def entries_stand_in_one_order(one: int, other: int, is_high: bool, is_other_high: bool) -> None:
    """Of two entries, one is before the other exactly if that is behind it."""
    assert isinstance(one, int)
    first = QueueEntry(HIGH if is_high else LOW, None)
    second = QueueEntry(HIGH if is_other_high else LOW, None)
    first.id, second.id = one, other
    assert first.compare_to(first) == 0
    assert first.compare_to(second) == -second.compare_to(first)


def a_higher_level_is_before_any_number(one: int, other: int) -> None:
    """Numbers of two levels are never compared."""
    assert isinstance(one, int)
    first, second = QueueEntry(HIGH, None), QueueEntry(LOW, None)
    first.id, second.id = one, other
    assert first.compare_to(second) < 0

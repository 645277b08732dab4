"""Which steps of the contract commute: the basis of the oracle's search over events.

Events of consumers on separate connections are reported in an unknown order, and the oracle takes
an event as soon as it is possible. That is complete if the delivery commutes with every other step
that is possible now, of another consumer and another message: it does not disable the other step,
and both orders end in one state. Any allowed order with the delivery later then has one with it
now.

This holds for consumers that take, even without regard to the order of the two entries. It does not
hold for browsers: a delivery removes an entry that a browser could have been shown.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core import Contract
from brokerproof.models.contract.core_state import Channel, Consumer, Entry, Mode
from brokerproof.models.language import Bool, forall, implies
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.terms import equal, read

Side = Callable[..., Bool]


def _another_delivery(
    consumer: Consumer, entry: Entry, _flag: Bool, other: Consumer, its: Entry, _its_flag: Bool
) -> Bool:
    return (consumer != other) & (entry != its)


def _another_entry(_consumer: Consumer, entry: Entry, _flag: Bool, other: Entry) -> Bool:
    return entry != other


def _another_consumer(consumer: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return consumer != other


def _another_subscriber(consumer: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return (consumer != other) & ~equal(read(trace(Contract).symbol("mode"), (other,)), Mode.BROWSE)


def _another_channel(consumer: Consumer, _entry: Entry, _flag: Bool, which: Channel) -> Bool:
    return ~equal(read(trace(Contract).symbol("channel"), (consumer,)), which)


def _without_browsers(consumer: Consumer, entry: Entry, flag: Bool, which: Channel) -> Bool:
    def takes_or_is_elsewhere(c: Consumer) -> Bool:
        here = equal(read(trace(Contract).symbol("channel"), (c,)), which)
        return implies(here, ~equal(read(trace(Contract).symbol("mode"), (c,)), Mode.BROWSE))

    return _another_channel(consumer, entry, flag, which) & forall(Consumer, takes_or_is_elsewhere)


def _the_same_shown(
    consumer: Consumer, entry: Entry, _flag: Bool, other: Consumer, its: Entry, _its_flag: Bool
) -> Bool:
    return (consumer != other) & (entry == its)


def _a_browser(consumer: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return (consumer != other) & equal(read(trace(Contract).symbol("mode"), (other,)), Mode.BROWSE)


SWAPPED: tuple[tuple[str, str, Side], ...] = (
    ("deliver", "to another consumer, of another message", _another_delivery),
    ("get", "by another, of another message", _another_delivery),
    ("get_nothing", "by another", _another_consumer),
    ("publish", "of another message", _another_entry),
    ("acknowledge", "of another message", _another_entry),
    ("reject", "of another message", _another_entry),
    ("release", "of another message", _another_entry),
    ("settle_again", "of another message", _another_entry),
    ("consume", "of another consumer", _another_consumer),
    ("cancel", "of another consumer that takes", _another_subscriber),
    ("close_channel", "of another channel without browsers", _without_browsers),
)
"""The steps that a delivery commutes with, and under which condition."""

NOT_SWAPPED: tuple[tuple[str, str, Side], ...] = (
    ("browse", "of the same message", _the_same_shown),
    ("browse", "of another message", _another_delivery),
    ("cancel", "of a browser", _a_browser),
    ("close_channel", "of another channel with browsers", _another_channel),
)
"""The steps that a delivery does not commute with, each shown by a counterexample.

Only browsers make the end states differ: `excused` records which browser was there when a message
was taken. The oracle follows all orders if there are browsers.
"""

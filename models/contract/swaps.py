"""Which steps of the contract can be swapped: what the walk over told events rests on.

Events of consumers that sit on separate connections are told in an unknown order. The oracle takes
an event as soon as it is possible. It loses nothing by that if a delivery that is possible now does
not take the turn of any other step that is possible now, of another consumer and about another
message, and if both orders end in the same state: then every lawful order in which it comes later
can be changed into one in which it comes now.

So it is for consumers that take, and it does not even matter which of two entries is first. It is
not so for browsers: a delivery takes away what a browser could have been shown.
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
    who: Consumer, entry: Entry, _flag: Bool, other: Consumer, its: Entry, _its_flag: Bool
) -> Bool:
    return (who != other) & (entry != its)


def _another_entry(_who: Consumer, entry: Entry, _flag: Bool, other: Entry) -> Bool:
    return entry != other


def _another_consumer(who: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return who != other


def _another_taker(who: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return (who != other) & ~equal(read(trace(Contract).symbol("mode"), (other,)), Mode.BROWSE)


def _another_channel(who: Consumer, _entry: Entry, _flag: Bool, which: Channel) -> Bool:
    return ~equal(read(trace(Contract).symbol("channel"), (who,)), which)


def _without_browsers(who: Consumer, entry: Entry, flag: Bool, which: Channel) -> Bool:
    def takes_or_is_elsewhere(c: Consumer) -> Bool:
        here = equal(read(trace(Contract).symbol("channel"), (c,)), which)
        return implies(here, ~equal(read(trace(Contract).symbol("mode"), (c,)), Mode.BROWSE))

    return _another_channel(who, entry, flag, which) & forall(Consumer, takes_or_is_elsewhere)


def _the_same_shown(
    who: Consumer, entry: Entry, _flag: Bool, other: Consumer, its: Entry, _its_flag: Bool
) -> Bool:
    return (who != other) & (entry == its)


def _a_browser(who: Consumer, _entry: Entry, _flag: Bool, other: Consumer) -> Bool:
    return (who != other) & equal(read(trace(Contract).symbol("mode"), (other,)), Mode.BROWSE)


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
    ("cancel", "of another consumer that takes", _another_taker),
    ("close_channel", "of another channel without browsers", _without_browsers),
)
"""What a delivery can be swapped with, and where."""

NOT_SWAPPED: tuple[tuple[str, str, Side], ...] = (
    ("browse", "of the same message", _the_same_shown),
    ("browse", "of another message", _another_delivery),
    ("cancel", "of a browser", _a_browser),
    ("close_channel", "of another channel with browsers", _another_channel),
)
"""What it is not swapped with; that this is so is shown, not only believed.

That both orders end differently concerns browsers alone: which of them was there when a message was
taken is what `excused` remembers. The oracle gathers all orders where there are browsers.
"""

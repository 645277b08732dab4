"""A channel that closes releases one entry after another, in any order, and all on it leave."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from brokerproof.models.language import action, ite, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel, ProgressingQueue
from tests.models.contract.test_contract import states_of

SCOPE = Scope(
    {Entry: 4, Subscription: 2, Channel: 2},
    range(4),
    {"head": 0, "browser": 0, "wants": 1, "channel": (0, 1), "fifo": 0, "level": (3, 2, 1, 0)},
)

STATES = 4_000
"""How many states are looked at, the nearest first."""


class ByTheLast(ProgressingQueue):
    """Takes all subscriptions back to the wrong entry."""

    @action
    def close_channel(self, which: Channel, first: Entry) -> None:
        """Release everything, and take pointers back to any of it."""
        require(self.goes_back(which, first))
        self.status = self.status.map(
            lambda e, old: ite(self.goes_back(which, e), Status.AVAILABLE, old)
        )
        self._leave(which)
        self._rewind_to(first, browsers=False)


def one_by_one(plain: PlainReading, state: State, channel: int) -> Iterator[State]:
    """Yield where the releases lead, in each order, when those on the channel have left then."""
    held = [
        cell.indices
        for cell, value in zip(plain.cells, state, strict=True)
        if cell.symbol.name == "holds" and value and cell.indices[0] == channel
    ]
    for order in itertools.permutations(held):
        after = state
        for consumer, entry in order:
            assert plain.enabled("release", after, (consumer, entry))
            after = plain.step("release", after, (consumer, entry))
        if plain.enabled("unsubscribe", after, (channel,)):
            after = plain.step("unsubscribe", after, (channel,))
        yield after


def without_pointers_of(plain: PlainReading, state: State, consumer: int) -> State:
    """Return the state without the pointers of one that has left: it begins anew."""
    pointers = ("released", "rewound")
    return tuple(
        0 if cell.symbol.name in pointers and cell.indices == (consumer,) else value
        for cell, value in zip(plain.cells, state, strict=True)
    )


def differences(model: type[ProgressingQueue]) -> tuple[int, int]:
    """Return how often two or more were released, and how often one step led elsewhere.

    Subscription 0 sits on channel 0 and the other on channel 1.
    """
    plain = PlainReading(trace(model), SCOPE)
    several = wrong = 0
    for state in states_of(plain, STATES):
        for channel, first in plain.arguments("close_channel"):
            if plain.enabled("close_channel", state, (channel, first)):
                at_once = plain.step("close_channel", state, (channel, first))
                ends = list(one_by_one(plain, state, channel))
                several += len(ends) > 1
                wanted = {without_pointers_of(plain, end, channel) for end in ends}
                wrong += wanted != {without_pointers_of(plain, at_once, channel)}
    return several, wrong


def test_a_channel_that_closes_releases_one_after_another_in_any_order() -> None:
    several, wrong = differences(ProgressingQueue)
    assert several > 20
    assert wrong == 0


def test_a_closing_that_goes_back_to_another_entry_is_found_out() -> None:
    assert differences(ByTheLast)[1] > 0

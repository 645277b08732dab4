"""Stealable acquisition, one operation after the other: permitted changes, and visible effects.

`tests/checks/gate/test_no_alarm.py` checks that clients do not see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokerproof.reference import make
from brokerproof.reference.qpid.inspection import view_of
from brokerproof.reference.qpid.push.entries import (
    ACQUIRED_BY_QUEUE,
    AVAILABLE,
    EntryState,
    Phase,
    QueueEntry,
)
from brokerproof.reference.qpid.push.entry_list import StandardEntryList
from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.operations import Delete
from tests.reference.front.reference_bench import Bench, queue_in, subscription_in
from tests.reference.qpid.push.stealing_scenes import ADDRESS
from tests.reference.qpid.push.test_entry_lists import subscription as firm_subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.reference.qpid.push.subscriptions import Subscription


def subscription(name: str) -> Subscription:
    one = firm_subscription(name)
    one.stealable_state = EntryState(Phase.ACQUIRED, one, stealable=True)
    return one


OWNER, OTHER = subscription("c0"), subscription("c1")
CHANGES: dict[str, Callable[[QueueEntry], bool]] = {
    "make it stealable": lambda entry: entry.make_stealable(OWNER),
    "make it another's stealable": lambda entry: entry.make_stealable(OTHER),
    "make it unstealable": lambda entry: entry.make_unstealable(OWNER),
    "make it another's unstealable": lambda entry: entry.make_unstealable(OTHER),
    "steal": QueueEntry.steal,
    "release": lambda entry: entry.release_stealable(OWNER),
    "release it for another": lambda entry: entry.release_stealable(OTHER),
    "delete": QueueEntry.delete_stealable,
}
NOW_POSSIBLE = {
    "available": set[str](),
    "unstealable": {"make it stealable", "make it unstealable", "release", "delete"},
    "stealable": {"make it unstealable", "steal", "release", "delete"},
    "the queue's": {"delete"},
    "deleted": set[str](),
}
"""The possible actions in each state of the model."""


def entry_in(state: str) -> QueueEntry:
    entry = StandardEntryList().add(Message(id="a"))
    steps: list[Callable[[], bool]] = [
        lambda: entry.acquire(OWNER.owning_state),
        lambda: entry.make_stealable(OWNER),
        entry.steal,
        lambda: entry.delete(ACQUIRED_BY_QUEUE),
    ]
    for step in steps[: [*NOW_POSSIBLE].index(state)]:
        assert step()
    return entry


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", NOW_POSSIBLE)
def test_an_entry_permits_the_changes_of_its_state_and_no_other(state: str, change: str) -> None:
    entry = entry_in(state)
    before = entry.state.get()
    assert CHANGES[change](entry) == (change in NOW_POSSIBLE[state])
    if change not in NOW_POSSIBLE[state]:
        assert entry.state.get() is before


def test_what_was_sent_is_stealable_and_what_is_settled_when_sent_is_gone() -> None:
    bench = Bench(ADDRESS)
    bench.publish("a", "b")
    [first, second] = queue_in(bench.broker).entries.iterator()
    bench.get()
    holder = first.state.get().holder
    assert holder is not None
    assert first.state.get() is holder.stealable_state
    bench.get(mode="automatic")
    assert second.is_dispensed()
    bench.release("a")
    assert first.state.get() is AVAILABLE


def test_a_view_tells_no_two_kinds_of_acquired() -> None:
    views = []
    for address in ("qpid-push", ADDRESS):
        bench = Bench(address)
        bench.publish("a", "b")
        bench.consume("c0", 1)
        views.append(view_of(queue_in(bench.broker)))
    assert views[0] == views[1]
    assert [each.state for each in views[0].entries] == ["acquired", "available"]


def test_a_copy_steals_from_its_own_consumer() -> None:
    bench = Bench(ADDRESS)
    bench.publish("a")
    bench.consume("c0", 1)
    copy = bench.broker.fork()
    assert copy.fingerprint() == bench.broker.fingerprint()
    [original] = queue_in(bench.broker).entries.iterator()
    [copied] = queue_in(copy).entries.iterator()
    copy.handle(Delete(queue="q"))
    assert copied.is_dispensed()
    assert not original.is_dispensed()
    assert copy.outbox.unsettled == {}


def test_an_unstealable_entry_gives_another_fingerprint() -> None:
    bench = Bench(ADDRESS)
    bench.publish("a")
    bench.consume("c0", 1)
    before = bench.broker.fingerprint()
    [entry] = queue_in(bench.broker).entries.iterator()
    assert entry.make_unstealable(subscription_in(bench.broker, "c0"))
    assert bench.broker.fingerprint() != before


def test_it_is_a_setting_of_push_alone() -> None:
    assert make(ADDRESS).hello().name == f"reference:{ADDRESS}"
    assert make("qpid-push?acquisition=firm").hello().name == "reference:qpid-push"
    assert make(ADDRESS).hello().capabilities == make("qpid-push").hello().capabilities
    with pytest.raises(ValueError, match=r"^acquisition must be one of firm, stealable, not 'x'$"):
        make("qpid-push?acquisition=x")
    with pytest.raises(ValueError, match=r"^qpid-pull knows no acquisition; [^\n]*$"):
        make("qpid-pull?acquisition=stealable")

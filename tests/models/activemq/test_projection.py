"""Views of the reference's queues with cursors move as in the model; and twins."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from msgspec.structs import replace

from brokerproof.models.activemq import projection
from brokerproof.models.activemq.cursor_page_in import Channel, Consumer, CursorPageIn
from brokerproof.models.activemq.cursor_page_in import Message as Stored
from brokerproof.models.activemq.projection import new_queue
from brokerproof.models.language import action, forall, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue, OutsideTheModel
from brokerproof.models.language.watch.path_query import (
    find_steps,
    lost_invariants,
    quotient,
    valuation,
)
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.spec.activemq.view import (
    CursorQueueView,
    HeldView,
    ParkedView,
    StoredView,
)
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Release,
)
from tests.checks.inside.cursor_scenes import carried_out
from tests.models.activemq.cursor_walks import SIZES, Look, looks, walk
from tests.models.projected import path
from tests.models.walking_client import shown_by

TIGHT = "activemq-cursor?memory=2200&page=4&depth=1&word=2"
NOTHING = ClientStep(Drain())


def scene(*operations: Operation, address: str = TIGHT) -> Look:
    """Return the looks before and after the last of several operations."""
    broker = carried_out(operations[:-1], address)
    before = shown_by(broker, CursorQueueView)
    last = operations[-1]
    assert broker.handle(last).ok
    arrival = (last.message.id, 0) if isinstance(last, Publish) else None
    return Look(before, shown_by(broker, CursorQueueView), ClientStep(last, arrival=arrival))


def publish(name: str, size: int = 1, *, persistent: bool = True) -> Publish:
    """Return a publish of a message to the queue."""
    return Publish(queue="q", message=Message(id=name, size=size, persistent=persistent))


def consume(name: str, window: int | None = None, *, settles: bool = False) -> Consume:
    """Return a subscription on a separate channel."""
    return Consume(
        channel=f"ch-{name}",
        queue="q",
        consumer=name,
        mode="automatic" if settles else "acknowledge",
        credit=Credit(window),
    )


CACHE_ENDS_BEHIND_NOTHING = (
    *(publish("a"), consume("x", 1), Get(channel="gets", queue="q", mode="automatic")),
    # The message cached last is gone at once, and x's message leaves no room for the next.
    *(publish("b"), Get(channel="gets", queue="q", mode="automatic"), publish("c", 1500)),
)


@pytest.mark.parametrize("all_kinds", [False, True], ids=["persistent", "all kinds"])
def test_each_step_of_the_reference_is_a_path(all_kinds: bool) -> None:
    taken: Counter[str] = Counter()
    for look in (*looks(3, all_kinds=all_kinds), scene(*CACHE_ENDS_BEHIND_NOTHING)):
        try:
            steps = path(look.before, look.after, look.happened)
        except OutsideTheModel:
            assert all_kinds
            continue
        assert steps is not None, look
        taken.update(steps)
    assert taken.keys() == {each.name for each in trace(CursorPageIn).actions}


# Twins: the defects that the model would have to make steps of.


def departs(look: Look) -> bool:
    """Whether a step is no path, or is between views of no queue at all."""
    try:
        return path(look.before, look.after, look.happened) is None
    except NotAQueue:
        return True


def departures(address: str, seeds: int = 4) -> int:
    """Return how many steps of walks are no path."""
    found = 0
    for sizes in SIZES:
        for seed in range(seeds):
            try:
                for look in walk(f"activemq-cursor?{sizes}&{address}", seed):
                    # A view after a departure may be too far from the states of the model.
                    with contextlib.suppress(TooFar):
                        found += departs(look)
            except AssertionError:
                break  # a message paged in twice is in two lists, which the reference refuses
    return found


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    "defect", ["audit=5.1", "detached=accepted", "paged=replaced", "cache=unplaced"]
)
def test_steps_of_a_defect_are_no_paths(defect: str) -> None:
    assert departures(defect) > 0


@pytest.mark.parametrize(("reading", "is_path"), [("stop", True), ("advance", False)])
def test_a_loop_that_passes_what_has_no_room_is_no_path(reading: str, is_path: bool) -> None:
    published = [publish(each) for each in "abcd"]
    look = scene(*published, consume("x"), address=f"{TIGHT}&read={reading}")
    assert (path(look.before, look.after, look.happened) is not None) is is_path


NOTHING_IS_PENDING = (
    *(consume("x", 1), publish("a"), publish("b"), publish("c")),
    *(Get(channel="gets", queue="q", mode="automatic"),) * 2,
    publish("d"),
)
"""The cache ends before c, b and c are taken, and x still holds a when d is published."""


class CachesAgainWhenEmpty(CursorPageIn):
    """The queue of 5.3, whose cache comes back when no message is stored."""

    @action
    def cache_again(self) -> None:
        """No message is stored: arrivals are cached again."""
        require(forall(Stored, lambda m: ~self.stored[m]))
        super().cache_again()


def test_the_cache_comes_back_beside_what_is_paged_in() -> None:
    look = scene(*NOTHING_IS_PENDING)
    assert [each.message for each in look.before.held] == ["a"]
    (asked,) = map(quotient, projection.queries(look.before, look.after, look.happened))
    assert find_steps(asked) == ("cache_again", "send_cached")
    assert find_steps(asked._replace(model=CachesAgainWhenEmpty)) is None


# Paths, one by one.


def test_a_path_is_told() -> None:
    for operations, expected in (
        ((publish("a"),), ("send_cached",)),
        ((publish("a"), consume("x")), ("attach", "page_in", "give")),
        ((consume("x"), publish("a")), ("send_cached", "page_in", "give")),
        ((publish("a"), publish("b"), publish("c")), ("send_past_cache",)),
        ((*map(publish, "abc"), publish("d")), ("send_uncached",)),
        (CACHE_ENDS_BEHIND_NOTHING, None),
    ):
        look = scene(*operations)
        found = path(look.before, look.after, look.happened)
        if expected is None:
            assert found is not None
            assert "send_past_nothing" in found
        else:
            assert found == expected


def held() -> CursorQueueView:
    """Return a view in which one consumer holds two messages of three."""
    return scene(publish("a"), publish("b"), consume("x"), publish("c")).before


def test_a_settlement_is_the_first_action_of_its_path() -> None:
    before = held()
    first, second = before.paged_in
    assert [each.message for each in before.held] == ["a", "b"]
    (level,) = before.levels
    gone = replace(
        before,
        paged_in=(second,),
        held=before.held[1:],
        levels=(replace(level, stored=level.stored[1:]),),
    )
    acknowledges = ClientStep(Acknowledge(delivery="d"), settled="a")
    assert path(before, gone, acknowledges) == ("acknowledge",)
    assert path(before, gone, replace(acknowledges, settled="b")) is None
    assert path(before, gone, NOTHING) is None
    assert path(before, before, acknowledges) is None
    again = replace(
        before,
        paged_in=(replace(first, redelivered=True), second),
        held=(before.held[1], before.held[0]),
    )
    releases = ClientStep(Release(delivery="d"), settled="a")
    assert path(before, again, releases) == ("release", "give")
    assert path(before, before, releases) is None


def test_a_channel_that_closes_gives_back_what_it_has() -> None:
    look = scene(publish("a"), publish("b"), consume("x"), CloseChannel(channel="ch-x"))
    assert look.after.returned == ("a", "b")
    assert path(look.before, look.after, look.happened) == ("close", "clear")
    backwards = replace(look.after, returned=("b", "a"))
    assert path(look.before, backwards, look.happened) is None
    kept = replace(look.after, returned=("b",), held=look.before.held[:1])
    assert path(look.before, kept, look.happened) is None


def taken_in_turns(messages: int) -> Look:
    """Return the end of a channel whose messages two others take in turns, one settling its own."""
    return scene(
        *(publish(f"m{number}") for number in range(messages)),
        consume("x"),
        consume("settling", settles=True),
        consume("y"),
        CloseChannel(channel="ch-x"),
    )


def test_many_messages_that_two_consumers_take_in_turns_are_followed() -> None:
    look = taken_in_turns(26)
    assert path(look.before, look.after, look.happened) is not None


def test_messages_given_out_of_turn_are_no_path() -> None:
    look = taken_in_turns(4)
    first, second, *rest = look.after.held
    swapped = replace(look.after, held=(second, first, *rest))
    assert path(look.before, swapped, look.happened) is None


def test_a_value_that_is_not_shown_breaks_no_invariant() -> None:
    reading = PlainReading(
        trace(CursorPageIn), Scope({Stored: 3, Consumer: 1, Channel: 1}, range(1))
    )
    lost = "position-window-and-arrivals-are-cuts-of-the-order"
    shown = valuation(behind=[True] * 3, spent=[True] * 3, below=[True, None, True])
    assert lost not in lost_invariants(reading, shown)
    shown = valuation(behind=[True] * 3, spent=[True] * 3, below=[True, False, True])
    assert lost in lost_invariants(reading, shown)


# Steps that the model forbids, and views that it does not cover.


def test_what_is_given_before_its_turn_is_no_path() -> None:
    before = scene(publish("a"), publish("b"), consume("x")).before
    after = held()
    assert path(before, after, ClientStep(consume("x"))) is not None
    (level,) = after.levels
    overtaken = replace(
        after,
        paged_in=after.paged_in[1:],
        held=after.held[1:],
        levels=(replace(level, batch=before.levels[0].batch[:1]),),
    )
    assert path(before, overtaken, ClientStep(consume("x"))) is None


@pytest.mark.parametrize(
    ("happened", "change", "reason"),
    [
        (ClientStep(Purge(queue="q")), {}, "a purge"),
        (NOTHING, {"parked": (ParkedView("x", 1),)}, "publishes that wait for memory"),
        (NOTHING, {"order": Priority(2)}, "levels of priority"),
    ],
)
def test_of_some_steps_the_model_says_nothing(
    happened: ClientStep, change: dict[str, object], reason: str
) -> None:
    view = replace(held(), **change)
    with pytest.raises(OutsideTheModel, match=reason):
        path(view, view, happened)


def test_what_is_grouped_is_not_read() -> None:
    view = held()
    first = replace(view.paged_in[0], grouped=True)
    other = replace(view, paged_in=(first, *view.paged_in[1:]))
    with pytest.raises(OutsideTheModel, match="groups of messages"):
        path(view, other, NOTHING)


def test_what_does_not_outlive_a_crash_is_left_out() -> None:
    others = publish("t", persistent=False), publish("u", persistent=False)
    for alone in (others[:1], others, (*others, consume("x"))):
        look = scene(*alone)
        with pytest.raises(OutsideTheModel, match="messages that do not outlive a crash"):
            path(look.before, look.after, look.happened)
    beside = scene(publish("a"), *others)
    assert path(beside.before, beside.after, beside.happened) == ()
    both = scene(publish("a"), *others, publish("b"), consume("x"))
    assert [each.message for each in both.after.held] == ["a", "t", "u", "b"]
    found = path(both.before, both.after, both.happened)
    assert found is not None
    assert Counter(found) >= Counter(("attach", "give", "give"))
    backwards = replace(both.after, held=tuple(reversed(both.after.held)))
    assert path(both.before, backwards, both.happened) is None


def stored_as(*stored: StoredView) -> CursorQueueView:
    """Return the view of a queue with these messages stored, and nothing in memory."""
    view = held()
    (level,) = view.levels
    bare = replace(view, paged_in=(), held=())
    return replace(bare, levels=(replace(level, stored=stored, read=None),))


A, B = StoredView("a", 1, 1025), StoredView("b", 2, 1025)


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        (replace(held(), arrivals=3), "1 more messages are counted as arrived"),
        (replace(held(), levels=()), "it has other levels than before"),
        (stored_as(A, B, StoredView("z", 9, 1025)), "z is there and was not published"),
        (stored_as(StoredView("z", 1, 1025), B), "a at 1 has become z"),
        (stored_as(A, StoredView("b", 1, 1025)), "two messages have one number"),
        (replace(held(), waiting=("z",)), "z is in memory, and not in the store"),
        (replace(held(), held=(HeldView("a", "x"), HeldView("a", "y"))), "a is held twice"),
    ],
)
def test_views_that_cannot_be_of_one_queue(after: CursorQueueView, complaint: str) -> None:
    with pytest.raises(NotAQueue, match=complaint):
        path(held(), after, NOTHING)


def test_a_new_queue_has_the_sizes_that_it_shows() -> None:
    new = new_queue(held(), Fifo())
    (level,) = new.levels
    assert (level.stored, level.size, new.arrivals) == ((), 0, 0)
    assert (new.audit.first, new.audit.words, new.audit.word_bits) == (None, 2, 2)
    assert (new.memory.used, new.memory.limit) == (0, 2200)

"""Flow control: windows of bytes, the window of a channel, and waiting at a large message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.reference.front.credit import ChannelWindow, Window
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.operations import ConsumeMode, Declare
from tests.reference.front.reference_bench import Bench, queue_in

every_variant = pytest.mark.parametrize(
    "address", ["qpid-push", "qpid-push?pointer=inclusive", "qpid-push?runner=drain"]
)

sizes = st.integers(0, 4)
limits = st.none() | st.integers(0, 6)


@every_variant
def test_a_message_waits_until_its_bytes_are_free(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", size=3)
    bench.publish("a", "b", size=2)
    assert bench.drain() == []
    assert bench.acknowledge("a") + bench.drain() == ["c0:b"]


@every_variant
def test_nothing_goes_past_a_message_that_does_not_fit(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", size=3)
    bench.publish("a", "large", size=2)
    assert bench.publish("small") + bench.drain() == []
    assert bench.acknowledge("a") + bench.drain() == ["c0:large", "c0:small"]


@every_variant
def test_a_consumer_that_waits_at_a_message_goes_on_when_another_takes_it(address: str) -> None:
    # QPID-1187: it has room in general, and nothing of its own will change.
    bench = Bench(address)
    bench.consume("c0", size=3)
    bench.publish("a", "large", size=2)
    bench.publish("small")
    bench.drain()
    assert bench.get() + bench.drain() == ["large", "c0:small"]


@every_variant
def test_a_consumer_that_waits_at_a_message_goes_on_when_the_queue_is_purged(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", size=3)
    bench.publish("a", "large", size=2)
    bench.drain()
    bench.purge()
    assert bench.publish("small") + bench.drain() == ["c0:small"]


def test_a_consumer_that_does_not_wait_at_a_message_stays_there_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("brokerproof.reference.qpid.push.delivery.await_entry", lambda *_: None)
    bench = Bench()
    bench.consume("c0", size=3)
    bench.publish("a", "large", size=2)
    bench.publish("small")
    assert bench.get() + bench.drain() == ["large"]


def test_a_broker_rests_while_a_consumer_waits_at_a_message() -> None:
    bench = Bench("qpid-push?runner=drain")
    bench.consume("c0", size=3)
    bench.publish("a", "large", size=2)
    bench.drain()
    assert bench.broker.executor.jobs == []
    assert queue_in(bench.broker).waiting.get() == 1
    bench.cancel("c0")
    assert queue_in(bench.broker).waiting.get() == 0


@every_variant
def test_a_message_larger_than_the_whole_window_goes_to_one_that_holds_nothing(
    address: str,
) -> None:
    bench = Bench(address)
    bench.consume("c0", size=2)
    assert bench.publish("huge", size=9) + bench.drain() == ["c0:huge"]
    assert bench.publish("small") + bench.drain() == []
    assert bench.acknowledge("huge") + bench.drain() == ["c0:small"]
    assert bench.publish("next", size=9) + bench.drain() == []


@pytest.mark.parametrize("mode", ["automatic", "browse"])
def test_a_consumer_that_fills_no_window_is_stopped_by_a_larger_message(mode: str) -> None:
    bench = Bench()
    bench.publish("a", "b", size=2)
    bench.publish("huge", size=3)
    told = bench.consume("c0", size=2, mode="automatic" if mode == "automatic" else "browse")
    assert told == ["c0:a", "c0:b"]
    assert bench.bytes_of("c0", 3) == ["c0:huge"]


@every_variant
def test_a_larger_window_of_bytes_is_noticed(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", size=2)
    bench.publish("a", "b", "c")
    bench.drain()
    assert bench.bytes_of("c0", 3) + bench.drain() == ["c0:c"]


@every_variant
def test_a_window_of_no_bytes_stops_even_what_has_none(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", size=0)
    assert bench.publish("a", size=0) + bench.drain() == []
    assert bench.bytes_of("c0", 1) + bench.drain() == ["c0:a"]


@every_variant
def test_the_consumers_of_a_channel_share_its_window(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", channel="ch")
    bench.consume("c1", channel="ch")
    bench.consume("apart", 1)
    bench.share("ch", 1)
    told = bench.publish("a", "b", "c", "d") + bench.drain()
    assert sorted(one.partition(":")[0] for one in told) in (["apart", "c0"], ["apart", "c1"])
    mine = next(one.partition(":")[2] for one in told if not one.startswith("apart"))
    told = bench.acknowledge(mine) + bench.drain()
    assert len(told) == 1


@every_variant
def test_what_is_held_when_a_window_is_set_for_a_channel_counts_for_it(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", channel="ch")
    bench.publish("a")
    bench.drain()
    bench.share("ch", 1)
    assert bench.publish("b") + bench.drain() == []
    assert bench.acknowledge("a") + bench.drain() == ["c0:b"]


@every_variant
def test_room_of_a_channel_is_noticed_in_every_queue_of_its_consumers(address: str) -> None:
    bench = Bench(address)
    bench.ok(Declare(queue="other", order=Fifo()))
    bench.consume("c0", channel="ch")
    bench.consume("c1", channel="ch", queue="other")
    bench.share("ch", 1)
    bench.publish("a")
    bench.drain()
    assert bench.publish("b", queue="other") + bench.drain() == []
    assert bench.acknowledge("a") + bench.drain() == ["c1:b"]


@every_variant
def test_what_a_cancelled_consumer_holds_fills_its_channel_no_more(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", channel="ch")
    bench.share("ch", 1)
    bench.publish("a")
    bench.drain()
    bench.consume("c1", channel="ch")
    assert bench.publish("b") + bench.drain() == []
    assert bench.cancel("c0") + bench.drain() == ["c1:b"]
    assert bench.acknowledge("a") + bench.publish("c") + bench.drain() == []


@every_variant
def test_a_channel_that_was_closed_has_no_window(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", channel="ch")
    bench.share("ch", 0)
    bench.close("ch")
    bench.consume("c1", channel="ch")
    assert bench.publish("a") + bench.drain() == ["c1:a"]


def test_a_browser_is_stopped_by_a_channels_window_of_nothing_only() -> None:
    bench = Bench()
    bench.consume("c0", channel="ch")
    bench.consume("b0", channel="ch", mode="browse")
    bench.share("ch", 1)
    bench.publish("a", "b")
    bench.drain()
    assert "b0:c" in bench.publish("c") + bench.drain()
    bench.share("ch", 0)
    assert bench.publish("d") + bench.drain() == []


@pytest.mark.parametrize(
    ("address", "mode"),
    [
        *(("qpid-push", mode) for mode in ("browse", "automatic")),
        *(("qpid-pull", mode) for mode in ("browse", "automatic")),
        ("rabbitmq-paging", "automatic"),
    ],
)
def test_a_full_window_that_is_no_longer_paused_lets_through_what_does_not_fill_it(
    address: str, mode: ConsumeMode
) -> None:
    bench = Bench(address)
    bench.ok(Declare(queue="other", order=Fifo()))
    bench.publish("a")
    bench.publish("b", queue="other")
    bench.consume("c0", channel="ch")
    bench.share("ch", 0)
    bench.consume("c1", channel="ch", queue="other", mode=mode)
    assert bench.drain() == []
    assert bench.share("ch", 1) + bench.drain() == ["c1:b"]


@given(limits, limits, st.lists(sizes, max_size=6))
def test_a_window_is_overfilled_only_by_the_first(
    limit: int | None, byte_limit: int | None, asked: list[int]
) -> None:
    window = Window(limit, byte_limit)
    held: list[int] = []
    for size in asked:
        had = window.has_credit()
        if window.use(size):
            held.append(size)
            assert had, "what has no credit lets nothing through"
            assert limit is None or len(held) <= limit
            assert byte_limit is None or len(held) == 1 or sum(held) <= byte_limit
    assert window.usage() == (len(held), sum(held))
    for size in held:
        window.restore(size)
    assert window.usage() == (0, 0)


@given(limits, limits, st.lists(sizes, min_size=1, max_size=6), sizes)
def test_a_consumer_that_is_not_woken_could_not_use_the_room_that_came_back(
    limit: int | None, byte_limit: int | None, held: list[int], wanted: int
) -> None:
    def full() -> Window:
        return Window(limit, byte_limit, used=len(held), used_bytes=sum(held))

    before, after = full().use(wanted), full()
    woken = after.restore(held[-1])
    assert woken or before or not after.use(wanted)


@given(limits, limits, limits, limits, st.lists(sizes, max_size=6), sizes)
def test_a_consumer_that_is_not_woken_could_not_use_the_new_window(
    limit: int | None,
    byte_limit: int | None,
    new: int | None,
    new_bytes: int | None,
    held: list[int],
    wanted: int,
) -> None:
    def full() -> Window:
        return Window(limit, byte_limit, used=len(held), used_bytes=sum(held))

    before, after = full(), full()
    woken = after.set_limits(new, new_bytes)
    assert after.usage() == (len(held), sum(held))
    assert woken or before.lets_through(wanted) or not after.lets_through(wanted)
    assert woken or before.use(wanted) or not after.use(wanted)


class Queue:
    """A queue that counts its notifications of room."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told = 0

    def credit_restored(self) -> None:
        """Count."""
        self.told += 1


def test_every_queue_of_a_channel_is_told_once_when_there_is_room() -> None:
    window, queues = ChannelWindow(), [Queue("q0"), Queue("q1")]
    window.join("c0", queues[0], 0, 0)
    window.join("c1", queues[1], 0, 0)
    window.join("c2", queues[1], 0, 0)
    window.set_limits(1, None)
    told = [queue.told for queue in queues]
    assert window.use("c1", 1)
    assert not window.use("c0", 1)
    window.restore("c1", 1)
    assert [queue.told for queue in queues] == [each + 1 for each in told]


def test_a_return_by_a_consumer_that_has_left_makes_no_room_twice() -> None:
    window = ChannelWindow()
    window.join("c0", Queue("q0"), 2, 2)
    window.leave("c0")
    window.restore("c0", 1)
    assert window.window.usage() == (0, 0)

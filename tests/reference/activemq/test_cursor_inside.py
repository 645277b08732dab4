"""Inside rules of ActiveMQ's queue that no single view shows; each test has a twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from brokerproof.reference.activemq.audit import MessageAudit
from brokerproof.reference.activemq.bit_array import BitArrayBin
from brokerproof.reference.activemq.browsers import Browsers
from brokerproof.reference.activemq.cursors.store_cursor import StoreCursor
from brokerproof.reference.activemq.inspection import view_of_cursor_queue
from brokerproof.reference.activemq.memory.references import Reference
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.reference.activemq.subscribers import Subscribers
from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.answers import Accepted
from brokerproof.spec.protocol.operations import Acknowledge, Cancel, CloseChannel, Get, Publish
from tests.reference.activemq.cursor_scenes import ONE_MESSAGE, Scene
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

TINY = "depth=0&word=1"
"""An audit that remembers one number."""

InOrder = Callable[[], Iterable[Reference]]
Send = Callable[[RankedConsumer, Reference], None]


# Messages that the audit does not cover are looked up (AMQ-I11).


def give_what_is_below_the_window(rule: str) -> Counter[str]:
    """Hold messages that the window has passed, read the store anew, and count deliveries."""
    scene = Scene(f"activemq-cursor?memory=0&page=9&{TINY}&{rule}")
    names = [f"m{number}" for number in range(5)]
    given = Counter[str]()
    given.update(scene.consume("x", 2) + scene.publish(*names))
    scene.consume("y", 0)
    scene.do(Cancel(consumer="x"))
    scene.do(Cancel(consumer="y"))
    given.update(scene.consume("z"))
    return Counter(name.partition(":")[2] for name in given.elements())


def test_what_is_below_the_window_is_given_once() -> None:
    assert set(give_what_is_below_the_window("paged=checked").values()) == {1}


def test_a_queue_that_trusts_the_audit_gives_a_message_twice() -> None:
    assert max(give_what_is_below_the_window("paged=replaced").values()) == 2


# One producer, since the queue numbers its arrivals (AMQ-I12).


def known_producers() -> set[str]:
    """Return the audit's producers when several publishers' messages have come."""
    scene = Scene("activemq-cursor?producers=1")
    scene.publish("a:1", "b:1", "c:1")
    scene.consume("x", 1)
    scene.do(CloseChannel(channel="ch-x"))
    assert len(scene.queue.audit.known()) == 1
    return {*scene.queue.audit.known()}


def test_the_audit_of_a_queue_knows_one_producer() -> None:
    assert known_producers() == {""}


def test_to_number_by_publisher_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch,
        StoreCursor,
        "_is_new",
        "PRODUCER, stored.arrival",
        "stored.message.id, stored.arrival",
    )
    assert known_producers() != {""}


# The window (AMQ-I13).


def windows() -> list[int | None]:
    """Return where the window begins, while messages come, are given, dropped and read again."""
    scene = Scene("activemq-cursor?memory=2200&page=2&depth=1&word=2")
    found: list[int | None] = []
    for number in range(12):
        scene.publish(f"m{number}")
        found.append(view_of_cursor_queue(scene.queue).audit.first)
        if number % 3:
            scene.consume(f"c{number}", 0 if number % 3 == 1 else None)
            scene.do(CloseChannel(channel=f"ch-c{number}"))
            found.append(view_of_cursor_queue(scene.queue).audit.first)
    audit = view_of_cursor_queue(scene.queue).audit
    assert (audit.words, audit.word_bits) == (2, 2)
    assert all(each is not None and each % 2 == 0 for each in found)
    return found


def never_goes_back(found: list[int | None]) -> bool:
    """Whether a window only moves up, and does."""
    numbers = [each or 0 for each in found]
    return numbers == sorted(numbers) and numbers[-1] > numbers[0]


def test_a_window_never_goes_back() -> None:
    assert never_goes_back(windows())


def test_a_window_that_goes_back_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def rollback(audit: MessageAudit, producer: str, index: int) -> None:
        audit._bins[producer] = BitArrayBin(audit.depth, audit.rules, audit.word_bits)
        audit._bins[producer].set(max(0, index - 4), flag=False)

    monkeypatch.setattr(MessageAudit, "rollback", rollback)
    assert not never_goes_back(windows())


# Publishes that wait (AMQ-I18).


def order_of_the_parked() -> list[str]:
    """Return the order in which publishes that wait for memory are accepted."""
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}&transient=memory", durable=False)
    scene.publish("a")
    for name in ("b", "c", "d"):
        assert scene.do(Publish(queue="q", message=Message(id=name))).parked
    taken: list[str] = []
    for name in ("a", "b", "c"):
        scene.do(Get(channel="ch-get", queue="q"))
        if name not in scene.deliveries:
            break
        events = scene.do(Acknowledge(delivery=scene.deliveries[name])).events
        taken += [each.message for each in events if isinstance(each, Accepted)]
    return taken


def test_publishes_that_wait_are_taken_in_their_order() -> None:
    assert order_of_the_parked() == ["b", "c", "d"]


def test_to_take_the_last_one_first_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch,
        CursorQueue,
        "_take_parked",
        "list(self.parked.items())",
        "reversed(list(self.parked.items()))",
    )
    assert order_of_the_parked() != ["b", "c", "d"]


# Rotation (AMQ-I27).


def shares(consumers: int, messages: int) -> list[int]:
    """Return how many messages each of equal consumers is given."""
    scene = Scene("activemq-cursor")
    for number in range(consumers):
        scene.consume(f"c{number}")
    given = scene.publish(*(f"m{number}" for number in range(messages)))
    counts = Counter(each.partition(":")[0] for each in given)
    return sorted(counts[f"c{number}"] for number in range(consumers))


CASES = [(1, 3), (2, 5), (3, 7), (3, 9), (4, 2)]


@pytest.mark.parametrize(("consumers", "messages"), CASES)
def test_equal_consumers_have_equal_shares(consumers: int, messages: int) -> None:
    found = shares(consumers, messages)
    assert sum(found) == messages
    assert {*found} <= {messages // consumers, -(-messages // consumers)}


def test_a_consumer_that_stays_in_front_is_given_more(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch,
        Subscribers,
        "subscriber_of",
        "            del self.line[at]\n            self._stand_in_line(consumer)\n",
        "",
    )
    assert shares(3, 7) == [0, 0, 7]


# Browsing (AMQ-I29).


def given_after(browses: Callable[[Scene], object]) -> list[str]:
    """Return the deliveries to consumers after an inspection of the queue."""
    scene = Scene("activemq-cursor?memory=2200&page=2&depth=1&word=2")
    scene.publish("a", "b", "c")
    scene.publish("d", persistent=False)
    browses(scene)
    given = scene.consume("x", 2)
    scene.release("a")
    return [*given, *scene.consume("y")]


def test_to_browse_changes_nothing_that_is_given() -> None:
    alone = given_after(lambda _: None)
    assert given_after(lambda scene: scene.browse("look")) == alone
    assert len(alone) > 3


def test_a_browser_that_takes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    show = Browsers.show

    def takes(browsers: Browsers, in_order: InOrder, send: Send) -> bool:
        found = show(browsers, in_order, send)
        for reference in in_order():
            reference.redelivered = True
            reference.message = Message(id=f"{reference.id}-seen")
        return found

    monkeypatch.setattr(Browsers, "show", takes)
    with pytest.raises((AssertionError, KeyError)):
        test_to_browse_changes_nothing_that_is_given()

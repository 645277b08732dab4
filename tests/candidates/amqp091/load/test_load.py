"""A load's parts, without a broker: frames, and what is said of publishes and settlements.

Each says no more than is known, whatever arrives.
"""

from __future__ import annotations

import os
import struct
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from brokerproof.candidates.amqp091.load import frames
from brokerproof.candidates.amqp091.load import gets as amqp091_load_gets
from brokerproof.candidates.amqp091.load.frames import (
    METHOD,
    Answer,
    Arrivals,
    Confirm,
    Delivery,
    GarbledFrame,
    PublishForm,
    Reader,
    frame,
    method_frame,
    short,
)
from brokerproof.candidates.amqp091.load.link import Clock, LinkLost, Request
from brokerproof.candidates.amqp091.load.load import run_load
from brokerproof.candidates.amqp091.load.notes import (
    CONFIRMED,
    ENDED,
    KILLS,
    RESTARTS,
    Load,
    Notes,
    Shared,
    SubscriberNotes,
    Task,
)
from brokerproof.candidates.amqp091.load.producer import Producer
from brokerproof.candidates.amqp091.load.settlements import WRITTEN_S, Settled, Settlements
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.address import Address
from brokerproof.spec.histories import Record

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = Address.parse("amqp091://localhost/", "amqp091")
SECOND = 10**9


def delivery(tag: int, name: str, *, redelivered: bool, body: bytes) -> bytes:
    """Return a delivery as RabbitMQ sends it: the publish's own header, after the method."""
    method = short("c0") + struct.pack(">QB", tag, redelivered) + short("") + short("queue")
    form = PublishForm("queue", len(name), body, persistent=True, priority=3)
    header_and_body = (form.before_id + name.encode() + form.after_id)[len(publish_method()) :]
    return method_frame(frames.DELIVER, method) + header_and_body


def publish_method() -> bytes:
    return method_frame(frames.PUBLISH, b"\0\0" + short("") + short("queue") + b"\1")


def told(arrived: list[Arrivals]) -> Arrivals:
    return Arrivals(
        deliveries=[each for one in arrived for each in one.deliveries],
        confirms=[each for one in arrived for each in one.confirms],
        returned=[each for one in arrived for each in one.returned],
        answers=[each for one in arrived for each in one.answers],
        heartbeats=sum(one.heartbeats for one in arrived),
    )


@pytest.mark.parametrize("piece", [1, 7, 8, 1000])
def test_frames_are_read_in_whatever_pieces_they_come(piece: int) -> None:
    sent = (
        delivery(7, "p0-1", redelivered=True, body=b"body")
        + frames.HEARTBEAT_FRAME
        + delivery(8, "p0-2", redelivered=False, body=b"")
        + method_frame(frames.ACKNOWLEDGE, struct.pack(">QB", 5, 1))
        + method_frame(frames.NOT_ACKNOWLEDGE, struct.pack(">QB", 6, 2))
        + method_frame(frames.CANCELLED, short("c0"))
    )
    reader = Reader()
    pieces = [sent[at : at + piece] for at in range(0, len(sent), piece)]
    assert told([reader.read(each) for each in pieces]) == Arrivals(
        deliveries=[Delivery(7, True, "p0-1", 4), Delivery(8, False, "p0-2", 0)],
        confirms=[Confirm(5, True, True), Confirm(6, False, False)],
        answers=[Answer(frames.CANCELLED, short("c0"))],
        heartbeats=1,
    )


def test_a_message_id_is_found_behind_all_other_properties() -> None:
    table = b"\0\0\0\3abc"
    properties = short("text") + short("utf-8") + table + b"\2\4" + short("x") * 3 + short("the id")
    header = struct.pack(">HHQH", 60, 0, 0, 0xFF80) + properties
    method = method_frame(frames.GOT, struct.pack(">QB", 1, 0) + short("") + short("q"))
    arrived = Reader().read(method + frame(frames.HEADER, header))
    assert arrived.deliveries == [Delivery(1, False, "the id", 0, by_get=True)]
    assert arrived.answers == [Answer(frames.GOT, b"")]


def test_a_message_without_an_id_has_none() -> None:
    header = struct.pack(">HHQH", 60, 0, 0, 1 << 12) + b"\2"
    method = method_frame(frames.DELIVER, short("c") + struct.pack(">QB", 1, 0))
    arrived = Reader().read(method + frame(frames.HEADER, header))
    assert arrived.deliveries == [Delivery(1, False, None, 0)]


@pytest.mark.parametrize(
    "garbled",
    [
        frame(METHOD, frames.passive_declare("q"))[:-1] + b"x",
        frame(9, b"unknown type"),
        frame(frames.BODY, b"a body of nothing"),
        frame(METHOD, b"\0"),
    ],
)
def test_what_makes_no_sense_is_told_as_such(garbled: bytes) -> None:
    with pytest.raises(GarbledFrame):
        Reader().read(garbled)


def test_settlement_frames_name_one_delivery() -> None:
    expected = struct.pack(">QB", 9, 0)
    assert frames.acknowledge(9) == method_frame(frames.ACKNOWLEDGE, expected)
    requeue = struct.pack(">QB", 9, 2)
    assert frames.release(9) == method_frame(frames.NOT_ACKNOWLEDGE, requeue)


def task(folder: Path, **load: Any) -> Task:
    return Task(Load(**load), ADDRESS, folder, 0, 0, 0, "p0", (("q0", "queue"),))


def shared() -> Shared:
    return Shared([0] * Shared.cells_for(1), os.getpid())


def records(path: Path) -> list[Record]:
    decoder = msgspec.json.Decoder(Record)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


class Sink:
    """Where a producer's frames go that is not connected."""

    def send(self, _frames: bytes) -> None:
        """Take them."""


def published(folder: Path, *arrivals: Arrivals) -> list[tuple[str | None, int | None, str]]:
    """Let a producer send four messages and take arrivals; return what was noted of each."""
    of, numbers = task(folder, messages=4, producers=1), shared()
    with of.notes("publishes") as notes:
        producer = Producer(of, numbers, notes)
        producer._send(Sink(), 4)  # type: ignore[arg-type]
        for at, each in enumerate(arrivals, start=SECOND**2):
            producer._take(each, at)
        producer._give_up_unconfirmed()
    noted = records(notes.path)
    assert numbers.counter(0, ENDED).value == 4
    assert numbers.counter(0, CONFIRMED).value == sum(each.outcome == "ok" for each in noted)
    return [(each.message, each.end, each.outcome) for each in noted]


FIRST = SECOND**2


def test_confirms_end_publishes_one_by_one_and_many_at_once(tmp_path: Path) -> None:
    one, many = Arrivals(confirms=[Confirm(3, False, True)]), Confirm(2, True, True)
    assert published(tmp_path, one, Arrivals(confirms=[many])) == [
        ("p0-00000000", FIRST + 1, "ok"),
        ("p0-00000001", FIRST + 1, "ok"),
        ("p0-00000002", FIRST, "ok"),
        ("p0-00000003", None, "unknown"),
    ]


def test_what_was_refused_may_have_happened_and_what_came_back_did_not(tmp_path: Path) -> None:
    returned = Arrivals(returned=["p0-00000001"], confirms=[Confirm(2, False, True)])
    refused = Arrivals(confirms=[Confirm(1, False, False)])
    assert [each[1:] for each in published(tmp_path, refused, returned)][:2] == [
        (None, "unknown"),
        (FIRST + 1, "failed"),
    ]


def test_confirms_of_what_was_never_sent_are_not_believed(tmp_path: Path) -> None:
    beyond = Arrivals(confirms=[Confirm(5, False, True), Confirm(0, False, True)])
    again = Arrivals(confirms=[Confirm(1, False, True), Confirm(1, False, False)])
    assert [each[2] for each in published(tmp_path, beyond, again)] == ["ok", *["unknown"] * 3]


def settled(start: int) -> Settled:
    return Settled("acknowledge", "q0", f"m{start}", "c0", start, start)


def test_a_settlement_is_ok_only_when_an_answer_covers_it(tmp_path: Path) -> None:
    with Notes(tmp_path / "settlements.jsonl") as notes:
        book = Settlements(task(tmp_path), "channel", notes)
        for start in (1, 2, 3):
            book.began(settled(start))
        book.took_effect(2, asked=4, end=5)
        assert book.open == 1
        book.close(may_be_forgotten=True)
    assert [(each.start, each.end, each.outcome) for each in records(notes.path)] == [
        (1, 5, "ok"),
        (2, 5, "ok"),
        (3, None, "unknown"),
    ]


@pytest.mark.parametrize("may_be_forgotten", [True, False])
def test_a_killed_broker_may_forget_what_it_was_not_seen_to_outlive(
    tmp_path: Path, *, may_be_forgotten: bool
) -> None:
    with Notes(tmp_path / "settlements.jsonl") as notes:
        book = Settlements(task(tmp_path, kills=1, persistent=True), "channel", notes)
        later = 10 + int(WRITTEN_S * SECOND)
        for start, asked, end in ((1, 2, 10), (11, 12, later), (later, later, later + 1)):
            book.began(settled(start))
            book.took_effect(1, asked, end)
        book.close(may_be_forgotten=may_be_forgotten)
    second, third = (None, None) if may_be_forgotten else (later, later + 1)
    assert [each.end for each in records(notes.path)] == [10, second, third]


class Broken:
    """A link on which a get is answered with nothing once, and then the connection is lost."""

    def __init__(self, *_: object) -> None:
        self.answers = [(frames.GOT_NOTHING, Request(5, 9, b""))]

    def ask(self, *_: object) -> tuple[object, Request]:
        """Answer once."""
        if not self.answers:
            raise LinkLost("the broker hung up")
        return self.answers.pop()


def test_a_get_that_was_not_answered_may_have_taken_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amqp091_load_gets, "Link", Broken)
    work = task(tmp_path)
    with ExitStack() as files:
        notes = SubscriberNotes(
            *(files.enter_context(work.notes(kind)) for kind in SubscriberNotes._fields)
        )
        gets = amqp091_load_gets.OneByOne(work, 0, notes)
        assert gets.get("q0", "queue") == Request(5, 9, b"")
        with pytest.raises(LinkLost):
            gets.get("q0", "queue")
    found = [
        (each.op, each.consumer, each.outcome, each.end) for each in records(notes.events.path)
    ]
    assert found == [("empty", "p0.0.0", "ok", 9), ("get", "p0.0.1", "unknown", None)]


def test_notes_out_of_order_are_refused(tmp_path: Path) -> None:
    with Notes(tmp_path / "notes.jsonl") as notes:
        notes.write(Record(op="crash", start=5, end=6))
        notes.write(Record(op="restart", start=5, end=7))
        with pytest.raises(AssertionError, match="starts before 5"):
            notes.write(Record(op="crash", start=4, end=9))


def test_workers_wait_for_a_broker_that_is_being_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = shared()
    numbers[KILLS] = 1

    def restarted(_seconds: float) -> None:
        numbers[RESTARTS] = 1

    monkeypatch.setattr("brokerproof.candidates.amqp091.load.notes.time.sleep", restarted)
    assert numbers.await_broker() == 1


def test_workers_whose_starter_has_gone_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Shared([0] * Shared.cells_for(1), owner=1)
    monkeypatch.setattr(os, "getppid", lambda: 2)
    numbers[KILLS] = 1
    with pytest.raises(LinkLost):
        numbers.await_broker()


def test_the_clock_never_goes_back() -> None:
    clock = Clock(0)
    assert clock.now() <= clock.now()


def test_a_load_on_a_broker_that_is_not_there_cannot_begin(tmp_path: Path) -> None:
    with pytest.raises(CandidateUnavailable, match="no server listens there"):
        run_load(Load(), "amqp091://127.0.0.1:1/", tmp_path)

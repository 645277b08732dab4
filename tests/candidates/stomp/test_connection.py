"""STOMP connections: the greeting, receipts, the order of frames, and every way to fail."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.stomp.connection import (
    BrokerError,
    Connection,
    arrived,
    connect,
)
from brokerproof.candidates.stomp.frames import VERSIONS, Frame, GarbledFrameError
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import Deadline
from tests.candidates.stomp.fake_broker import FakeBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.candidates.stomp.frames import Version


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        yield started


def connected(broker: FakeBroker, seconds: float = 5.0) -> Connection:
    """Return a connection with so many seconds to live."""
    deadline = Deadline()
    deadline.start(seconds)
    return connect(Address.parse(broker.url, "stomp"), deadline, VERSIONS)


def refusal(port: int, versions: tuple[Version, ...] = VERSIONS, seconds: float = 5.0) -> str:
    """Return why there is no connection, having checked that it is one line without a password."""
    deadline = Deadline()
    deadline.start(seconds)
    address = Address.parse(f"stomp://me:secret@127.0.0.1:{port}/", "stomp")
    with pytest.raises(CandidateUnavailable) as caught:
        connect(address, deadline, versions)
    line = str(caught.value)
    assert "\n" not in line
    assert "secret" not in line
    return line


@pytest.mark.parametrize("version", VERSIONS)
def test_the_greeting_settles_version_and_product(version: Version) -> None:
    with FakeBroker(version, "Fake/2.1 of the tests") as broker, closing(connected(broker)) as link:
        assert link.version == version
        assert link.product == ("Fake", "2.1")
        assert broker.seen[0].headers["accept-version"] == "1.0,1.1,1.2"
        assert broker.seen[0].headers["host"] == "/"


def test_a_version_that_was_not_offered_is_refused(broker: FakeBroker) -> None:
    port = Address.parse(broker.url, "stomp").port
    assert "wants STOMP 1.2, not 1.0" in refusal(port, ("1.0",))


def test_messages_before_a_receipt_are_taken_in_the_order_of_the_wire(broker: FakeBroker) -> None:
    with closing(connected(broker)) as link:
        taken: list[Frame] = []
        link.take = taken.append
        link.request("SUBSCRIBE", {"id": "s", "destination": "/queue/q", "ack": "auto"})
        for number in range(50):
            link.send(Frame("SEND", {"destination": "/queue/q"}, b"%d" % number))
        link.request("BEGIN", {"transaction": "t"})
        assert [frame.body for frame in taken] == [b"%d" % number for number in range(50)]


def test_receipts_may_be_awaited_later(broker: FakeBroker) -> None:
    with closing(connected(broker)) as link:
        receipts = [link.ask("BEGIN", {"transaction": str(i)}) for i in range(3)]
        for receipt in reversed(receipts):
            link.wait_for(receipt)


def test_silence_is_told_apart_from_something_to_read(broker: FakeBroker) -> None:
    with closing(connected(broker)) as link:
        link.request("SUBSCRIBE", {"id": "s", "destination": "/queue/q", "ack": "auto"})
        assert arrived([link], 0.01) == []
        link.request("SEND", {"destination": "/queue/q"})
        assert arrived([link], 5) == [link]


def test_an_error_frame_names_the_refused_request(broker: FakeBroker) -> None:
    broker.refuses.add("SEND")
    with closing(connected(broker)) as link:
        receipt = link.ask("SEND", {"destination": "/queue/q"})
        with pytest.raises(BrokerError, match=r"answered ERROR: not here$") as caught:
            link.wait_for(receipt)
        assert caught.value.receipt == receipt


def test_a_broker_that_hangs_up_or_is_silent_is_noticed(broker: FakeBroker) -> None:
    broker.hangs_up_on.add("BEGIN")
    link = connected(broker)
    with pytest.raises(ConnectionError):
        link.request("BEGIN", {"transaction": "t"})
    link.collect()
    broker.deaf_to.add("ABORT")
    link = connected(broker, 0.2)
    with pytest.raises(TimeoutError):
        link.request("ABORT", {"transaction": "t"})
    link.collect()


def test_a_broker_that_hangs_up_instead_of_a_receipt_has_parted(broker: FakeBroker) -> None:
    broker.hangs_up_on.add("DISCONNECT")
    connected(broker).close()


def test_without_a_listener_there_is_no_connection() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "no server listens there" in refusal(port)


def test_a_refused_greeting_is_quoted(broker: FakeBroker) -> None:
    broker.refuses.add("CONNECT")
    line = refusal(Address.parse(broker.url, "stomp").port)
    assert "ERROR: not here" in line
    assert "the path of the address" in line


def test_a_server_that_never_greets_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "did not greet us in time" in refusal(silent.getsockname()[1], seconds=0.1)


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n\0", b"RECEIPT\n\n\0", b"CONNECTED\nx\n\n\0", b""],
)
def test_a_server_that_speaks_something_else_is_refused(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(greeting)

        greeter = threading.Thread(target=greet)
        greeter.start()
        refusal(server.getsockname()[1])
        greeter.join()


def test_a_frame_that_only_clients_send_is_garbage(broker: FakeBroker) -> None:
    with closing(connected(broker)) as link:
        link._waiting.append(Frame("SEND"))
        with pytest.raises(GarbledFrameError, match="the broker sent the frame 'SEND'"):
            link.wait_for("r0")

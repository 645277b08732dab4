"""A RabbitMQ behind AMQP 0-9-1 that is killed: what its answers say of that."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import amqp
import pytest

from brokerproof.candidates.amqp091.candidate import Amqp091Candidate
from brokerproof.candidates.amqp091.connection import told_as_errors
from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
from brokerproof.candidates.wire.example import Example, Queue
from brokerproof.candidates.wire.profile import by_name
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    Crash,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reset,
    Restart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(rabbitmq: PrivateRabbitMQ) -> Iterator[PrivateRabbitMQ]:
    """Return a server that may be killed; that of the session must live."""
    del rabbitmq  # skips where there is none
    with PrivateRabbitMQ() as server:
        yield server


def done(candidate: Amqp091Candidate, *operations: Operation) -> list[Delivered]:
    """Carry out what must succeed and return all deliveries."""
    told: list[Delivered] = []
    for operation in operations:
        answer = candidate.handle(operation)
        assert answer.ok, (operation, answer.error)
        told += [event for event in answer.events if isinstance(event, Delivered)]
    return told


def why_not(candidate: Amqp091Candidate, operation: Operation) -> tuple[str, str]:
    """Return code and message of the error to what must fail."""
    error = candidate.handle(operation).error
    assert error is not None
    return error.code, error.message


def put(name: str, queue: str = "kept") -> Publish:
    """Publish a persistent message."""
    return Publish(queue=queue, message=Message(id=name, persistent=True))


class Theirs:
    """Power over a server that the candidate did not start."""

    is_ours = False

    def __init__(self, server: PrivateRabbitMQ) -> None:
        self.crash, self.restart = server.crash, server.restart

    def close(self) -> None:
        """Leave it as it is."""


@pytest.mark.thorough
@pytest.mark.rabbitmq
def test_a_broker_started_elsewhere_is_not_left_dead(server: PrivateRabbitMQ) -> None:
    with closing(Amqp091Candidate(server.url, Theirs(server))) as candidate:
        done(candidate, Reset(), Declare(queue="kept", order=Fifo(), durable=True), Crash())
    with closing(Amqp091Candidate(server.url)) as another:
        assert another.hello().name == "RabbitMQ"


@pytest.mark.thorough
@pytest.mark.rabbitmq
def test_a_crash_takes_what_is_in_memory_and_a_restart_brings_the_rest(
    server: PrivateRabbitMQ,
) -> None:
    # Ends the server, which is its own, so this test is the last of those that use it.
    window = Consume(channel="ch", queue="kept", consumer="c", credit=Credit(2))
    with closing(Amqp091Candidate(server.url, server)) as candidate:
        assert candidate.hello().capabilities.durable
        done(candidate, Reset(), Declare(queue="kept", order=Fifo(), durable=True))
        done(candidate, Declare(queue="gone", order=Fifo()), put("m9", "gone"))
        assert why_not(candidate, Restart()) == ("refused", "the broker is up")
        told = done(candidate, put("m0"), put("m1"), put("m2"), window, Crash())
        # What was delivered is told by the crash at the latest.
        assert [each.message for each in told] == ["m0", "m1"]
        for operation in (put("m3"), Drain(), Crash()):
            assert why_not(candidate, operation) == ("refused", "the broker is down")

        done(candidate, Restart())
        assert why_not(candidate, put("m3", "gone")) == ("refused", "there is no queue gone")
        assert why_not(candidate, Acknowledge(delivery=told[0].delivery))[0] == "refused"
        back = done(candidate, *(Get(channel="ch", queue="kept"),) * 4)
        assert [each.message for each in back] == ["m0", "m1", "m2"]
        # RabbitMQ marks all three; the last was never handed out.
        assert not back[2].redelivered

        # The way back fails as a whole: that says nothing of the broker.
        with pytest.MonkeyPatch.context() as patch:
            assert server._folder is not None
            script = server._folder / "rabbitmq-server"
            script.write_text("#!/bin/sh\necho '{error,eaddrinuse}'\nexit 1\n", encoding="utf-8")
            script.chmod(0o755)
            patch.setattr(server, "_launch", replace(server._launch, command=[str(script)]))
            done(candidate, Crash())
            with pytest.raises(PowerFailed, match="another program took its port"):
                candidate.handle(Restart())
            # One that ends by itself has not come back, and that is the broker's own.
            script.write_text("#!/bin/sh\necho broken files\nexit 3\n", encoding="utf-8")
            code, message = why_not(candidate, Restart())
            assert code == "refused"
            assert "did not come back" in message
            assert "broken files" in message
        done(candidate, Reset(), Declare(queue="kept", order=Fifo(), durable=True))
        assert done(candidate, Get(channel="ch", queue="kept")) == []
    assert server.process_ids == ()


@pytest.mark.rabbitmq
def test_without_power_nothing_durable_is_claimed(rabbitmq: PrivateRabbitMQ) -> None:
    with closing(Amqp091Candidate(rabbitmq.url)) as candidate:
        assert not candidate.hello().capabilities.durable
        for operation in (Declare(queue="q", order=Fifo(), durable=True), Crash(), Restart()):
            assert why_not(candidate, operation)[0] == "unsupported"


def test_a_lost_connection_is_no_crash_for_a_broker_that_claims_durable() -> None:
    lost = ConnectionResetError("gone")
    assert [error.code for error in told_as_errors(lost, durable=False)] == ["crashed", "refused"]
    assert [error.code for error in told_as_errors(lost, durable=True)] == ["internal", "internal"]
    spoken = amqp.InternalError("no reason")
    assert [error.code for error in told_as_errors(spoken, durable=False)] == ["internal"] * 2


def test_the_flag_of_what_was_never_handed_out_is_known_better_after_a_crash() -> None:
    now: Example[None, None] = Example()
    for name in ("held", "kept"):
        now.note_published(name)
    assert not now.is_redelivered("held", flag=False)
    now.crash()
    now.note_published("later")
    assert now.is_redelivered("held", flag=True)
    assert not now.is_redelivered("kept", flag=True)
    assert now.is_redelivered("kept", flag=True)  # by now it was handed out
    assert now.is_redelivered("later", flag=True)  # no crash since: the flag is the broker's


@pytest.mark.parametrize(("durable", "declared_s", "settled_s"), [(True, 4.0, 1.0), (False, 0, 0)])
def test_a_crash_waits_until_what_was_answered_is_on_disk(
    monkeypatch: pytest.MonkeyPatch, *, durable: bool, declared_s: float, settled_s: float
) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    now: Example[None, None] = Example(by_name("rabbitmq-amqp091").on_disk)
    assert now.on_disk_in_s() == 0
    queue = Queue("x", Declare(queue="q0", order=Fifo(), durable=durable))
    now.note_declared("q0", queue)
    assert now.on_disk_in_s() == declared_s
    clock[0] += 10
    assert now.on_disk_in_s() == 0
    now.note_declared("q0", queue)
    assert now.on_disk_in_s() == 0
    now.note_settled("q0")
    assert now.on_disk_in_s() == settled_s
    now.forget_queue("q0")
    assert now.on_disk_in_s() == declared_s
    assert now.queues == {}

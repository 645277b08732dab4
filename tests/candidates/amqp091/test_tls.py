"""AMQP 0-9-1 over TLS, through a proxy in front of a RabbitMQ that runs."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from brokerproof.candidates.amqp091.candidate import Amqp091Candidate
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import Delivered, Event
from brokerproof.spec.protocol.operations import Consume, Declare, Drain, Publish, Reset
from tests.candidates.wire.tls_proxy import encrypted

if TYPE_CHECKING:
    from pathlib import Path

    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ

pytestmark = pytest.mark.rabbitmq


def test_messages_pass_through_tls(rabbitmq: PrivateRabbitMQ, tmp_path: Path) -> None:
    with encrypted(urlsplit(rabbitmq.url).port or 0, tmp_path) as (port, certificate):
        url = f"amqp091s://127.0.0.1:{port}/?ca={certificate}"
        with closing(Amqp091Candidate(url)) as candidate:
            candidate.handle(Reset())
            candidate.handle(Declare(queue="q", order=Fifo()))
            candidate.handle(Consume(channel="ch", queue="q", consumer="c"))
            told: list[Event] = []
            for number in range(20):
                message = Message(id=f"m{number}", size=50_000)
                told += candidate.handle(Publish(queue="q", message=message)).events
            told += candidate.handle(Drain()).events
            found = [event.message for event in told if isinstance(event, Delivered)]
            assert found == [f"m{number}" for number in range(20)]


def test_a_certificate_that_is_not_trusted_is_refused(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path
) -> None:
    with encrypted(urlsplit(rabbitmq.url).port or 0, tmp_path) as (port, _):
        with pytest.raises(CandidateUnavailable) as caught:
            Amqp091Candidate(f"amqp091s://127.0.0.1:{port}/")
        assert "TLS failed" in str(caught.value)
        assert "?ca=FILE" in str(caught.value)


def test_a_plain_connection_to_a_server_of_tls_is_refused(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path
) -> None:
    with (
        encrypted(urlsplit(rabbitmq.url).port or 0, tmp_path) as (port, _),
        pytest.raises(CandidateUnavailable),
    ):
        Amqp091Candidate(f"amqp091://127.0.0.1:{port}/")

"""STOMP over TLS: messages larger than a record come through, and an unknown server is refused."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.stomp.candidate import StompCandidate
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import barrier
from brokerproof.candidates.wire.address import Address
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.operations import Consume, Declare, Drain, Operation, Publish, Reset
from tests.candidates.stomp.fake_broker import FakeBroker
from tests.candidates.wire.tls_proxy import encrypted

if TYPE_CHECKING:
    from pathlib import Path


def test_a_broker_behind_tls_is_checked_if_its_certificate_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier, "MEASURED_DELIVERIES", 3)
    monkeypatch.setattr(barrier, "WARM_UP_DELIVERIES", 1)
    with FakeBroker() as broker:
        plain = Address.parse(broker.url, "stomp").port
        with encrypted(plain, tmp_path) as (port, certificate):
            url = f"stomps://127.0.0.1:{port}/?profile=generic-stomp"
            with closing(StompCandidate(f"{url}&ca={certificate}")) as candidate:
                operations: list[Operation] = [Reset(), Declare(queue="q", order=Fifo())]
                operations += [
                    Publish(queue="q", message=Message(id=f"m{i}", size=50_000)) for i in range(8)
                ]
                operations += [Consume(channel="ch", queue="q", consumer="c"), Drain()]
                answers = [candidate.handle(operation) for operation in operations]
            assert all(answer.ok for answer in answers)
            assert sum(len(answer.events) for answer in answers) == 8
            with pytest.raises(CandidateUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                StompCandidate(url)

"""A client that is not installed is named with what installs it, before a broker is reached."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from brokerproof.candidates import extras
from brokerproof.candidates.extras import missing_client
from brokerproof.candidates.instances.registry import chosen
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.subjects import open_subject

SOURCES = Path(__file__).parents[2]
NO_PROTON = f"the client proton is not installed; run: make -C {SOURCES} pipeline"


@pytest.fixture
def _no_proton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proton", None)


@pytest.mark.usefixtures("_no_proton")
@pytest.mark.parametrize("scheme", ["amqp10", "amqp10s"])
def test_an_address_whose_client_is_missing_says_what_installs_it(scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:1/"
    with pytest.raises(CandidateUnavailable) as told:
        open_subject(address)
    assert str(told.value) == f"{address}: {NO_PROTON}"


@pytest.mark.usefixtures("_no_proton")
def test_another_protocol_needs_its_own_client_only() -> None:
    assert missing_client("stomp", "here") is None


@pytest.mark.usefixtures("_no_proton")
def test_a_private_broker_is_not_ready_without_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = chosen("artemis?protocol=amqp10")
    monkeypatch.setattr(type(choice.files), "absent", lambda _files: None)
    monkeypatch.setattr(type(choice), "java", "somewhere")
    missing = choice.missing()
    assert missing is not None
    assert str(missing) == f"a private ActiveMQ Artemis 2.40.0: {NO_PROTON}"
    monkeypatch.undo()


def test_outside_a_checkout_pip_installs_an_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(extras, "_SOURCES", tmp_path)
    assert (
        extras.installs("amqp") == "pip install '.[amqp]', in the folder of brokerproof's sources"
    )

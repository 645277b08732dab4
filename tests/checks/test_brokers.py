"""The gate on real brokers: nothing is broken but what is known of them, with a twin that must be.

The known faults are those of docs/findings, each compared there with the broker's source. A race
shows in some runs only, so a known fault may also be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from click.testing import CliRunner

from brokerproof.candidates.instances.registry import chosen
from brokerproof.candidates.wire.profile import by_name
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.report.verdict_file import VerdictFile
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import QueueDeleted
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Publish,
)

if TYPE_CHECKING:
    from pathlib import Path

    from brokerproof.candidates.amqp091.candidate import Amqp091Candidate

BRIEFLY = ("--operations", "100", "--examples", "4", "--interleavings", "2")
RABBITMQ = pytest.mark.rabbitmq
FETCHED = pytest.mark.brokers
BROKER_J = ("browser-once-by-priority", "refuses-what-it-must", "quiescence", "credit-used")

BROKERS = [
    pytest.param("private:broker-j", (*BROKER_J, "auto-close-happens"), marks=FETCHED),
    pytest.param("private:rabbitmq?protocol=stomp", (), marks=RABBITMQ),
    pytest.param("private:rabbitmq?protocol=amqp10", ("credit-not-exceeded",), marks=RABBITMQ),
    pytest.param("private:broker-j?protocol=amqp10", BROKER_J, marks=FETCHED),
    pytest.param("private:activemq", (), marks=FETCHED),
]


def broken(address: str, report: Path, *options: str) -> set[str]:
    """Return what a check of a broker finds broken; at least the core must have been judged."""
    chosen_one = chosen(address.partition("&profile")[0])
    if (missing := chosen_one.missing()) is not None:
        pytest.fail(str(missing))
    asked = ("check", *BRIEFLY, "--report", str(report), *options, address)
    result = CliRunner().invoke(main, asked)
    assert result.exit_code in (0, 1, 3), result.output
    verdict = msgspec.json.decode((report / "verdict.json").read_bytes(), type=VerdictFile)
    [judged] = verdict.candidates
    outcomes = {each.requirement: each.verdict for each in judged.verdicts}
    assert outcomes["nothing-lost"] is Outcome.KEPT
    return {name for name, outcome in outcomes.items() if outcome is Outcome.BROKEN}


@pytest.mark.each_time(1)
@pytest.mark.parametrize(("address", "known"), BROKERS)
def test_a_real_broker_breaks_nothing_but_what_is_known(
    address: str, known: tuple[str, ...], tmp_path: Path
) -> None:
    assert broken(address, tmp_path) <= {*known}


@FETCHED
def test_a_real_broker_breaks_what_a_wrong_profile_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = by_name("broker-j-amqp091")
    wrong = msgspec.structs.replace(
        right, claims=msgspec.structs.replace(right.claims, release_position="tail")
    )
    monkeypatch.setattr("brokerproof.candidates.amqp091.candidate.profile_for", lambda *_: wrong)
    only = ("--only", "nothing-lost,returns-where-claimed,fifo-order")
    assert broken("private:broker-j", tmp_path, *only) == {"returns-where-claimed"}


@FETCHED
def test_a_queue_of_broker_j_goes_with_the_channel_that_its_last_message_is_on_the_way_to() -> None:
    subject = open_subject("private:broker-j")
    try:
        candidate, _ = subject.fresh()
        for operation in (
            Declare(queue="q", order=Fifo(), auto_delete=True),
            Consume(channel="ch", queue="q", consumer="c"),
            Publish(queue="q", message=Message(id="m")),
        ):
            assert candidate.handle(operation).error is None
        answer = candidate.handle(CloseChannel(channel="ch"))
        assert answer.error is None
        assert QueueDeleted(queue="q") in answer.events
    finally:
        subject.close()


@FETCHED
def test_a_message_of_a_queue_that_has_deleted_itself_can_be_settled() -> None:
    subject = open_subject("private:broker-j")
    try:
        candidate = cast("Amqp091Candidate", subject.fresh()[0])
        subscribed = Consume(channel="ch", queue="q", consumer="c")
        for operation in (
            Declare(queue="q", order=Fifo(), auto_delete=True),
            subscribed,
            Publish(queue="q", message=Message(id="m")),
            Drain(),
        ):
            assert candidate.handle(operation).error is None
        # Behind the adapter's back: it learns of the deletion only when it asks.
        candidate._control.queue_delete(candidate.names["q"])
        assert candidate.handle(Acknowledge(delivery="d1")).error is None
        assert candidate.handle(Declare(queue="r", order=Fifo())).error is None
        assert (
            candidate.handle(msgspec.structs.replace(subscribed, queue="r", consumer="d")).error
            is None
        )
    finally:
        subject.close()


@FETCHED
def test_a_message_that_broker_j_returns_after_its_nack_is_refused() -> None:
    subject = open_subject("private:broker-j")
    try:
        candidate = cast("Amqp091Candidate", subject.fresh()[0])
        for queue in "gone", "there":
            assert candidate.handle(Declare(queue=queue, order=Fifo())).error is None
        candidate._control.queue_delete(candidate.names["gone"])
        lost = candidate.handle(Publish(queue="gone", message=Message(id="m0"))).error
        assert lost is not None
        assert lost.code == "refused"
        assert "No route" in lost.message
        assert candidate.handle(Publish(queue="there", message=Message(id="m1"))).error is None
    finally:
        subject.close()

"""Departures from stricter claims: listed with a trace each, and never faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.gate.departures import departures_from
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.gate.gate_run import Clock, Departure
from brokerproof.checks.report.verdict_file import read
from brokerproof.checks.subjects import Subject
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import STRICTEST
from brokerproof.spec.requirements import catalogue
from examples.whole_broker import WholeBroker
from examples.whole_broker_differences import ReturnsAtCancel
from tests.checks.oracle.test_lawful_differences import CLAIMS

BUDGET = Budget(operations=2_000, examples=0)
RETURNS = replace(CLAIMS, cancel="returns")


def departures(
    broker: type[WholeBroker], claims: Capabilities, than: Capabilities = STRICTEST
) -> tuple[Departure, ...]:
    hello = broker(claims=claims).hello()
    subject = Subject("one", hello, lambda: broker(claims=claims), in_process=True)
    small = Budget(operations=200, examples=0)
    report = run_gate(subject, catalogue(), small, seed=0)
    found = departures_from(
        than, subject, report, catalogue(), BUDGET, lambda _stage, _operations: None, Clock(None)
    )
    assert subject.hello == hello
    return found


def test_a_difference_is_listed_with_the_trace_that_shows_it() -> None:
    [found] = departures(ReturnsAtCancel, RETURNS)
    assert found.difference.id == "cancel-returns"
    assert found.shown_by is not None
    assert found.shown_by.requirement in found.difference.weakens
    assert found.shown_by.claims == CLAIMS


def test_a_difference_that_is_claimed_and_not_there_is_not_seen() -> None:
    [found] = departures(WholeBroker, replace(CLAIMS, deletion_told=False))
    assert (found.difference.id, found.shown_by) == ("deletion-untold", None)


def test_claims_that_are_not_stricter_have_no_departures() -> None:
    assert departures(ReturnsAtCancel, RETURNS, than=RETURNS) == ()


@pytest.mark.thorough
def test_a_departure_is_no_fault(tmp_path: Path) -> None:
    broker = "examples.whole_broker_differences:ReturnsAtCancel"
    words = ["check", "--report", str(tmp_path), "--operations", "200", "--examples", "0"]
    came = CliRunner().invoke(main, [*words, "--accept-inconclusive", "--as", "strict", broker])
    assert came.exit_code == 0, came.output
    assert "cancel: returns" in came.output
    [candidate] = read(tmp_path / "verdict.json").candidates
    assert [each.claim for each in candidate.departures] == ["cancel"]


@pytest.mark.parametrize("name", ["nowhere", "nowhere.toml"])
def test_a_profile_that_is_not_there_ends_in_a_line(name: str) -> None:
    came = CliRunner().invoke(main, ["check", "--as", name, "reference:qpid-push"])
    assert came.exit_code == 2
    assert "Traceback" not in came.output
    assert name in came.output

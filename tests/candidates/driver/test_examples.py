"""The example drivers keep all that they claim, whatever is drawn; an alarm here is a mistake."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import closing

import pytest

from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.requirements import catalogue
from tests.candidates.driver.driver_session import DRIVER
from tests.checks.driver_groups import recorded, running_in

SURELY_EXERCISED = {
    "nothing-lost",
    "nothing-twice",
    "fifo-order",
    "priority-order",
    "release-rewinds",
    "redelivered-flag",
    "close-releases",
    "credit-used",
    "browser-sees-all",
    "browser-once",
    "does-what-it-claims",
    "protocol",
}
"""What even a small budget comes to."""

each_example = pytest.mark.parametrize(
    "command",
    [
        pytest.param([sys.executable, str(DRIVER)], id="python"),
        pytest.param(
            ["node", str(DRIVER.with_suffix(".mjs"))],
            id="node",
            marks=pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
        ),
    ],
)


@pytest.mark.each_time(3)
@pytest.mark.parametrize("seed", range(5))
@each_example
def test_an_example_keeps_what_it_claims(command: list[str], seed: int) -> None:
    with recorded() as groups:
        with closing(open_subject(f"exec:{shlex.join(command)}")) as subject:
            budget = Budget(400, 20) if seed == 0 else Budget(10, 25)
            report = run_gate(subject, catalogue(), budget, seed)
            assert subject.end() is None
        assert running_in(groups) == []
    outcomes = {v.requirement.id: v.outcome for v in report.verdicts}
    assert Outcome.BROKEN not in outcomes.values()
    assert len(groups) == 1, "it never failed, so it was never started again"
    if seed == 0:
        kept = {each for each, outcome in outcomes.items() if outcome is Outcome.KEPT}
        assert kept >= SURELY_EXERCISED

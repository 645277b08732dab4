"""The pytest plugin, in sessions of its own: one test a requirement, and one run of the gate.

Each session is a process, since a plugin is loaded once. The candidates are copied beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brokerproof.spec.requirements import catalogue

HERE = Path(__file__).parents[1]
LITTLE = ("--brokerproof-operations", "150", "--brokerproof-examples", "0")
COUNTING = '''
from broken_candidates import Stack


class Counted(Stack):
    """Notes each time that it is asked for its name: equally often in each run of the gate."""

    def hello(self):
        with open("runs", "a") as file:
            file.write("x")
        return super().hello()
'''


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Return a folder with candidates and a test of its own."""
    source = (HERE / "broken_candidates.py").read_text("utf-8")
    (tmp_path / "broken_candidates.py").write_text(source, encoding="utf-8")
    (tmp_path / "counted.py").write_text(COUNTING, encoding="utf-8")
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a session and return its status and its output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *arguments]
    # Options of the session that runs this test are not for the one that it runs.
    alone = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def counts(output: str) -> dict[str, int]:
    """Return how many tests ended how."""
    found = re.findall(r"(\d+) (passed|failed|skipped|xfailed|deselected)", output.splitlines()[-1])
    return {how: int(times) for times, how in found}


def test_each_requirement_is_a_test_and_a_failure_shows_its_counterexample(session: Path) -> None:
    status, output = run(session, "--brokerproof", "broken_candidates:Stack", *LITTLE, "-rs", "-v")
    assert status == 1
    assert counts(output).keys() == {"passed", "failed", "skipped"}
    assert sum(counts(output).values()) == len(catalogue()) + 1
    assert "brokerproof::broken_candidates:Stack::fifo-order FAILED" in output
    assert "brokerproof::broken_candidates:Stack::nothing-lost PASSED" in output
    assert "test_own.py::test_own PASSED" in output
    assert "   4  get from q0 on ch0 mode=acknowledge  m1 → the get" in output
    assert "Traceback" not in output
    assert "not claimed" in output


def test_the_gate_runs_once_for_what_is_selected_and_not_at_all_for_nothing(session: Path) -> None:
    address = ("--brokerproof", "counted:Counted", *LITTLE)
    status, output = run(session, *address, "-k", "fifo-order or nothing-lost")
    assert status == 1
    assert counts(output) == {"failed": 1, "passed": 1, "deselected": len(catalogue()) - 1}
    assert f"{len(catalogue()) + 1} items / " in output
    once = len((session / "runs").read_text())
    (session / "runs").unlink()
    run(session, *address, "-k", "fifo-order")
    assert len((session / "runs").read_text()) == once > 0
    (session / "runs").unlink()
    status, output = run(session, *address, "-k", "test_own")
    assert (status, counts(output)["passed"]) == (0, 1)
    assert not (session / "runs").exists()


def test_what_is_inconclusive_fails_unless_it_is_accepted(session: Path) -> None:
    nothing = ("--brokerproof-operations", "1", "--brokerproof-examples", "0", "-k", "fifo-order")
    status, output = run(session, "--brokerproof", "broken_candidates:Box", *nothing)
    assert (status, counts(output)["failed"]) == (1, 1)
    assert "inconclusive: never happened in this run: " in output
    accept = "--brokerproof-accept-inconclusive"
    status, output = run(session, "--brokerproof", "broken_candidates:Box", *nothing, accept)
    assert (status, counts(output)["skipped"]) == (0, 1)


def test_known_failures_and_settings_come_from_files(session: Path) -> None:
    (session / "brokerproof.toml").write_text(
        'operations = 150\nexamples = 0\nonly = ["fifo-order"]\nknown = "known.toml"\n'
    )
    (session / "known.toml").write_text(
        '[[known]]\nrequirement = "fifo-order"\nreason = "issue 17"\nexpires = 9999-01-01\n'
    )
    below = session / "below"
    below.mkdir()
    candidate = "../broken_candidates.py:Stack"
    status, output = run(below, "--rootdir", "..", "--brokerproof", candidate, "-rx")
    assert (status, counts(output)) == (0, {"xfailed": 1, "passed": 1})
    assert "issue 17" in output
    status, output = run(session, "--brokerproof", "broken_candidates:Box")
    assert (status, counts(output)) == (1, {"passed": 2, "failed": 1})
    assert "is kept again: take it off the list" in output


def test_what_cannot_be_run_is_told(session: Path) -> None:
    status, output = run(session, "--brokerproof", "nowhere:x", "-k", "fifo-order")
    assert status == 1
    assert "there is no module 'nowhere'" in output
    assert "Traceback" not in output
    status, output = run(
        session, "--brokerproof", "broken_candidates:Box", "--brokerproof-requirements", "1.0"
    )
    assert status == 4
    assert "ERROR: brokerproof: --requirements: there is no set of requirements '1.0'" in output


def test_a_session_that_does_not_ask_for_it_imports_nothing_of_the_gate(session: Path) -> None:
    (session / "test_own.py").write_text(
        "import sys\ndef test_own(): assert 'brokerproof.checks.gate.gate' not in sys.modules\n"
    )
    status, output = run(session)
    assert (status, counts(output)) == (0, {"passed": 1})

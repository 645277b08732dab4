"""No green without testing: a requirement that was not exercised never ends with status 0.

Each case has its twin: the same command where the requirement was tested.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from brokerproof.candidates.driver.claims import unknown_names
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.verdicts import ExitStatus, worst
from brokerproof.spec.nearest import meant

DRIVER = Path(__file__).parents[3] / "examples" / "drivers" / "driver.py"
CANDIDATES = "tests.checks.broken_candidates"
BOX, STACK = f"{CANDIDATES}:Box", f"{CANDIDATES}:Stack"
LITTLE = ("--operations", "100", "--examples", "0")
ONE = ("--only", "fifo-order", *LITTLE)
HURRIED = ("--budget", "0.000001", "--accept-inconclusive")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests be on no CI host, and in a folder without settings."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def check(*arguments: str) -> Result:
    """Check candidates; the report goes below the present folder."""
    result = CliRunner().invoke(main, ["check", "--no-progress", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def candidate() -> dict[str, Any]:
    """Return the report's part on the one candidate."""
    content = json.loads(Path(".brokerproof/verdict.json").read_bytes())
    return cast("dict[str, Any]", content["candidates"][0])


# The exit status.


def test_a_run_that_tested_nothing_is_not_green_whatever_is_accepted() -> None:
    result = check(BOX, *HURRIED)
    assert result.exit_code == 3
    assert f"warning: {BOX}: no requirement was judged" in result.stderr
    assert check(BOX, *ONE, "--accept-inconclusive").exit_code == 0


def test_of_several_candidates_each_has_to_be_tested() -> None:
    drained = ("--only", "fifo-order", "--examples", "0", *HURRIED)
    assert check(BOX, BOX, *drained).exit_code == 3
    assert check(BOX, BOX, *ONE).exit_code == 0


def test_what_is_asked_for_by_name_and_not_claimed_is_not_green() -> None:
    result = check(BOX, "--only", "selector-respected,fifo-order", *LITTLE)
    assert result.exit_code == 3
    line = f"{BOX}: selector-respected is not claimed (it needs selectors), so it was not tested"
    assert f"warning: {line}" in result.stderr.splitlines()
    assert candidate()["warnings"] == [line]
    assert line in Path(".brokerproof/report.html").read_text(encoding="utf-8")
    assert check(BOX, *ONE).stderr == ""
    assert candidate()["warnings"] == []


def test_the_worst_status_wins() -> None:
    broken, kept, open_ = ExitStatus.BROKEN, ExitStatus.KEPT, ExitStatus.INCONCLUSIVE
    assert worst([kept, open_, broken]) is broken
    assert worst([kept, open_]) is open_
    assert worst([kept]) is kept
    assert worst([]) is open_


# Expected requirements.


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (LITTLE, "selector-respected is expected of {}, and is not claimed (it needs selectors)"),
        (
            HURRIED,
            "get-finds is expected of {}, and was not judged: the cap of 1e-06 s was reached",
        ),
    ],
)
def test_what_is_expected_and_not_judged_fails(options: tuple[str, ...], line: str) -> None:
    result = check(BOX, *options, "--expect", "selector-respected,get-finds")
    assert result.exit_code == 1
    assert line.format(BOX) in result.output.splitlines()
    junit = Path(".brokerproof/junit.xml").read_text(encoding="utf-8")
    assert line.format(BOX) in junit


def test_what_is_expected_and_judged_passes() -> None:
    expected = ("--expect", "fifo-order", "--expect", " get-finds")
    some = ("--only", "fifo-order", "--only", "get-finds", *LITTLE)
    assert check(BOX, *some, *expected).exit_code == 0
    # A broken one is judged: it fails for that, and for nothing else.
    result = check(STACK, *some, *expected)
    assert result.exit_code == 1
    assert "is expected" not in result.output


def test_an_unknown_id_is_refused_with_the_nearest() -> None:
    for option in ("--expect", "--only"):
        result = check(BOX, option, "fifo-odrer")
        assert result.exit_code == 2
        [line] = result.output.splitlines()
        assert "there is no requirement 'fifo-odrer'" in line
        assert "(did you mean 'fifo-order'?)" in line
    assert check(BOX, *ONE, "--expect", "get-finds").exit_code == 2, "it is not asked"


def test_expectations_may_stand_in_the_configuration_file() -> None:
    settings = Path("brokerproof.toml")
    settings.write_text('expect = ["selector-respected"]\n', encoding="utf-8")
    assert check(BOX, *LITTLE).exit_code == 1
    settings.write_text('expect = ["fifo-order"]\n', encoding="utf-8")
    assert check(BOX, *ONE).exit_code == 0


# Names in a hello.


def hello(claims: dict[str, object], **fields: object) -> bytes:
    """Return a driver's answer to hello."""
    answer = {"id": 0, "ok": True, "name": "n", "version": "1", "capabilities": claims}
    return json.dumps(answer | fields).encode()


def test_unknown_names_in_a_hello_are_told_with_the_nearest() -> None:
    assert unknown_names(hello({"get": True, "selector": True}, versoin="2")) == (
        "hello has an unknown field 'versoin' (did you mean 'version'?): it is ignored",
        "hello has an unknown claim 'selector' (did you mean 'selectors'?): it is ignored",
    )
    assert unknown_names(hello({"get": True, "selectors": True})) == ()


def test_a_flood_of_unknown_names_is_cut() -> None:
    found = unknown_names(hello({f"x-{number}{'y' * 99}": 1 for number in range(12)}))
    assert (len(found), found[-1]) == (11, "hello has 2 unknown names more")
    assert all(len(each) < 150 for each in found)


def test_nothing_is_meant_by_a_name_that_is_like_none() -> None:
    assert meant("selector", ["get", "selectors"]) == " (did you mean 'selectors'?)"
    assert meant("colour", ["get", "selectors"]) == ""


@pytest.mark.parametrize(("name", "warned"), [("credits", True), ("credit", False)])
def test_a_driver_is_warned_about_its_claims(tmp_path: Path, name: str, warned: bool) -> None:
    text = DRIVER.read_text(encoding="utf-8").replace('"credit": [', f'"{name}": [', 1)
    driver = tmp_path / "driver.py"
    driver.write_text(text, encoding="utf-8")
    address = f"exec:{shlex.quote(sys.executable)} {driver}"
    result = check(address, "--only", "protocol", *LITTLE)
    line = f"hello has an unknown claim {name!r} (did you mean 'credit'?): it is ignored"
    assert (f"warning: {address}: {line}" in result.stderr.splitlines()) == warned
    assert candidate()["warnings"] == ([line] if warned else [])
    assert result.exit_code == 0


def test_an_unknown_value_of_a_claim_is_refused_with_its_place(tmp_path: Path) -> None:
    text = DRIVER.read_text(encoding="utf-8").replace('["messages"]', '["mesages"]', 1)
    driver = tmp_path / "driver.py"
    driver.write_text(text, encoding="utf-8")
    result = check(f"exec:{shlex.quote(sys.executable)} {driver}", "--only", "protocol", *LITTLE)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert "Invalid enum value 'mesages' - at `$.capabilities.credit[0]`" in line

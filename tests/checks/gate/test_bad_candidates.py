"""Faulty drivers: each a finding that names the step, never a traceback or a hang of ours.

Each fault is in front of the same small queue (`bad_driver.py`), whose twin without a fault passes
in the same way. No process of a driver is ever left.
"""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brokerproof.candidates.driver import process as driver_process
from brokerproof.candidates.driver.process import DriverProcess, Limits
from brokerproof.candidates.driver.self_check import BrokerproofErrs
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.gate.gate_run import ENDED_MAX
from brokerproof.checks.search.searches import ENDS
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.trace.moves import text_of
from brokerproof.checks.verdicts import ExitStatus, Outcome, exit_status
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.operations import Declare
from brokerproof.spec.requirements import catalogue
from tests.checks.driver_groups import recorded, running_in

SCRIPT = Path(__file__).with_name("bad_driver.py")
QUICK = Limits(hello_s=5.0, operation_s=5.0, drain_s=5.0, ending_s=5.0)
IMPATIENT = Limits(hello_s=5.0, operation_s=0.2, drain_s=0.2, ending_s=5.0)
LITTLE = Budget(operations=40, examples=0)
"""Four operations for each scope of a candidate that is not in this process, or a few more."""


@pytest.fixture(autouse=True)
def groups() -> Iterator[list[int]]:
    """Hold every test here to leaving no process behind; the groups of drivers as they start."""
    with recorded() as started:
        yield started
    assert running_in(started) == []


def bad(*arguments: str | int) -> str:
    """Return the address of the bad driver with these arguments."""
    return f"exec:{shlex.join([sys.executable, '-S', str(SCRIPT), *map(str, arguments)])}"


def gated(address: str, limits: Limits = QUICK, budget: Budget = LITTLE) -> Report:
    """Return the gate's report on a driver."""
    with closing(open_subject(address, limits)) as subject:
        return run_gate(subject, catalogue(), budget, seed=0)


def broken(report: Report) -> dict[str, str]:
    """Return the requirements found broken, each with its observation."""
    return {
        v.requirement.id: v.counterexample.seen
        for v in report.verdicts
        if v.counterexample is not None and v.outcome is Outcome.BROKEN
    }


def command(*arguments: str) -> Result:
    """Run the command line; whatever happens, it ends with a status and without a traceback."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    ours, _, _ = result.output.partition("it said last: ")
    assert "Traceback" not in ours
    return result


def test_the_twin_without_a_fault_passes() -> None:
    report = gated(bad(), budget=Budget(operations=1_000, examples=5))
    assert broken(report) == {}
    kept = {v.requirement.id for v in report.verdicts if v.outcome is Outcome.KEPT}
    assert {"fifo-order", "nothing-lost", "protocol", "does-what-it-claims"} <= kept


# Drivers that cannot be run at all: status 2.


@pytest.mark.parametrize(
    ("name", "content", "mode", "complaint"),
    [
        ("absent", None, 0, "it cannot be started: No such file or directory"),
        ("plain", "#!/bin/sh\n", 0o644, "it cannot be started: Permission denied"),
        ("nonsense", "\x7f\x7f\x7f", 0o755, "it cannot be started: Exec format error"),
        ("gone", "#!/bin/sh\nexit 3\n", 0o755, "hello: no answer, the driver exited with status 3"),
        (
            "sorry",
            "#!/bin/sh\necho not today >&2\nexit 1\n",
            0o755,
            "the driver exited with status 1; it said last: not today; see docs/reference/",
        ),
    ],
)
def test_what_cannot_be_started_is_told(
    name: str, content: str | None, mode: int, complaint: str, tmp_path: Path
) -> None:
    program = tmp_path / name
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    result = command("check", f"exec:{shlex.quote(str(program))}", "--report", str(tmp_path / "r"))
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith("Error: exec:")
    assert complaint in line
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("died", "hello: no answer, the driver exited with status 1; it said last: "),
        ("not JSON", "hello: its answer is not in form: JSON is malformed: invalid character"),
        ("BOM", "hello: its answer begins with a byte order mark"),
        ("wrong id", "hello: its answer has the id 7777, the request has 0"),
        ("refused", "hello: it was answered with an error: no"),
        ("wrong claim", "Expected `bool`, got `str` - at `$.capabilities.get`"),
        ("contradicting claim", 'browse must be claimed exactly when modes names "browse"'),
        ("no name", "Expected `str` of length >= 1 - at `$.name`"),
        ("no capabilities", "hello: its answer lacks the field `capabilities`"),
    ],
)
def test_a_hello_that_is_none_ends_with_2(fault: str, complaint: str) -> None:
    result = command("check", bad(fault, "--at", 0, "--since", "start"))
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert complaint in line


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("refused", "reset was answered refused: no"),
        ("internal", "reset was answered internal: no"),
        ("killed", "reset: no answer, the driver was ended by SIGSEGV"),
        ("no events", "reset: its answer is ok and lacks the field `events`"),
        ("phantom", "reset was answered with events"),
    ],
)
def test_a_first_reset_that_fails_ends_with_2(fault: str, complaint: str) -> None:
    result = command("check", bad(fault, "--at", 0))
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert complaint in line


def test_a_silent_hello_is_not_waited_for_longer_than_its_limit() -> None:
    with pytest.raises(Exception, match=r"hello: no answer within 0.1 s"):
        gated(bad("silent", "--at", 0, "--since", "start"), Limits(hello_s=0.1))


# A later fault is a finding: status 1.

WRONG = {
    "died": "no answer, the driver exited with status 1; it said last: ",
    "killed": "no answer, the driver was ended by SIGSEGV",
    "left": "no answer, the driver exited with status 0",
    "half a line": "no answer, the driver exited with status 1, after 9 bytes of a line that was "
    'not ended: \'{"id":',
    "not JSON": "its answer is not in form: JSON is malformed: invalid character",
    "not an object": "its answer is not in form: Expected `object`, got `array`",
    "two objects": "its answer is not in form: JSON is malformed: trailing characters",
    "deep": "its answer is not in form: maximum recursion depth exceeded",
    "no UTF-8": "its answer is not UTF-8: ",
    "BOM": "its answer begins with a byte order mark",
    "blank line": "it answered with more than one line",
    "wrong id": "its answer has the id 7777, the request has ",
    "text for id": "its answer is not in form: Expected `int`, got `str` - at `$.id`",
    "no id": "its answer is not in form: Object missing required field `id`",
    "two answers": "it answered with more than one line",
    "no events": "its answer is ok and lacks the field `events`",
    "no error": "its answer is not ok and lacks the field `error`",
    "ok with an error": "its answer is ok and has an error",
    "unknown code": "Invalid enum value 'tired' - at `$.error.code`",
    "unknown event": "Invalid value 'dance' - at `$.events[0].event`",
    "event without a field": "Object missing required field `consumer` - at `$.events[0]`",
    "event with an empty id": "Expected `str` of length >= 1 - at `$.events[0].delivery`",
    "endless line": "it answered with a line of more than 16777216 bytes",
    "long line": "it answered with a line of more than 16777216 bytes",
}


@pytest.mark.each_time(2)
@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_in_an_answer_is_a_finding(fault: str) -> None:
    report = gated(bad(fault, "--at", 2))
    [(requirement, seen)] = broken(report).items()
    assert requirement == "protocol"
    assert WRONG[fault] in seen
    found = next(v.counterexample for v in report.verdicts if v.counterexample is not None)
    [_, last] = found.steps
    assert seen.startswith(f"{text_of(last.move).split()[0]}: ")
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("endless words alone", "it wrote more than 16777216 bytes to standard error before it"),
        ("many events", "it told 100,000 events, not at most 10,000"),
        ("closes output", "no answer, its output ended"),
    ],
)
def test_what_is_too_much_or_goes_on_is_a_finding(fault: str, what: str) -> None:
    report = gated(bad(fault, "--at", 2), Limits(operation_s=5, drain_s=5, ending_s=0.05))
    assert what in broken(report)["protocol"]


def test_a_line_that_never_ends_is_a_finding() -> None:
    report = gated(bad("dribbling", "--at", 2), IMPATIENT)
    assert "no answer within 0.2 s, after " in broken(report)["protocol"]


def test_a_driver_that_takes_all_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_process, "MEMORY_BYTES_MAX", 2 * 10**8)
    report = gated(bad("allocates", "--at", 2), budget=Budget(10, 0))
    assert "GiB of memory before it answered" in broken(report)["protocol"]


def test_a_fault_that_shows_once_is_kept_with_how_often_it_showed() -> None:
    report = gated(
        bad("phantom", "--at", 4, "--of", "get", "--since", "start"), budget=Budget(400, 0)
    )
    [found] = [v for v in report.verdicts if v.requirement.id == "nothing-invented"]
    assert found.outcome is Outcome.BROKEN
    assert "seen once: it did not come again in" in found.reason
    # Its twin shows it each time.
    report = gated(bad("phantom", "--at", 2))
    [found] = [v for v in report.verdicts if v.requirement.id == "nothing-invented"]
    assert "seen once" not in found.reason


def test_the_cap_ends_a_request_that_is_under_way() -> None:
    budget = Budget(operations=200, examples=0, seconds=1.0)
    report = gated(bad("silent", "--at", 2), Limits(operation_s=600, drain_s=600), budget)
    assert exit_status(report.verdicts) is ExitStatus.INCONCLUSIVE
    [reason] = {v.reason for v in report.verdicts if v.reason and v.exercised}
    assert reason.startswith("the cap of 1 s was reached: ")
    assert " had not been answered for " in reason


def test_a_message_that_was_never_published_is_a_finding() -> None:
    report = gated(bad("phantom", "--at", 2))
    assert broken(report)["nothing-invented"] == "never-published was never published"
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


@pytest.mark.each_time(1)
@pytest.mark.parametrize("at", [3, 4, 7, 30])
def test_a_driver_that_dies_after_so_many_requests_is_found_wherever_that_is(at: int) -> None:
    report = gated(bad("died", "--at", at, "--since", "start"), budget=Budget(200, 0))
    [(requirement, seen)] = broken(report).items()
    assert requirement == "protocol"
    assert "no answer, the driver exited with status 1; it said last: " in seen
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


@pytest.mark.parametrize("fault", ["carriage return", "unknown field", "endless words"])
def test_what_is_allowed_is_no_finding(fault: str) -> None:
    # A carriage return belongs to the end of a line, unknown fields are ignored, and standard error
    # is free to be talked to, at any length.
    operations = 20 if fault == "endless words" else 100
    report = gated(bad(fault), budget=Budget(operations, 0))
    assert broken(report) == {}
    assert "kept" in {v.outcome.value for v in report.verdicts}


def test_what_a_driver_does_wrong_is_reported_and_can_be_replayed(tmp_path: Path) -> None:
    folder = ("--report", str(tmp_path))
    little = ("--operations", "40", "--examples", "3")
    checked = command("check", bad("event without a field", "--at", "2"), *little, *folder)
    assert checked.exit_code == 1
    assert "missing required field `consumer` - at `$.events[0]`" in checked.output
    found = str(tmp_path / "counterexamples" / "protocol.json")
    again = command("replay", found)
    assert again.exit_code == 1
    assert again.output.splitlines()[-1] == "  broken again: protocol"
    twin = command("replay", found, bad())
    assert (twin.exit_code, twin.output.splitlines()[-1]) == (
        0,
        "  kept: no step of this trace breaks protocol",
    )


# Time.


HALF = ", after 9 bytes of a line that was not ended: "


@pytest.mark.parametrize(("fault", "half"), [("silent", ""), ("half a line, then silence", HALF)])
def test_a_driver_that_does_not_answer_hangs_and_ends_the_stage(fault: str, half: str) -> None:
    report = gated(bad(fault, "--at", 2), IMPATIENT)
    [(requirement, seen)] = broken(report).items()
    what, _, begun = seen.partition("'")
    assert (requirement, what) == ("protocol", f"drain: no answer within 0.2 s{half}")
    assert begun.startswith('{"id":') == bool(half)
    reasons = {v.reason for v in report.verdicts if v.outcome is Outcome.INCONCLUSIVE}
    assert reasons == {"the candidate hangs, so nothing more was tried"}
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


@pytest.mark.each_time(1)
@pytest.mark.parametrize("fault", ["left", "unknown field"])
def test_a_driver_that_ends_again_and_again_is_not_started_for_each_move(fault: str) -> None:
    report = gated(bad(fault, "--at", 0, "--of", "get"), budget=Budget(4_000, 0))
    ended = [each for each in report.stages if f"stopped by {ENDS}" in each.did]
    assert all(each.operations < 40 for each in ended)
    if fault == "left":
        assert len(ended) == len(report.stages) == ENDED_MAX
        assert {v.reason for v in report.verdicts if v.outcome is Outcome.INCONCLUSIVE} == {
            "the candidate had to be started again and again, so nothing more was tried"
        }
    else:
        assert ended == []


def test_a_slow_driver_is_no_hang_and_the_cap_ends_the_run() -> None:
    report = gated(bad("slow"), budget=Budget(operations=10**6, examples=10**6, seconds=0.3))
    assert broken(report) == {}
    reasons = {v.reason for v in report.verdicts if v.outcome is Outcome.INCONCLUSIVE}
    assert reasons == {"the cap of 0.3 s was reached"}
    assert exit_status(report.verdicts) is ExitStatus.INCONCLUSIVE
    assert sum(stage.operations for stage in report.stages) < 100


# Drivers that want to do as little as possible.


@pytest.mark.parametrize("fault", ["refused", "unsupported"])
def test_refusing_what_is_claimed_is_a_finding(fault: str) -> None:
    report = gated(bad(fault))
    assert set(broken(report)) == {"does-what-it-claims"}
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


def test_never_knowing_what_happened_is_inconclusive() -> None:
    report = gated(bad("internal"))
    assert broken(report) == {}
    assert exit_status(report.verdicts) is ExitStatus.INCONCLUSIVE
    [verdict] = [v for v in report.verdicts if v.requirement.id == "does-what-it-claims"]
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_driver_that_claims_nothing_is_asked_the_core() -> None:
    report = gated(bad("no claims", "--at", 0, "--since", "start"), budget=Budget(100, 2))
    core = [v for v in report.verdicts if v.requirement.id in ("nothing-lost", "fifo-order")]
    assert {v.outcome for v in core} == {Outcome.KEPT}
    assert {v.outcome for v in report.verdicts if v.requirement.needs} >= {Outcome.NOT_CLAIMED}


# Being started again.


HELLO = '{"id":0,"ok":true,"name":"another","version":"1","capabilities":{"get":true}}'


@pytest.mark.parametrize(
    ("then", "complaint"),
    [
        ("exit 4", "when it was started again, hello: no answer, the driver exited with status 4"),
        (f"echo '{HELLO}'; cat >&2", "hello: it introduced itself differently when started again"),
    ],
)
def test_a_driver_that_does_not_start_again_ends_with_a_clear_line(
    then: str, complaint: str, tmp_path: Path
) -> None:
    script, flag = tmp_path / "driver.sh", tmp_path / "started"
    first = shlex.join([sys.executable, "-S", str(SCRIPT), "not JSON", "--at", "1"])
    script.write_text(
        f"#!/bin/sh\nif [ -e {flag} ]; then {then}; exit; fi\ntouch {flag}\nexec {first}\n"
    )
    script.chmod(0o755)
    with closing(open_subject(f"exec:{script}", QUICK)) as subject:
        for expected in ("declare: its answer is not in form", complaint, complaint):
            candidate, _ = subject.fresh()
            answer = ask(candidate, Declare(queue="q0", order=Fifo()))
            assert isinstance(answer, Misbehaviour)
            assert answer.what.startswith(expected)
    flag.unlink()
    report = gated(f"exec:{script}")
    assert set(broken(report)) == {"protocol"}
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


# The end.


def test_a_driver_that_ends_with_its_input_has_no_fault() -> None:
    with closing(open_subject(bad(), QUICK)) as subject:
        assert subject.end() is None


def test_a_driver_that_ignores_its_end_is_told_and_killed_with_its_children(
    groups: list[int],
) -> None:
    with closing(open_subject(bad("stubborn"), Limits(ending_s=0.05))) as subject:
        assert len(running_in(groups)) == 2
        fault = subject.end()
    assert fault == Misbehaviour(
        "no end within 0.05 s of the end of its input; it took SIGTERM and SIGKILL"
    )
    assert running_in(groups) == []


def test_children_that_a_driver_leaves_are_ended(groups: list[int]) -> None:
    with closing(open_subject(bad("leaves a child"), QUICK)) as subject:
        assert len(running_in(groups)) == 2
        assert subject.end() is None
    assert running_in(groups) == []


def test_one_that_had_to_be_killed_is_not_waited_for_again() -> None:
    with closing(open_subject(bad("stubborn"), Limits(ending_s=0.05))) as subject:
        assert subject.end() is not None
        subject.fresh()
        fault = subject.end()
    assert fault is not None
    assert "killed without being waited for" in fault.what


def test_ctrl_c_ends_the_driver_and_keeps_what_was_found(
    groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    received, answers = DriverProcess._received, itertools.count()

    def interrupted(self: DriverProcess, end: float) -> bytes:
        if next(answers) == 20:
            raise KeyboardInterrupt
        return received(self, end)

    monkeypatch.setattr(DriverProcess, "_received", interrupted)
    with closing(open_subject(bad(), QUICK)) as subject:
        report = run_gate(subject, catalogue(), Budget(10**6, 10**6), seed=0)
        # It was in the midst of a request, and its next answer would be taken for another's.
        assert running_in(groups) == []
    assert report.interrupted
    assert sum(stage.operations for stage in report.stages) > 5


def test_the_drivers_of_a_gate_that_is_killed_are_ended() -> None:
    code = (
        "import sys, time; from brokerproof.candidates.driver import candidate as driver, process;"
        "process.GUARD_S = 0.05;"
        "candidate = driver.DriverCandidate(sys.argv[1]);"
        "print(candidate._process.group, flush=True);"
        "time.sleep(600)"
    )
    command = [sys.executable, "-c", code, bad("stubborn")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gate:
        assert gate.stdout is not None
        group = int(gate.stdout.readline())
        assert len(running_in([group])) == 2
        gate.kill()
    end = time.monotonic() + 20
    while running_in([group]) and time.monotonic() < end:
        time.sleep(0.05)
    assert running_in([group]) == []


# Errors of brokerproof itself are not the driver's fault.


def test_a_request_of_ours_that_is_wrong_is_no_finding() -> None:
    with closing(open_subject(bad(), QUICK)) as subject:
        candidate, _ = subject.fresh()
        with pytest.raises(BrokerproofErrs, match="brokerproof itself is wrong"):
            ask(candidate, Declare(queue="", order=Fifo()))
        assert isinstance(ask(candidate, Declare(queue="q0", order=Fifo())), Answer)

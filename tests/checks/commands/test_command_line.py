"""The command line: exit statuses, reports, and errors that a user can cause.

Every error ends in a few clear lines and a status, never in a traceback.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.commands.where import lines_about
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Impatient

CANDIDATES = "tests.checks.broken_candidates"
BOX, STACK, SIEVE = f"{CANDIDATES}:Box", f"{CANDIDATES}:Stack", f"{CANDIDATES}:Sieve"
REFERENCE = "reference:qpid-push"
SMALL = ("--operations", "100", "--examples", "2", "--interleavings", "2")
LITTLE = ("--operations", "100", "--examples", "0", "--interleavings", "0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where reports go."""
    return tmp_path / "report"


def run(*arguments: str | Path) -> Result:
    """Run the command line; whatever happens, it ends with a status of its own."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def check(folder: Path, *arguments: str | Path) -> Result:
    """Check candidates and write the report to a folder."""
    return run("check", "--report", folder, *arguments)


def verdict_in(folder: Path) -> dict[str, Any]:
    """Return the report."""
    return cast("dict[str, Any]", json.loads((folder / "verdict.json").read_text("utf-8")))


def outcomes(folder: Path) -> dict[str, str]:
    """Return the verdicts of the first candidate by requirement."""
    [candidate, *_] = verdict_in(folder)["candidates"]
    return {each["requirement"]: each["verdict"] for each in candidate["verdicts"]}


def counterexample(folder: Path, requirement: str) -> Path:
    """Return the file of a counterexample."""
    return folder / "counterexamples" / f"{requirement}.json"


# Errors that a user can cause.

WRONG = [
    (("check", BOX, "--only", "nonsense"), "there is no requirement 'nonsense'"),
    (("requirements", "nonsense"), "`brokerproof requirements` lists all"),
    (("check", "--nonsense"), "No such option"),
    (("check", "--seed", "-1"), "Invalid value for '--seed'"),
    (("check", "--seed", "x"), "Invalid value for '--seed'"),
    (("check", "--budget", "0"), "Invalid value for '--budget'"),
    (("check", "--budget", "nan"), "'nan' is not a finite number"),
    (("check", "--operations", "0"), "Invalid value for '--operations'"),
    (("nonsense",), "No such command 'nonsense'"),
    (
        ("check", "reference:nonsense"),
        "system must be one of qpid-push, qpid-pull, rabbitmq-paging, activemq-cursor, ",
    ),
    (("check", f"{REFERENCE}?colour=red"), "unknown parameter 'colour'"),
    (("check", f"{REFERENCE}?runner=lazy"), "runner must be one of eager, drain, not 'lazy'"),
    (("check", f"{REFERENCE}?runner"), "parameter 'runner'"),
    (("check", "nowhere.to.be:found"), "there is no module 'nowhere'"),
    (("check", "stompp://me:secret@there/"), "stompp://me:***@there/: the scheme stompp is not"),
    (("check", f"{CANDIDATES}:Nothing"), "'Nothing' is not defined there"),
    (("check", f"{CANDIDATES}:broken_factory"), "the factory failed with OSError: no space left"),
    (("check", f"{CANDIDATES}:name_of"), "the factory failed with TypeError"),
    (("check", "nowhere.py:found"), "there is no file nowhere.py"),
    (("check", CANDIDATES), "this does not name a factory"),
    (("check", f"{CANDIDATES}:Mute"), "reset was answered refused: no reset"),
    (("check", "amqp10://127.0.0.1:1/"), "no server listens there"),
    (("check", "exec:./no-driver"), "it cannot be started: No such file or directory"),
    (("check", "amqp091://127.0.0.1:1/"), "no server listens there"),
    (("replay",), "Missing argument 'FILE'"),
    (("replay", "nowhere.json"), "nowhere.json: No such file or directory"),
]


@pytest.mark.parametrize(("arguments", "complaint"), WRONG, ids=lambda each: " ".join(each)[:40])
def test_a_mistake_is_told_in_a_line(
    arguments: tuple[str, ...], complaint: str, folder: Path
) -> None:
    more = ("--report", str(folder)) if arguments[0] == "check" else ()
    result = run(*arguments, *more)
    assert result.exit_code == 2
    assert complaint in result.output
    [error] = result.output.splitlines()
    assert error.startswith("Error: ")
    assert not folder.exists()


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = check(tmp_path / "file" / "below", BOX, *LITTLE)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].endswith("name another folder with --report")


GOOD: dict[str, Any] = {
    "format": "brokerproof-counterexample/1",
    "candidate": BOX,
    "requirement": "nothing-lost",
    "expected": "m0",
    "seen": "nothing",
    "witnesses": ["m0"],
    "steps": [
        {"move": {"op": "declare", "queue": "q0", "order": {"kind": "fifo"}}, "answered": "ok"}
    ],
    "certificate": {"grade": "not certified", "reason": "made by hand"},
}
MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"format": "brokerproof-counterexample/9"}, "`$.format`"),
    "no steps": ({"steps": None}, "`$.steps`"),
    "a number for a name": ({"candidate": 7}, "`$.candidate`"),
    "an unknown move": (
        {"steps": [{"move": {"op": "dance"}, "answered": ""}]},
        "`$.steps[0].move.op`",
    ),
    "a wrong field of a move": (
        {"steps": [*GOOD["steps"], {"move": {"op": "get", "channel": 1}, "answered": ""}]},
        "`$.steps[1].move.channel`",
    ),
    "an unknown grade": ({"certificate": {"grade": "wished"}}, "`$.certificate.grade`"),
}


def written(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trace_made_by_hand_can_be_replayed(tmp_path: Path) -> None:
    result = run("replay", written(tmp_path / "trace.json", json.dumps(GOOD)))
    assert result.exit_code == 0
    assert "kept: no step of this trace breaks nothing-lost" in result.output


def test_a_settlement_that_is_left_out_is_shown(tmp_path: Path) -> None:
    release = {"move": {"op": "settle", "how": "release", "message": "m7"}, "answered": "ok"}
    wrong = GOOD | {"steps": [*GOOD["steps"], release]}
    result = run("replay", written(tmp_path / "trace.json", json.dumps(wrong)))
    [line] = [each for each in result.output.splitlines() if each.startswith("   -  ")]
    assert line.startswith("   -  release m7 ")
    assert line.endswith("  left out: no client holds the message now")


def test_a_loss_that_no_step_asks_for_is_seen(tmp_path: Path) -> None:
    steps = [
        *GOOD["steps"],
        {"move": {"op": "publish", "queue": "q0", "message": {"id": "m0"}}, "answered": "ok"},
        {"move": {"op": "get", "channel": "ch0", "queue": "q0"}, "answered": "m0 → the get"},
        {"move": {"op": "settle", "how": "release", "message": "m0"}, "answered": "ok"},
    ]
    path = written(tmp_path / "trace.json", json.dumps(GOOD | {"steps": steps}))
    kept, lost = run("replay", path, BOX), run("replay", path, SIEVE)
    assert (kept.exit_code, lost.exit_code) == (0, 1)
    assert "last" not in kept.output
    assert lost.output.splitlines()[-4].split() == [
        *("7", "get", "from", "q0", "on", "last", "mode=acknowledge", "nothing", "(added)")
    ]
    assert lost.output.splitlines()[-1] == "  broken again: nothing-lost"


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_trace_is_refused_with_its_field(name: str, tmp_path: Path) -> None:
    wrong, place = MALFORMED[name]
    path = written(tmp_path / "trace.json", json.dumps(GOOD | wrong))
    result = run("replay", path)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith(f"Error: {path}: not a counterexample: ")
    assert place in line


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'{"format": "\xff"}'])
def test_what_is_no_json_or_no_object_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    result = run("replay", path)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith(f"Error: {path}: not a counterexample: ")


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    result = run("replay", tmp_path)
    assert result.exit_code == 2
    assert "Is a directory" in result.output


def test_a_trace_of_an_unknown_requirement_is_refused(tmp_path: Path) -> None:
    wrong = GOOD | {"requirement": "nonsense"}
    result = run("replay", written(tmp_path / "trace.json", json.dumps(wrong)))
    assert result.exit_code == 2
    assert "nonsense" in result.output


# Exit statuses.


def test_a_candidate_that_keeps_what_is_asked_ends_with_0(folder: Path) -> None:
    result = check(folder, BOX, "--only", "nothing-lost", "--only", "get-finds", *LITTLE)
    assert result.exit_code == 0
    assert outcomes(folder) == {"nothing-lost": "kept", "get-finds": "kept"}
    assert verdict_in(folder)["status"] == 0


def test_a_candidate_that_breaks_a_promise_ends_with_1(folder: Path) -> None:
    result = check(folder, STACK, *LITTLE)
    assert result.exit_code == 1
    assert outcomes(folder)["fifo-order"] == "broken"
    assert verdict_in(folder)["status"] == 1
    assert counterexample(folder, "fifo-order").is_file()
    assert result.output.splitlines()[-2:] == [
        f"failed (exit status 1); report: {folder / 'report.html'}",
        f"to see it again: brokerproof replay {counterexample(folder, 'fifo-order')}",
    ]


def test_what_a_candidate_raises_is_a_finding(folder: Path) -> None:
    result = check(folder, f"{CANDIDATES}:Thrower", *LITTLE)
    assert result.exit_code == 1
    assert outcomes(folder)["protocol"] == "broken"
    assert "publish raised RuntimeError: one is enough" in result.output


NOTHING = ("--operations", "1", "--examples", "0", "--interleavings", "0")


@pytest.mark.parametrize("budget", [("--budget", "0.000001"), NOTHING])
def test_what_could_not_be_tried_is_inconclusive_and_ends_with_3(
    folder: Path, budget: tuple[str, ...]
) -> None:
    result = check(folder, REFERENCE, *budget)
    assert result.exit_code == 3
    assert "broken" not in outcomes(folder).values()
    assert outcomes(folder)["fifo-order"] == "inconclusive"
    assert verdict_in(folder)["status"] == 3


def test_the_reason_of_what_is_inconclusive_is_told(folder: Path) -> None:
    result = check(folder, REFERENCE, "--budget", "0.000001")
    assert "the cap of 1e-06 s was reached" in result.output
    result = check(folder, REFERENCE, *NOTHING)
    assert "never happened in this run: " in result.output


def test_what_is_inconclusive_can_be_accepted(folder: Path) -> None:
    nothing_tried = ("--operations", "1", "--examples", "0")
    assert check(folder, BOX, *nothing_tried).exit_code == 3
    assert check(folder, BOX, *nothing_tried, "--accept-inconclusive").exit_code == 0
    assert outcomes(folder)["fifo-order"] == "inconclusive"
    assert check(folder, STACK, *LITTLE, "--accept-inconclusive").exit_code == 1


def test_the_worst_of_several_candidates_decides(folder: Path) -> None:
    only = ("--only", "nothing-lost", "--only", "fifo-order", *LITTLE)
    result = check(folder, BOX, STACK, *only)
    assert result.exit_code == 1
    names = [each["candidate"] for each in verdict_in(folder)["candidates"]]
    assert names == [BOX, STACK]
    assert outcomes(folder)["fifo-order"] == "kept"


# Verdicts and reports.


def test_only_what_is_named_is_judged(folder: Path) -> None:
    result = check(folder, STACK, "--only", "nothing-lost", *LITTLE)
    assert result.exit_code == 0
    assert outcomes(folder) == {"nothing-lost": "kept"}
    assert "fifo-order" not in result.output
    assert not counterexample(folder, "fifo-order").exists()


def test_everything_is_judged_where_nothing_is_named(folder: Path) -> None:
    check(folder, BOX, *LITTLE)
    assert list(outcomes(folder)) == list(catalogue())
    assert outcomes(folder)["browser-once"] == "not claimed"


@pytest.mark.each_time(1)
@pytest.mark.parametrize("candidate", [STACK, SIEVE, REFERENCE])
def test_the_same_seed_gives_the_same_bytes(candidate: str, tmp_path: Path) -> None:
    for name in ("one", "other"):
        check(tmp_path / name, candidate, *SMALL, "--operations", "10", "--seed", "5")
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    assert {path.suffix for path in files} >= {".html", ".json", ".sarif", ".xml"}
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_another_seed_is_told(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        check(tmp_path / seed, BOX, *SMALL, "--seed", seed)
        [candidate] = verdict_in(tmp_path / seed)["candidates"]
        assert candidate["seed"] == int(seed)
        assert f"seed {seed}" in candidate["stages"][-1]["did"]


def test_counterexamples_of_an_earlier_run_do_not_stay(folder: Path) -> None:
    check(folder, STACK, *LITTLE)
    assert counterexample(folder, "fifo-order").exists()
    check(folder, BOX, *LITTLE)
    assert not counterexample(folder, "fifo-order").exists()


def test_the_requirements_are_listed_and_explained() -> None:
    listed = run("requirements")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == list(catalogue())
    one = run("requirements", "browser-once-by-priority")
    lines = one.output.splitlines()
    assert lines == [*lines_about("browser-once-by-priority")]
    assert lines[:6] == [
        "browser-once-by-priority (SHOULD)",
        f"  {catalogue()['browser-once-by-priority'].statement}",
        f"  exercised when: {catalogue()['browser-once-by-priority'].situation}",
        "  source: Driver protocol 1, Browsers",
        "  source: Priority Queues, Priority Queues",
        "  asked of candidates that claim: browse, orders:priority",
    ]


# Replay.


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the counterexample that a stack gives."""
    folder = tmp_path_factory.mktemp("found")
    check(folder, STACK, *LITTLE)
    return counterexample(folder, "fifo-order")


OUT_OF_ORDER = [
    "   1  declare q0 fifo                      ok",
    "   2  publish m0 to q0                     ok",
    "   3  publish m1 to q0                     ok",
    "   4  get from q0 on ch0 mode=acknowledge  m1 → the get",
    "      expected  m0",
    "      seen      m1 to the get",
    "  broken again: fifo-order",
]


def test_a_counterexample_breaks_its_own_candidate_again(found: Path) -> None:
    result = run("replay", found)
    assert result.exit_code == 1
    assert result.output.splitlines() == [f"fifo-order on {STACK}", *OUT_OF_ORDER]


def test_another_candidate_may_keep_the_promise(found: Path) -> None:
    result = run("replay", found, BOX)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == f"fifo-order on {BOX}"
    assert lines[-1] == "  kept: no step of this trace breaks fifo-order"
    assert any(line.endswith("m0 → the get    (in the report: m1 → the get)") for line in lines)


def test_another_candidate_may_break_another_promise(found: Path) -> None:
    result = run("replay", found, f"{CANDIDATES}:Thrower")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "  another requirement broken: protocol"


def test_a_candidate_that_cannot_be_had_cannot_be_replayed_on(found: Path) -> None:
    result = run("replay", found, "nowhere.to.be:found")
    assert result.exit_code == 2
    assert result.output.startswith("Error: nowhere.to.be:found: there is no module 'nowhere'")


def test_answers_are_compared_step_by_step_where_a_settlement_falls_away(tmp_path: Path) -> None:
    moves: list[tuple[dict[str, object], str]] = [
        ({"op": "declare", "queue": "q0", "order": {"kind": "fifo"}}, "ok"),
        ({"op": "publish", "queue": "q0", "message": {"id": "m0"}}, "ok"),
        ({"op": "publish", "queue": "q0", "message": {"id": "m1"}}, "ok"),
        ({"op": "get", "channel": "ch0", "queue": "q0"}, "m1 → the get"),
        # On a queue that gives m0 first m1 is not acquired, so there is nothing to settle.
        ({"op": "settle", "how": "acknowledge", "message": "m1"}, "ok"),
        ({"op": "get", "channel": "ch0", "queue": "q0"}, "m0 → the get"),
    ]
    trace = GOOD | {"steps": [{"move": move, "answered": told} for move, told in moves]}
    result = run("replay", written(tmp_path / "trace.json", json.dumps(trace)))
    assert result.exit_code == 0
    assert "m1 → the get    (in the report: m0 → the get)" in result.output


def test_a_replay_that_cannot_be_followed_is_not_a_broken_promise(found: Path) -> None:
    result = run("replay", found, f"{CANDIDATES}:Shrug")
    assert "not decided: get has no certain outcome" in result.output
    assert result.exit_code == 3


# Ctrl-C.


@pytest.fixture
def patience() -> Iterator[None]:
    """Forget afterwards how many operations were left."""
    yield
    Impatient.operations_left = itertools.repeat(None, 0)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("operations", "stages"), [(5, ["product"]), (120, ["product", "product"])]
)
def test_ctrl_c_shows_what_was_found_so_far(
    operations: int, stages: list[str], folder: Path
) -> None:
    Impatient.operations_left = itertools.repeat(None, operations)
    little = ("--operations", "60", "--examples", "9", "--jobs", "1")
    result = check(folder, f"{CANDIDATES}:Impatient", BOX, *little)
    assert result.exit_code == 3
    candidates = verdict_in(folder)["candidates"]
    # The candidates after it are not begun.
    assert [each["candidate"] for each in candidates] == [f"{CANDIDATES}:Impatient"]
    assert candidates[0]["interrupted"]
    assert [stage["stage"] for stage in candidates[0]["stages"]] == stages
    reasons = {
        each["reason"] for each in candidates[0]["verdicts"] if each["verdict"] == "inconclusive"
    }
    assert reasons == {"interrupted"}


@pytest.mark.usefixtures("patience")
def test_without_ctrl_c_nothing_is_marked_as_interrupted(folder: Path) -> None:
    Impatient.operations_left = itertools.repeat(None, 5_000)
    little = ("--operations", "90", "--examples", "1", "--jobs", "1")
    check(folder, f"{CANDIDATES}:Impatient", *little)
    [candidate] = verdict_in(folder)["candidates"]
    assert not candidate["interrupted"]

"""Options of the command line for CI: sets, known failures, a file of settings, hosts.

Ctrl-C may come at any moment, and always leaves a readable report.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import Result

from brokerproof.checks.commands import check as check_command
from brokerproof.checks.gate.host import Hosts
from brokerproof.checks.report import folders, forms, verdict_file
from brokerproof.checks.search import counterexamples
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import Consume, Drain, Get, Operation
from brokerproof.spec.requirements import catalogue
from brokerproof.spec.requirements.frozen import frozen, read_set
from tests.checks.broken_candidates import Box
from tests.checks.commands.test_command_line import (
    BOX,
    CANDIDATES,
    OUT_OF_ORDER,
    SIEVE,
    STACK,
    check,
    run,
)

LITTLE = ("--operations", "100", "--examples", "0")
FIFO = ("--only", "fifo-order", *LITTLE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where reports go."""
    return tmp_path / "report"


@pytest.fixture(autouse=True)
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests be on no CI host, wherever they run."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def verdict_in(folder: Path) -> dict[str, Any]:
    """Return the report, after a check of its form."""
    verdict_file.read(folder / "verdict.json")
    return cast("dict[str, Any]", json.loads((folder / "verdict.json").read_text("utf-8")))


def refusal(result: Result) -> str:
    """Return the one line with which the command refused to run."""
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith("Error: ")
    return line


# Sets of requirements.


def own_set(tmp_path: Path, *levels: tuple[str, str]) -> Path:
    """Write a set of the user's own."""
    lines = "".join(f'{name} = "{level}"\n' for name, level in levels)
    path = tmp_path / "ours.toml"
    path.write_text(f'name = "ours"\n[levels]\n{lines}', encoding="utf-8")
    return path


def test_only_what_is_in_the_set_is_judged(folder: Path, tmp_path: Path) -> None:
    without = own_set(tmp_path, ("nothing-lost", "MUST"), ("get-finds", "MUST"))
    assert check(folder, STACK, *LITTLE, "--requirements", without).exit_code == 0
    assert verdict_in(folder)["requirements"] == str(without)
    with_it = own_set(tmp_path, ("nothing-lost", "MUST"), ("fifo-order", "MUST"))
    assert check(folder, STACK, *LITTLE, "--requirements", with_it).exit_code == 1
    advised = own_set(tmp_path, ("nothing-lost", "MUST"), ("fifo-order", "SHOULD"))
    lenient = check(folder, STACK, *LITTLE, "--requirements", advised)
    assert lenient.exit_code == 0
    assert "(of these only recommended: fifo-order)" in lenient.output
    assert check(folder, STACK, *LITTLE, "--requirements", advised, "--strict").exit_code == 1


def test_what_is_not_in_the_set_cannot_be_asked_for(folder: Path, tmp_path: Path) -> None:
    ours = own_set(tmp_path, ("nothing-lost", "MUST"))
    line = refusal(check(folder, BOX, "--requirements", ours, "--only", "fifo-order"))
    assert f"there is no requirement 'fifo-order' in the set {ours}" in line
    assert "there is no set of requirements '1.0'" in refusal(
        check(folder, "--requirements", "1.0")
    )


def test_the_catalogue_can_be_frozen_and_listed(tmp_path: Path) -> None:
    result = run("requirements", "--freeze", "2030.1")
    assert result.stdout == frozen("2030.1")
    assert re.fullmatch(r"sha256 [0-9a-f]{64}\n", result.stderr)
    assert read_set("2030.1", result.stdout) == catalogue()
    listed = run("requirements", "--requirements", own_set(tmp_path, ("fifo-order", "SHOULD")))
    assert listed.output.split()[:2] == ["fifo-order", "SHOULD"]
    assert run("requirements", "--sets").exit_code == 0
    assert "there is no set" in refusal(run("requirements", "--requirements", "1.0"))


# Known failures.

KNOWN = """
[[known]]
requirement = "fifo-order"
reason = "issue 17"
expires = 2026-06-01
"""


def known_in(tmp_path: Path, text: str = KNOWN) -> tuple[str | Path, ...]:
    """Write a list of known failures and return the options that name it."""
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    return ("--known", path, "--today", "2026-06-01")


def test_a_known_failure_does_not_fail_the_gate(folder: Path, tmp_path: Path) -> None:
    result = check(folder, STACK, *FIFO, *known_in(tmp_path))
    assert result.exit_code == 0
    assert "(known until 2026-06-01: issue 17)" in " ".join(result.output.split())
    assert "1 broken (of these known: fifo-order)" in result.output
    [verdict] = verdict_in(folder)["candidates"][0]["verdicts"]
    assert verdict["known"] == {"reason": "issue 17", "expires": "2026-06-01"}
    assert (verdict["verdict"], verdict["counts_as"]) == ("broken", "accepted")
    assert check(folder, STACK, *FIFO).exit_code == 1


def test_a_known_failure_that_is_kept_again_turns_the_gate_red(
    folder: Path, tmp_path: Path
) -> None:
    result = check(folder, BOX, *FIFO, *known_in(tmp_path))
    assert result.exit_code == 1
    assert "fifo-order is known as a failure and is kept again: take it off" in result.output
    assert verdict_in(folder)["status"] == 1
    assert check(folder, BOX, *FIFO).exit_code == 0


def test_an_expired_one_turns_the_gate_red(folder: Path, tmp_path: Path) -> None:
    options = known_in(tmp_path)
    result = check(folder, STACK, *FIFO, *options[:2], "--today", "2026-06-02")
    assert result.exit_code == 1
    assert "fifo-order was accepted until 2026-06-01 (issue 17): mend it" in result.output
    assert len(verdict_in(folder)["complaints"]) == 1


def test_a_malformed_list_or_date_is_refused(folder: Path, tmp_path: Path) -> None:
    line = refusal(check(folder, BOX, *known_in(tmp_path, KNOWN.replace("reason", "raison"))))
    assert "known.toml: line 2: known[0]" in line
    assert "Invalid value for '--today'" in check(folder, BOX, "--today", "soon").output
    assert not folder.exists()


# The configuration file.


def test_options_may_stand_in_a_file_and_the_command_line_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.brokerproof]\ncandidates = ["{STACK}"]\nonly = ["fifo-order"]\n'
        'operations = 100\nexamples = 0\nseed = 3\nreport = "from-file"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert run("check").exit_code == 1
    [candidate] = verdict_in(tmp_path / "from-file")["candidates"]
    assert (candidate["candidate"], candidate["seed"]) == (STACK, 3)
    assert run("check", BOX, "--seed", "4", "--report", "other").exit_code == 0
    [candidate] = verdict_in(tmp_path / "other")["candidates"]
    assert (candidate["candidate"], candidate["seed"]) == (BOX, 4)


def test_a_wrong_key_is_refused_with_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brokerproof.toml").write_text("sead = 3\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert refusal(run("check", BOX)).startswith("Error: brokerproof.toml: sead: there is no such")
    assert run("requirements").exit_code == 0


# CI hosts.


def test_on_github_there_are_annotations_and_a_summary(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    lines = check(folder, STACK, *FIFO).output.splitlines()
    [stop] = [line for line in lines if line.startswith("::stop-commands::")]
    again = lines.index(f"::{stop.removeprefix('::stop-commands::')}::")
    [command] = [line for line in lines if line.startswith("::error ")]
    assert lines.index(command) > again > lines.index(stop) == 0
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert summary.startswith("## brokerproof: broken")
    check(folder, BOX, *FIFO)
    assert "## brokerproof: kept" in (tmp_path / "summary.md").read_text("utf-8")


def test_elsewhere_there_are_none(folder: Path) -> None:
    assert "::" not in check(folder, STACK, *FIFO).output


# Candidates with hostile texts.

EVIL = "</style><script>alert(1)</script>]]>\n::error::no\r\x1b[2J\ud800|`{{ 1 }}"


class Hostile(Box):
    """Delivers an unpublished message with a harmful id to all consumers."""

    def hello(self) -> Hello:
        """Say harmful things."""
        claims = Capabilities(get=True, modes=("acknowledge",))
        return Hello(name=EVIL, version=EVIL, capabilities=claims)

    def handle(self, operation: Operation) -> Answer:
        """Do harm where something was published."""
        match operation:
            case Consume():
                return OK
            case Drain() if any(self.queues.values()):
                given = Delivered(delivery=EVIL, consumer=EVIL, queue=EVIL, message=EVIL)
                return Answer((given,))
            case Get():
                return refused(EVIL)
            case _:
                return super().handle(operation)


def test_hostile_words_do_no_harm_anywhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    result = check(folder, f"{__name__}:Hostile", *LITTLE)
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    commands = [line for line in result.output.splitlines() if line.startswith("::")]
    kinds = {line.split("::")[1].split(" ")[0] for line in commands[2:]}
    assert kinds == {"error", "warning"}
    verdict_in(folder)
    ET.fromstring((folder / "junit.xml").read_bytes())  # noqa: S314 (it is our own)
    assert json.loads((folder / "verdict.sarif").read_bytes())["version"] == "2.1.0"
    text = (folder / "report.html").read_text("utf-8")
    assert text.count("<script") == 0
    assert text.count("</style>") == 1
    assert "alert(1)" in text
    files = sorted((folder / "counterexamples").glob("*.json"))
    assert files
    for file in files:
        assert "\x1b" not in run("replay", "--rejudge", file).output


# Passwords.


def test_no_message_has_a_password(folder: Path) -> None:
    line = refusal(check(folder, "amqp091://me:secret@127.0.0.1:1/"))
    assert "no server listens there" in line
    assert "secret" not in line


def test_a_counterexample_whose_password_was_left_out_asks_for_it(tmp_path: Path) -> None:
    check(tmp_path, STACK, *FIFO)
    path = tmp_path / "counterexamples" / "fifo-order.json"
    text = path.read_text("utf-8").replace(STACK, "amqp091://me:***@127.0.0.1:1/")
    path.write_text(text, encoding="utf-8")
    assert "'amqp091://me:PASSWORD@127.0.0.1:1/'" in refusal(run("replay", path))
    assert run("replay", path, BOX).exit_code == 0


# Ctrl-C.


def interrupted(*_: object, **__: object) -> None:
    """Simulate Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["Host.open", "Host.look", "candidate_record", "show"])
def test_ctrl_c_at_any_moment_leaves_a_report_that_can_be_read(
    moment: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{check_command.__name__}.{moment}", interrupted)
    result = check(folder, STACK, BOX, *FIFO, "--jobs", "1")
    found = verdict_in(folder)
    assert found["interrupted"]
    assert "interrupted: the report says what was found so far" in result.output
    # Earlier verdicts count; without any, the candidate has not passed.
    assert result.exit_code == found["status"] == (1 if moment == "show" else 3)
    assert {path.name for path in folder.iterdir()} >= {"junit.xml", "report.html"}


@pytest.mark.parametrize("presses", [0, 1])
def test_ctrl_c_ends_all_that_run_at_once_and_keeps_what_they_found(
    presses: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [*range(presses)]

    def press(*_: object) -> None:
        if left:
            left.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(check_command, "show_progress", press)
    result = check(folder, BOX, STACK, BOX, *FIFO, "--jobs", "2", "--progress")
    found = verdict_in(folder)
    assert len(found["candidates"]) == (2 if presses else 3)  # the third is not begun
    assert found["interrupted"] is bool(presses)
    assert result.exit_code == found["status"]


def test_a_second_ctrl_c_awaits_nothing_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_command, "show_progress", interrupted)
    monkeypatch.setattr(Hosts, "interrupt", interrupted)
    assert check(folder, BOX, STACK, *FIFO, "--jobs", "2", "--progress").exit_code == 3
    assert verdict_in(folder)["interrupted"]
    assert not verdict_in(folder)["candidates"]


def test_a_run_that_was_interrupted_is_not_green_for_what_it_did_not_begin(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_command, "show", interrupted)
    stopped = check(folder, BOX, STACK, *FIFO, "--jobs", "1")
    assert stopped.exit_code == verdict_in(folder)["status"] == 3
    monkeypatch.undo()
    assert check(folder, BOX, *FIFO).exit_code == 0


class Swallower(Box):
    """Swallows whatever is raised within it, as a finalizer would."""

    presses = 0
    asked_by = signal.SIGINT

    def handle(self, operation: Operation) -> Answer:
        """Press Ctrl-C if presses are left, and carry out the operation all the same."""
        if Swallower.presses:
            Swallower.presses -= 1
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(Swallower.asked_by)
        return super().handle(operation)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("presses", "interrupted"), [(0, False), (1, True)])
def test_ctrl_c_counts_where_the_exception_is_swallowed(
    presses: int, interrupted: bool, asked: signal.Signals, folder: Path
) -> None:
    Swallower.presses, Swallower.asked_by = presses, asked
    status = check(folder, f"{__name__}:Swallower", *FIFO).exit_code
    assert verdict_in(folder)["interrupted"] == interrupted
    assert status == (3 if interrupted else 0)


def test_without_ctrl_c_nothing_is_marked(folder: Path) -> None:
    assert check(folder, STACK, BOX, *FIFO).exit_code == 1
    assert not verdict_in(folder)["interrupted"]


def test_ctrl_c_while_the_report_is_written_does_not_cut_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = folders.put
    # Where the tests run in the background, Ctrl-C is ignored to begin with.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def pressed(path: Path, content: bytes) -> None:
        signal.raise_signal(signal.SIGINT)
        put(path, content)

    monkeypatch.setattr(folders, "put", pressed)
    assert check(folder, STACK, *FIFO).exit_code == 1
    assert verdict_in(folder)["status"] == 1
    assert {path.name for path in folder.iterdir()} >= set(forms.FORMS)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.put(tmp_path / "file", b"before")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folders.put(tmp_path / "file", b"after")
    assert (tmp_path / "file").read_bytes() == b"before"


# The schema.


def test_the_schema_is_printed() -> None:
    result = run("schema")
    assert result.stdout.encode() == verdict_file.schema()
    assert json.loads(result.stdout)["$ref"] == "#/$defs/VerdictFile"


# Recorded runs judged again.


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report on a stack and a sieve."""
    folder = tmp_path_factory.mktemp("saved")
    check(folder, STACK, SIEVE, "--operations", "400", "--examples", "0")
    return folder


def one(saved: Path, requirement: str) -> Path:
    """Return the file of a counterexample."""
    [path, *_] = sorted(saved.rglob(f"{requirement}.json"))
    return path


def test_recorded_answers_are_judged_again_without_a_candidate(saved: Path) -> None:
    result = run("replay", "--rejudge", one(saved, "fifo-order"))
    assert result.exit_code == 1
    told = [f"fifo-order on {STACK}, as recorded", *OUT_OF_ORDER]
    assert result.output.splitlines() == told


def test_a_folder_of_recorded_runs_is_judged_again(saved: Path) -> None:
    result = run("replay", "--rejudge", saved)
    assert result.exit_code == 1
    files = sorted(saved.rglob("counterexamples/**/*.json"))
    assert len(files) >= 2
    assert result.output.splitlines()[-1] == f"{len(files)} runs judged again"
    assert result.output.count("broken again: ") == len(files)
    assert run("replay", "--rejudge", saved / "counterexamples").exit_code == 1


def test_what_a_final_drain_found_stands(saved: Path) -> None:
    result = run("replay", "--rejudge", one(saved, "nothing-lost"))
    assert result.output.splitlines()[-1] == "  broken again: nothing-lost"
    assert "is gone" in result.output


def test_what_was_misbehaviour_stays_so(tmp_path: Path) -> None:
    check(tmp_path, f"{CANDIDATES}:Thrower", *LITTLE)
    result = run("replay", "--rejudge", one(tmp_path, "protocol"))
    assert result.exit_code == 1
    assert "RuntimeError" in result.output


def test_what_was_seen_inside_is_not_recorded(saved: Path, tmp_path: Path) -> None:
    path = one(saved, "fifo-order")
    target = changed(path, tmp_path / "x.json", requirement="documented-steps")
    result = run("replay", "--rejudge", target)
    assert result.exit_code == 3
    assert "what was seen inside of the candidate is not recorded" in result.output


def changed(path: Path, target: Path, **changes: Any) -> Path:
    """Write a changed counterexample."""
    found = msgspec.structs.replace(counterexamples.read(path), **changes)
    target.write_bytes(msgspec.json.encode(found))
    return target


def test_answers_that_are_lawful_now_are_judged_as_kept(saved: Path, tmp_path: Path) -> None:
    path = one(saved, "fifo-order")
    steps = counterexamples.read(path).steps
    honest = msgspec.structs.replace(
        steps[-1],
        answered="m0 → the get",
        events=(msgspec.structs.replace(steps[-1].events[0], message="m0"),),
    )
    target = changed(path, tmp_path / "x.json", steps=(*steps[:-1], honest))
    result = run("replay", "--rejudge", target)
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "  kept: no step of this trace breaks fifo-order"


def test_recorded_answers_may_break_another_promise(saved: Path, tmp_path: Path) -> None:
    target = changed(one(saved, "fifo-order"), tmp_path / "x.json", requirement="nothing-twice")
    result = run("replay", "--rejudge", target)
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "  another requirement broken: fifo-order"


def test_a_set_decides_what_counts(saved: Path, tmp_path: Path) -> None:
    ours = own_set(tmp_path, ("nothing-lost", "MUST"))
    path = one(saved, "fifo-order")
    result = run("replay", "--rejudge", path, "--requirements", ours)
    assert result.exit_code == 0
    assert "fifo-order is broken, and is not in the set that is asked" in result.output


def test_a_file_without_recorded_answers_is_not_decided(saved: Path, tmp_path: Path) -> None:
    target = changed(one(saved, "fifo-order"), tmp_path / "x.json", claims=None)
    result = run("replay", "--rejudge", target)
    assert result.exit_code == 3
    assert "from before answers were recorded" in result.output
    assert run("replay", target).exit_code == 1


def test_what_cannot_be_judged_again_is_told(saved: Path, tmp_path: Path) -> None:
    path = one(saved, "fifo-order")
    assert "asks no candidate" in refusal(run("replay", "--rejudge", path, BOX))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there are no counterexamples" in refusal(run("replay", "--rejudge", empty))
    (empty / "verdict.json").write_text("{}", encoding="utf-8")
    nothing = run("replay", "--rejudge", empty)
    assert (nothing.exit_code, nothing.output.startswith("nothing was broken")) == (0, True)
    assert "there is no set" in refusal(run("replay", "--rejudge", path, "--requirements", "1.0"))
    assert "No such file" in refusal(run("replay", "--rejudge", tmp_path / "nowhere.json"))


@pytest.fixture(autouse=True)
def ctrl_c_is_as_it_was() -> Iterator[None]:
    """See to it that no test leaves the signal handled otherwise."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before

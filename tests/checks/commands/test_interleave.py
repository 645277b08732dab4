"""`brokerproof interleave` on brokers with threads: sound, hasty and unfit ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands import interleave as interleave_command
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.parallel import Recorded

LOCKED = Path(__file__).parents[3] / "examples" / "locked_queue.py"


def interleaved(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["interleave", *arguments])


@pytest.mark.parametrize("candidate", ["reference:qpid-push", f"{LOCKED}:make_broker"])
def test_a_sound_broker_keeps_what_it_promises(candidate: str) -> None:
    result = interleaved(candidate, "--case", "enqueue, consume")
    assert result.exit_code == 0, result.output
    assert "fifo: enqueue, consume: all " in result.output
    assert "2 cases, 0 broken\n" in result.output


def test_a_case_is_found_by_the_name_that_was_printed() -> None:
    result = interleaved("--case", "fifo: enqueue, consume")
    assert result.exit_code == 0
    assert "fifo: enqueue, consume: all " in result.output
    assert "1 cases, 0 broken\n" in result.output


@pytest.mark.parametrize(("factory", "status"), [("make_hasty_broker", 1), ("make_broker", 3)])
def test_ctrl_c_forgets_nothing_that_was_found(
    factory: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = []

    def explored(case: Case[Recorded], runs_max: int) -> Explored:
        cases.append(case.name)
        if len(cases) == 2:
            raise KeyboardInterrupt
        return explore(case, runs_max=runs_max)

    monkeypatch.setattr(interleave_command, "explore", explored)
    result = interleaved(f"{LOCKED}:{factory}", "--case", "enqueue, consume")
    assert result.exit_code == status
    assert f"interrupted after 1 cases, {int(status == 1)} broken\n" in result.output


def test_what_is_not_all_is_told() -> None:
    result = interleaved("--case", "enqueue, enqueue", "--runs", "3")
    assert result.exit_code == 0
    assert "the first 3 interleavings" in result.output
    assert "2 cases, 0 broken, 2 with more to run" in result.output


def test_a_hasty_broker_is_broken_and_shown() -> None:
    result = interleaved(f"{LOCKED}:make_hasty_broker", "--case", "enqueue, consume")
    assert result.exit_code == 1
    assert "BROKEN" in result.output
    assert "nothing orders the two" in " ".join(result.output.split())
    assert "lock.given back" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([f"{LOCKED.parent / 'naive_queue.py'}:make_broker"], "it has no `on_threads`"),
        (["--case", "no such words"], "no case has 'no such words' in its name"),
        (["reference:nobody"], "reference:nobody"),
        (["--runs", "0"], "--runs"),
    ],
)
def test_what_cannot_be_run_ends_in_one_line(arguments: list[str], said: str) -> None:
    result = interleaved(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_where_nothing_could_begin_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(
        "from locked_queue import LockedQueue\n"
        "from brokerproof.spec.protocol.operations import Publish\n"
        "class Raises(LockedQueue):\n"
        "    def handle(self, operation):\n"
        "        if isinstance(operation, Publish):\n"
        "            raise ValueError('no')\n"
        "        return super().handle(operation)\n"
    )
    (tmp_path / "locked_queue.py").write_text(Path(LOCKED).read_text("utf-8"))
    (tmp_path / "naive_queue.py").write_text(Path(LOCKED).with_name("naive_queue.py").read_text())
    result = interleaved(f"{tmp_path}/raises.py:Raises", "--case", "enqueue, acknowledge")
    assert result.exit_code == 3
    assert "2 cases, 0 broken, 2 not begun" in result.output

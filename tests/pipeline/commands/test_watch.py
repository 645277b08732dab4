"""`brokerproof trace watch` as a user meets it: what it says at its end, and what it refuses."""

from __future__ import annotations

import signal
from pathlib import Path

import click.testing
import pytest

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.verdicts import ExitStatus
from brokerproof.pipeline.commands.watch import ending, subject
from brokerproof.pipeline.readers import json_lines
from brokerproof.pipeline.spark.session import java
from brokerproof.pipeline.watch.state import Carried
from brokerproof.spec.histories import Record
from tests.pipeline.watch.test_watching_killed import Job


def test_a_watch_that_has_nothing_left_to_say_ends_as_it_found() -> None:
    assert ending(Carried(rows=2, checked=2), "finish") == (ExitStatus.KEPT, [])
    assert ending(Carried(rows=2, checked=2, raised=1), "finish") == (ExitStatus.BROKEN, [])
    taken_back = Carried(rows=2, checked=2, raised=1, withdrawn=1)
    assert ending(taken_back, "finish") == (ExitStatus.KEPT, [])


def test_a_watch_that_was_ended_says_what_is_undecided() -> None:
    carried = Carried(rows=2, checked=2, undecided=3, first_undecided=["a", "b"])
    status, [names, how] = ending(carried, "finish")
    assert status is ExitStatus.INCONCLUSIVE
    assert names == "undecided: a, b and 1 queues more"
    assert how.endswith("where nothing comes any more, all is said by: finish")
    carried.undecided = 2
    assert ending(carried, "finish")[1][0] == "undecided: a, b"
    carried.raised = 1
    assert ending(carried, "finish")[0] is ExitStatus.BROKEN


def test_what_was_not_checked_is_no_success() -> None:
    assert ending(Carried(), "finish") == (ExitStatus.INCONCLUSIVE, ["nothing was checked"])
    half = Carried(rows=4, checked=2, aside={"missing": 2})
    assert ending(half, "finish")[0] is ExitStatus.KEPT
    status, [why] = ending(Carried(rows=5, checked=2, aside={"missing": 3}), "finish")
    assert status is ExitStatus.INCONCLUSIVE
    assert why.startswith("more rows were rejected than the 2 that were checked")
    # Rows that a history cannot hold are not missed.
    other = Carried(rows=5, checked=2, aside={"about something else": 3})
    assert ending(other, "finish")[0] is ExitStatus.KEPT


def test_a_violation_is_about_what_it_is_about() -> None:
    def about(rule: str, name: str) -> str:
        return subject({"rule": rule, "message": name, "queue": "q"})

    assert about("overtakes-an-equal", "m1") == "message m1 of queue q"
    assert about("found-nothing", "c at 5") == "get by c at 5 of queue q"
    assert about("found-nothing-of-several", "c at 5") == "get by c at 5 of queue q"
    assert about("left-behind-of-several", "drained at 7") == "queue q, drained at 7"


def test_the_help_says_what_only_a_check_judges() -> None:
    result = click.testing.CliRunner().invoke(main, ["trace", "watch", "--help"])
    told = " ".join(result.output.split())
    assert (
        "How long messages wait is not judged here: --stalled-after is an option of `trace" in told
    )
    assert "--stalled-after" not in told.partition("Options:")[2]


def test_the_watched_directory_takes_no_results(tmp_path: Path) -> None:
    words = ["trace", "watch", str(tmp_path), "--out", f"{tmp_path}/."]
    result = click.testing.CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "is the watched directory; name another folder" in result.output
    assert not [*tmp_path.iterdir()]


def open_history() -> list[Record]:
    """A message that was given to a consumer that may have more on the way, and has no window."""
    return [
        Record(op="declare", queue="q", start=0, end=1),
        Record(op="consume", queue="q", consumer="c", channel="1", start=2, end=3),
        Record(op="publish", queue="q", message="m", start=4, end=5),
        Record(op="deliver", queue="q", message="m", consumer="c", position=0, start=3, end=6),
        Record(op="publish", queue="q", message="n", start=90_000, end=90_001),
    ]


@pytest.mark.thorough
def test_a_watch_says_at_its_end_what_is_open_and_what_contradicts_a_declaration(
    tmp_path: Path,
) -> None:
    try:
        java()
    except CannotRun as error:
        pytest.skip(str(error))
    directory, out = tmp_path / "recordings", tmp_path / "out"
    directory.mkdir()
    (directory / "0.jsonl").write_bytes(b"".join(json_lines.lines_of(open_history())))
    status, printed = Job(directory, out, 10, "--once", "--queue", "q=priority:3").ends()
    assert status == 2, printed
    [told] = [line for line in printed.splitlines() if line.startswith("Error")]
    assert "--queue: q=priority:3 contradicts the history, which declares q as fifo" in told
    job = Job(directory, out, 10)
    job.runs_until(lambda: any((out / "state").glob("0*")))
    status, printed = job.ends(signal.SIGINT)
    assert status == 3, printed
    assert "undecided: q\n" in printed
    finish = f"brokerproof trace watch {directory} --out {out} --once"
    assert f"all is said by: {finish}" in printed
    status, printed = Job(directory, out, 10, "--once").ends()
    assert status == 0, printed
    assert "undecided" not in printed

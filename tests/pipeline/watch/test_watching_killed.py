"""A watch that is killed at any moment and started again says everything, and nothing twice."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from brokerproof.pipeline import tables
from brokerproof.pipeline.readers import json_lines
from brokerproof.pipeline.readers.rejected_rows import Account
from brokerproof.pipeline.rules import violations
from brokerproof.pipeline.tables import SCHEMA
from brokerproof.pipeline.watch.state import RESULT, Carried, Folder, StateIsMissing, told
from tests.pipeline.watch.test_watching import (
    KEY,
    Key,
    Watched,
    broken,
    checked,
    in_files,
    raised,
    recording,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from brokerproof.spec.histories import Record

DEADLINE_S = 180
NS = 1_000_000_000


class Job:
    """A watch in processes of its own."""

    def __init__(self, directory: Path, out: Path, late: int, *options: str) -> None:
        command = ["trace", "watch", str(directory), "--out", str(out), "--master", "local[1]"]
        command += ["--late", f"{late / NS:.12f}", "--interval", "0.1", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "brokerproof", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def runs_until(self, happened: Callable[[], bool]) -> None:
        """Wait for something to happen."""
        deadline = time.monotonic() + DEADLINE_S
        while not happened():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline, "the watch makes no progress"
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill it and all that it started, without warning."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def ends(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Wait for its end, and return its status and what it showed."""
        if number is not None:
            self.process.send_signal(number)
        printed, _ = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, printed


def feed(directory: Path, number: int, records: Sequence[Record]) -> None:
    """Put a file into a directory, in one form or the other, whole."""
    if number % 2:
        tables.write(directory / f"{number:03}.parquet", records)
        return
    unfinished = directory / f".{number:03}.unfinished"
    lines = b"".join(json_lines.lines_of(records)) + b"{senseless}\n"
    is_packed = number % 4 == 2
    unfinished.write_bytes(gzip.compress(lines) if is_packed else lines)
    unfinished.rename(directory / f"{number:03}.jsonl{'.gz' * is_packed}")


def said(out: Path) -> tuple[Counter[Key], Counter[Key]]:
    """Return what a watch wrote that it raised, and took back."""
    lines: dict[str, Counter[Key]] = {"raised": Counter(), "withdrawn": Counter()}
    for line in told(out):
        lines[line["said"]][_key(line)] += 1
    return lines["raised"], lines["withdrawn"]


def _key(row: dict[str, Any]) -> Key:
    requirement, run, queue, message = (row[name] for name in KEY)
    return requirement, run, queue, message


def eventful() -> tuple[list[list[Record]], int, random.Random]:
    """Return the files of a history in which something is found again and again."""
    for seed in itertools.count():
        records, late, chance = recording(seed, steps=300)
        files = in_files(records, late, 8, chance)
        watched = Watched(late)
        found = []
        for number, file in enumerate(files):
            watched.batch(file)
            found.append(len(raised(watched)))
            if number == 3 and not found[1] < found[3]:
                break
        if found[1] < found[3] < found[-1] < len(checked(files)):
            return files, late, chance
    raise AssertionError


@pytest.mark.thorough
def test_a_watch_that_is_killed_says_everything_once(tmp_path: Path) -> None:
    files, late, chance = eventful()
    records = [each for file in files for each in file]
    expected = checked(files)
    directory, out = tmp_path / "a directory", tmp_path / "out"
    directory.mkdir()
    state, offsets = out / "state", out / "checkpoint" / "offsets"
    moments: list[Callable[[], bool]] = [
        (offsets / "0").exists,
        lambda: any(state.glob(".*0000000001.*")) or any(state.glob("0000000001")),
    ]
    for number in range(4):
        feed(directory, number, files[number])
        if number == 1:
            job = Job(directory, out, late)
            job.runs_until(moments[0])
            job.kill()
    job = Job(directory, out, late)
    job.runs_until(moments[1])
    time.sleep(chance.uniform(0, 1))
    job.kill()
    said_before = said(out)[0]
    for number in (4, 5):
        feed(directory, number, files[number])
    job = Job(directory, out, late)
    left = {each.name for each in state.iterdir()}
    job.runs_until(lambda: any(e.name not in left for e in state.glob("0*")))
    status, printed = job.ends(signal.SIGINT)
    assert "Traceback" not in printed
    assert status == bool(said(out)[0]), printed
    for number in (6, 7):
        feed(directory, number, files[number])
    status, printed = Job(directory, out, late, "--once").ends()
    found, withdrawn = said(out)
    assert set((found - withdrawn).values()) == {1}
    assert set(found - withdrawn) == expected, printed
    assert not said_before - found
    assert status == 1
    assert pq.read_table(out / RESULT) == broken(files)
    lines = len(records) + 4
    assert f"{lines:,} rows in = {len(records):,} checked + 4 rejected" in printed
    assert [Path(row["file"]).name for row in told(out, "rejected")] == [
        *("000.jsonl", "002.jsonl.gz", "004.jsonl", "006.jsonl.gz")
    ]


def test_a_batch_that_was_cut_short_is_forgotten_but_for_what_it_says_again(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    folder.begin(0)
    folder.finish(Carried(batch=0, files=1), SCHEMA.empty_table())
    cut_short = folder.begin(1)
    folder.tell("violations", 1, [{"message": "m"}], end=False)
    latest = folder.latest()
    assert latest is not None
    assert latest.carried.files == 1
    folder.prepare()
    assert not cut_short.exists()
    assert not folder.has(1)
    assert folder.left_by(0).carried.files == 1
    folder.begin(1)
    folder.tell("violations", 1, [{"message": "m"}], end=False)
    folder.finish(Carried(batch=1, files=2), SCHEMA.empty_table())
    assert folder.has(1)
    assert list(told(tmp_path)) == [{"message": "m"}]


def test_what_was_taken_for_finished_is_gone_on_from(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    for end in (False, True):
        folder.begin(0, end=end)
        folder.finish(Carried(batch=0, raised=int(end)), SCHEMA.empty_table(), end=end)
    assert folder.left_by(0).carried.raised == 1
    latest = folder.latest()
    assert latest is not None
    assert latest.carried.raised == 1


def test_a_result_is_that_of_all_records_or_is_not_there(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    folder.write_result(violations.none())
    assert pq.read_table(tmp_path / RESULT) == violations.none()
    folder.begin(1)
    assert not (tmp_path / RESULT).exists()


def test_older_states_are_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    for batch in range(4):
        folder.begin(batch)
        folder.finish(Carried(batch=batch), SCHEMA.empty_table())
    assert [folder.has(batch) for batch in range(4)] == [False, False, True, True]


def test_a_state_that_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare()
    (folder.checkpoint / "commits").mkdir(parents=True)
    (folder.checkpoint / "commits" / "2").touch()
    with pytest.raises(StateIsMissing, match="the state of batch 2 is not there"):
        folder.prepare()
    with pytest.raises(StateIsMissing, match="batch 4"):
        folder.left_by(4)


def test_counts_are_carried_on() -> None:
    account = Carried(rows=3, checked=2, aside={"missing": 1}).account
    assert str(account) == "3 rows in = 2 checked + 1 rejected (1 missing)"
    assert isinstance(account, Account)
    account = Carried(rows=9, checked=8, aside={"missing": 1}, unjudged={"missing": 2}).account
    assert str(account) == "9 rows in = 6 checked + 3 rejected (3 missing)"

"""One history, one result: alone, on Spark, on a cluster that loses a worker, and watched."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click.testing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.pipeline.commands import check
from brokerproof.pipeline.explain.history_report import WITNESS_FILE
from brokerproof.pipeline.parts.judging import judged_in_parts
from brokerproof.pipeline.parts.looks import Sizes
from brokerproof.pipeline.watch.state import RESULT
from brokerproof.spec.histories import Record
from tests.pipeline.spark.clusters import Cluster, Worker, cluster
from tests.pipeline.watch.test_watching import KEY, in_files, recording
from tests.pipeline.watch.test_watching_killed import Job, feed, said

pytestmark = [
    pytest.mark.filterwarnings("ignore:::pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SMALL = Sizes(part=300, hot=200, sampled=1)
KILLS = 10
KILLED_WITHIN_S = 15.0

TABLES = ("violations.parquet", "coverage.parquet", "rejected.parquet")


def faulty() -> tuple[list[list[Record]], int, random.Random]:
    """Return the files of a history with many faults, and how late something may be told."""
    records, latest = list[Record](), 0
    for seed in range(40):
        of_run, late, _ = recording(seed, steps=60)
        records += [replace(each, run=f"r{seed}") for each in of_run]
        latest = max(latest, late)
    chance = random.Random(7)  # noqa: S311
    return in_files(records, latest, KILLS + 2, chance), latest, chance


def judged(history: Path, report: Path, *words: str) -> dict[str, bytes]:
    """Judge a history, and return the tables, witnesses and counterexamples of the report."""
    command = ["trace", "check", str(history), "--report", str(report), *words]
    result = click.testing.CliRunner().invoke(main, command)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    files = [report / name for name in TABLES]
    files += [e for name in ("witnesses", "counterexamples") for e in (report / name).rglob("*")]
    return {str(e.relative_to(report)): e.read_bytes() for e in files if e.is_file()}


def lose(worker: Worker, judging: threading.Event, lost: threading.Event) -> None:
    """Kill a worker as soon as it has a part of a shuffle, while the history is judged."""
    while not judging.wait(0.005):
        if worker.has_shuffled():
            worker.is_lost()
            if not judging.is_set():
                lost.set()
            return


def judged_by(
    of: Cluster, history: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, bytes]:
    """Judge a history on a cluster that loses a worker in the middle."""
    monkeypatch.setattr(check, "judged_in_parts", partial(judged_in_parts, sizes=SMALL))
    over, lost = threading.Event(), threading.Event()
    loss = threading.Thread(target=lose, args=(of.workers[0], over, lost))
    loss.start()
    quick = ["--spark", "spark.shuffle.io.retryWait=100ms"]
    little = ["--spark", "spark.executor.memory=512m", "--spark", "spark.driver.host=127.0.0.1"]
    ran = report.with_name("ran")
    python = report.with_name("python")
    python.write_text(f'#!/bin/sh\ntouch {ran}\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    try:
        words = ["--engine", "spark", "--master", of.address, *quick, *little]
        words += ["--spark", f"spark.pyspark.python={python}"]
        found = judged(history, report, *words)
    finally:
        over.set()
        loss.join()
    assert lost.is_set(), "no worker was lost in the middle of the run"
    assert ran.exists(), "the workers ran another interpreter"
    return found


def watched(
    files: Sequence[Sequence[Record]], late: int, chance: random.Random, folder: Path
) -> pa.Table:
    """Watch files as they come, with a kill at random after each, and return what is broken."""
    directory, out = folder / "coming", folder / "out"
    directory.mkdir()
    for number, file in enumerate(files):
        feed(directory, number, file)
        if number < KILLS:
            job = Job(directory, out, late)
            time.sleep(chance.uniform(0, KILLED_WITHIN_S))
            assert job.process.poll() is None
            job.kill()
    status, printed = Job(directory, out, late, "--once").ends()
    assert status == 1, printed
    found, withdrawn = said(out)
    stays = pq.read_table(out / RESULT)
    assert found - withdrawn == Counter(tuple(e.values()) for e in stays.select(KEY).to_pylist())
    return stays


@pytest.mark.thorough
def test_alone_spark_a_cluster_without_a_worker_and_a_killed_watch_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, late, chance = faulty()
    history = tmp_path / "history"
    history.mkdir()
    for number, file in enumerate(files):
        feed(history, number, file)
    alone = judged(history, tmp_path / "alone", "--engine", "alone")
    assert len(alone) > 20
    with cluster(tmp_path / "cluster") as workers:
        found = judged_by(workers, history, tmp_path / "on-cluster", monkeypatch)
    assert found == alone
    assert judged(history, tmp_path / "spark", "--engine", "spark", "--master", "local[2]") == alone
    broken = pq.read_table(tmp_path / "alone" / RESULT).drop_columns(WITNESS_FILE)
    assert watched(files, late, chance, tmp_path) == broken
    feed(history, 1, files[1][:-5])
    assert judged(history, tmp_path / "other", "--engine", "alone") != alone

"""Spark says what this process alone says, of each row, whatever the parts and the slices are."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from brokerproof.checks.errors import CannotRun
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.intervals.streams import TWICE
from brokerproof.pipeline.intervals.traffic import QUEUES
from brokerproof.pipeline.readers.blocks import BYTE_ORDER_MARK
from brokerproof.pipeline.readers.conversion import convert
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.spark import on_spark
from brokerproof.pipeline.spark import session as spark_session
from brokerproof.pipeline.spark.on_spark import Sizes, first_look, judged_on_spark
from brokerproof.pipeline.stages import SETTLES_NOTHING
from brokerproof.pipeline.tables import Part, batch_of
from brokerproof.spec.histories import Record
from tests.pipeline.intervals.test_streams import steady
from tests.pipeline.made_histories import history_table
from tests.pipeline.readers.test_sources import ALL as RECORDINGS
from tests.pipeline.recorders import table_of
from tests.pipeline.rules.test_kernels_agree import recording
from tests.pipeline.rules.test_odd_recordings import ALTERATIONS
from tests.pipeline.rules.test_unanswered_gets import losses
from tests.pipeline.spark.sparks import spark_of_tests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.filterwarnings("ignore:::pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SEEDS = range(300)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_of_tests(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def history() -> pa.Table:
    made = history_table(SEEDS)
    others = [Record(op="reject", queue="q", message="m", consumer="c", position=0, start=7)]
    others += [replace(each, run="clock") for each in steady(back=100, at=30)]
    for alter in ALTERATIONS:
        for seed in range(400, 420):
            run = f"{alter.__name__} {seed}"
            others += alter([replace(each, run=run) for each in recording(seed)[0]], seed)
    places = range(2**20, 2**20 + len(others))
    return pa.concat_tables([made, pa.Table.from_batches([batch_of(others, places)])])


@pytest.fixture(scope="module")
def parts(history: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The history in several files."""
    folder = tmp_path_factory.mktemp("history")
    size = history.num_rows // 3 + 1
    for number in range(3):
        [batch] = history.slice(number * size, size).combine_chunks().to_batches()
        with Part(folder / f"part-{number}.parquet", ["made"]) as part:
            part.write(batch)
    return str(folder)


FINE = Sizes(part=4000, hot=8, sampled=1)
"""Each queue is cut into slices of a few rows."""


def assert_alike(one: Judgement, other: Judgement) -> None:
    assert one.violations.to_pylist() == other.violations.to_pylist()
    assert one.coverage == other.coverage
    assert (one.queues, one.undeclared) == (other.queues, other.undeclared)
    assert one.clock_step == other.clock_step
    assert one.bins == other.bins
    assert one.traffic.equals(other.traffic)
    keys = [("place", "ascending")]
    assert one.aside.sort_by(keys).to_pylist() == other.aside.sort_by(keys).to_pylist()


def test_spark_says_what_is_said_alone(spark: SparkSession, history: pa.Table, parts: str) -> None:
    alone = judged_alone(history)
    assert alone.violations.num_rows
    reasons = set(alone.aside.column("reason").to_pylist())
    assert {SETTLES_NOTHING, TWICE} <= reasons
    assert alone.undeclared
    assert alone.clock_step is not None
    assert len(alone.bins.keys) == QUEUES
    assert all(sum(column.to_pylist()) for column in alone.traffic.columns)
    assert_alike(judged_on_spark(spark, [parts]), alone)


@pytest.mark.thorough
def test_it_says_so_of_queues_that_are_cut(
    spark: SparkSession, history: pa.Table, parts: str
) -> None:
    cuts = first_look(spark.read.parquet(parts), FINE).cuts
    assert max(len(times) for times in cuts.at.values()) > 4
    told: list[str] = []
    judgement = judged_on_spark(spark, [parts], progress=told.append, sizes=FINE)
    assert any("slices again" in each for each in told)
    assert_alike(judgement, judged_alone(history))


def test_without_what_is_left_to_slices_it_would_miss_some(
    spark: SparkSession, history: pa.Table, parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "left_to", lambda summaries, _: summaries.slice(0, 0))
    missed = judged_on_spark(spark, [parts], sizes=FINE).violations.num_rows
    assert 0 < missed < judged_alone(history).violations.num_rows


@pytest.mark.parametrize("sizes", [Sizes(), FINE])
def test_losses_in_several_parts_are_counted_against_all_gets(
    spark: SparkSession, tmp_path: Path, sizes: Sizes
) -> None:
    records = losses(100, gets=1)
    with Part(tmp_path / "part.parquet", ["made"]) as part:
        part.write(batch_of(records, range(len(records))))
    judgement = judged_on_spark(spark, [str(tmp_path)], sizes=sizes)
    assert judgement.violations.num_rows == 99
    assert_alike(judgement, judged_alone(table_of(records)))


def test_recordings_in_all_forms_are_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for path in RECORDINGS:
        plain = path.read_bytes()
        (folder / path.name).write_bytes(plain)
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(BYTE_ORDER_MARK + plain))
    clock = pa.array([10, 20], pa.timestamp("ms", "UTC"))
    names = {"op": ["publish"] * 2, "queue": ["q"] * 2, "message": ["m0", "m1"]}
    table = pa.table(names | {"start": clock, "end": clock, "run": ["by clock"] * 2})
    pq.write_table(table, folder / "clock.parquet")
    done = convert([folder], None, tmp_path / "table")
    judgement = judged_on_spark(spark, [str(part) for part in done.parts])
    whole = pa.concat_tables([pq.read_table(part) for part in done.parts])
    assert {"by clock", str(folder / "spans.jsonl.gz")} <= {run for run, _ in judgement.queues}
    assert_alike(judgement, judged_alone(whole))


def test_what_was_there_before_is_rejected_by_both(
    spark: SparkSession, history: pa.Table, parts: str
) -> None:
    late = judged_on_spark(spark, [parts], begins_late=True)
    assert_alike(late, judged_alone(history, begins_late=True))


@pytest.mark.thorough
def test_the_workers_run_this_interpreter_without_an_activated_environment(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from brokerproof.pipeline.spark.session import session\n"
        f"with session('local[1]', Path({str(tmp_path)!r})) as spark:\n"
        "    rows = spark.range(1).mapInArrow(lambda batches: batches, 'id long')\n"
        "    one = spark.sparkContext.parallelize([0], 1)\n"
        "    said = one.map(lambda _: sys.executable).collect()\n"
        "    print(rows.count(), said[0] == sys.executable)\n"
    )
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in {"VIRTUAL_ENV", "PYSPARK_PYTHON", "PYTHONPATH"}
    } | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["1", "True"], done.stderr


def test_without_java_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CannotRun, match=r"needs a Java runtime, 17 or later: JAVA_HOME is"):
        spark_session.java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun, match=r"17 or later: there is none; install one"):
        spark_session.java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(CannotRun, match=r"11\.0\.2"):
        spark_session.java()


INTERRUPTED = """
import sys, time
from pathlib import Path
from brokerproof.pipeline.spark.session import interruptibly, session

def slow(batches):
    time.sleep(600)
    yield from batches

with session('local[1]', Path(sys.argv[1])) as spark:
    print(interruptibly(spark, lambda: spark.range(2).count()), flush=True)
    try:
        interruptibly(spark, lambda: 1 // 0)
    except ZeroDivisionError:
        print('its own error', flush=True)
    try:
        interruptibly(spark, lambda: spark.range(1).mapInArrow(slow, 'id long').count())
    except KeyboardInterrupt:
        print('interrupted', flush=True)
"""


@pytest.mark.thorough
def test_ctrl_c_ends_a_job_without_a_word_and_leaves_nothing_running(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "ignore", "-c", INTERRUPTED, str(tmp_path)]
    running = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert running.stdout is not None
        said = [running.stdout.readline().strip() for _ in range(2)]
        while "pyspark.daemon" not in _names_of(running.pid):
            assert running.poll() is None
        assert "org.apache.spark" in _names_of(running.pid)
        os.killpg(running.pid, signal.SIGINT)
        rest, errors = running.communicate(timeout=120)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    assert said == ["2", "its own error"]
    assert rest == "interrupted\n"
    assert errors == ""
    left = _names_of(running.pid)
    assert "org.apache.spark" not in left
    assert "pyspark.daemon" not in left


def _names_of(session_of: int) -> str:
    """Return the command lines of the processes of a session."""
    words = ["ps", "-ww", "-o", "args=", "-g", str(session_of)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout

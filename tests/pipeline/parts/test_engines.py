"""Each engine gives the judgement of `judged_alone`, for all sizes of parts and slices."""

from __future__ import annotations

import gzip
import os
import signal
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
from brokerproof.pipeline.parts import judging
from brokerproof.pipeline.parts.judging import Engine, judged_in_parts
from brokerproof.pipeline.parts.looks import Sizes, look_at, seen_by
from brokerproof.pipeline.processes import Processes
from brokerproof.pipeline.readers.blocks import BYTE_ORDER_MARK
from brokerproof.pipeline.readers.conversion import convert
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.spark.on_spark import OnSpark
from brokerproof.pipeline.stages import SETTLES_NOTHING
from brokerproof.pipeline.tables import Part, batch_of, write
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
COARSE = Sizes()
FINE = Sizes(part=4000, hot=8, sampled=1)
"""Each queue is cut into slices of a few rows."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_of_tests(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(params=["one process", "two processes", "spark"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "spark":
        return OnSpark(request.getfixturevalue("spark"))
    return Processes(made(tmp_path / "between"), jobs=1 if request.param == "one process" else 2)


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
def parts(history: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The history in several files."""
    folder = tmp_path_factory.mktemp("history")
    size = history.num_rows // 3 + 1
    for number in range(3):
        [batch] = history.slice(number * size, size).combine_chunks().to_batches()
        with Part(folder / f"part-{number}.parquet", ["made"]) as part:
            part.write(batch)
    return sorted(folder.iterdir())


def assert_alike(one: Judgement, other: Judgement) -> None:
    assert one.violations.to_pylist() == other.violations.to_pylist()
    assert one.coverage == other.coverage
    assert (one.queues, one.undeclared) == (other.queues, other.undeclared)
    assert one.clock_step == other.clock_step
    assert one.bins == other.bins
    assert one.traffic.equals(other.traffic)
    keys = [("place", "ascending")]
    assert one.aside.sort_by(keys).to_pylist() == other.aside.sort_by(keys).to_pylist()


def test_a_history_is_judged_as_it_is_alone(
    engine: Engine, history: pa.Table, parts: list[Path]
) -> None:
    alone = judged_alone(history)
    assert alone.violations.num_rows
    reasons = set(alone.aside.column("reason").to_pylist())
    assert {SETTLES_NOTHING, TWICE} <= reasons
    assert alone.undeclared
    assert alone.clock_step is not None
    assert len(alone.bins.keys) == QUEUES
    assert all(sum(column.to_pylist()) for column in alone.traffic.columns)
    assert_alike(judged_in_parts(engine, parts, sizes=COARSE), alone)


@pytest.mark.thorough
def test_so_is_one_whose_queues_are_cut(
    engine: Engine, history: pa.Table, parts: list[Path]
) -> None:
    cuts = seen_by([look_at(history, FINE.sampled)], FINE).cuts
    assert max(len(times) for times in cuts.at.values()) > 4
    told: list[str] = []
    judgement = judged_in_parts(engine, parts, sizes=FINE, progress=told.append)
    assert any("slices again" in each for each in told)
    assert_alike(judgement, judged_alone(history))


def test_without_what_is_left_to_slices_it_would_miss_some(
    engine: Engine, history: pa.Table, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "left_to", lambda summaries, _: summaries.slice(0, 0))
    missed = judged_in_parts(engine, parts, sizes=FINE).violations.num_rows
    assert 0 < missed < judged_alone(history).violations.num_rows


@pytest.mark.parametrize("sizes", [COARSE, Sizes(part=30, hot=8, sampled=1)])
def test_losses_in_several_parts_are_counted_against_all_gets(
    engine: Engine, tmp_path: Path, sizes: Sizes
) -> None:
    records = losses(100, gets=1)
    write(tmp_path / "part.parquet", records)
    judgement = judged_in_parts(engine, [tmp_path / "part.parquet"], sizes=sizes)
    assert judgement.violations.num_rows == 99
    assert_alike(judgement, judged_alone(table_of(records)))


def test_recordings_in_all_forms_are_judged_alike(engine: Engine, tmp_path: Path) -> None:
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
    judgement = judged_in_parts(engine, done.parts, sizes=COARSE)
    whole = pa.concat_tables([pq.read_table(part) for part in done.parts])
    assert {"by clock", str(folder / "spans.jsonl.gz")} <= {run for run, _ in judgement.queues}
    assert_alike(judgement, judged_alone(whole))


def test_what_was_there_before_is_rejected(
    engine: Engine, history: pa.Table, parts: list[Path]
) -> None:
    late = judged_in_parts(engine, parts, sizes=COARSE, begins_late=True)
    assert_alike(late, judged_alone(history, begins_late=True))


@pytest.mark.thorough
def test_messages_that_wait_too_long_are_found(engine: Engine, tmp_path: Path) -> None:
    rows = [replace(e, run=f"r{seed}") for seed in range(20) for e in recording(seed)[0]]
    write(tmp_path / "part.parquet", rows)
    alone = judged_alone(table_of(rows), stalled_after=60)
    assert "stalled" in alone.violations.column("rule").to_pylist()
    found = judged_in_parts(engine, [tmp_path / "part.parquet"], sizes=FINE, stalled_after=60)
    assert_alike(found, alone)


def test_a_history_without_rows_is_judged(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "part.parquet", [])
    found = judged_in_parts(engine, [tmp_path / "part.parquet"], sizes=COARSE)
    assert_alike(found, judged_alone(table_of([])))


def test_a_process_that_is_killed_ends_the_check_with_one_line(
    history: pa.Table, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        assert os.getpid() != this, "this process judges a part itself"
        os.kill(os.getpid(), signal.SIGKILL)

    this = os.getpid()
    assert_alike(
        judged_in_parts(Processes(made(tmp_path / "a"), jobs=2), parts), judged_alone(history)
    )
    monkeypatch.setattr(judging, "by_message", killed)
    with pytest.raises(CannotRun, match=r"judged a part of the history was ended by SIGKILL"):
        judged_in_parts(Processes(made(tmp_path / "b"), jobs=2), parts)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder

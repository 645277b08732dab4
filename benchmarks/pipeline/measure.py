"""Measure how fast histories are judged, and the cost of only reading and shuffling them.

For each size, with its queues used evenly and with one that has 90 per cent of the traffic, each
measurement is a separate process: seconds, events a second, and of all its processes together the
processor time and the peak memory. On a busy machine compare processor times.

    python benchmarks/pipeline/measure.py [--events N]... [--only NAME]... [--folder FOLDER]

`floor` reads the columns that are judged and shuffles them once by message, to as many parts as a
judgement has. `spark` judges on Spark, `alone` in processes of this machine, `memory` in one
process that holds the whole history. `duckdb`, if it is installed, checks the rule of first in,
first out in SQL. Existing histories are not made again.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.pipeline.traffic import Traffic, write
from brokerproof.pipeline.alone import judged_alone, read
from brokerproof.pipeline.parts.judging import OF_MESSAGES, judged_in_parts
from brokerproof.pipeline.parts.looks import SIZES
from brokerproof.pipeline.processes import Processes
from brokerproof.pipeline.spark.on_spark import OnSpark
from brokerproof.pipeline.spark.session import session

EVENTS = (1_000_000, 10_000_000)
SHARES = {"uniform": 0.0, "hot": 0.9}


def floor(folder: Path, scratch: Path) -> str:
    """Read and shuffle only."""
    with session("local[*]", scratch) as spark:
        history = spark.read.parquet(str(folder))
        parts = max(2, math.ceil(history.count() / SIZES.part))
        columns = history.select(*OF_MESSAGES)
        shuffled = columns.repartition(parts, "run", "queue", "message")
        shuffled.write.format("noop").mode("overwrite").save()
    return ""


def on_spark(folder: Path, scratch: Path) -> str:
    """Judge everything on Spark."""
    with session("local[*]", scratch, is_brief=True) as spark:
        judgement = judged_in_parts(OnSpark(spark), sorted(folder.glob("*.parquet")))
    return f"{judgement.violations.num_rows} violations"


def in_memory(folder: Path, scratch: Path) -> str:
    """Judge everything in this process."""
    del scratch
    table = read(sorted(folder.glob("*.parquet")))
    return f"{judged_alone(table).violations.num_rows} violations"


def alone(folder: Path, scratch: Path) -> str:
    """Judge everything in processes of this machine."""
    judgement = judged_in_parts(Processes(scratch), sorted(folder.glob("*.parquet")))
    return f"{judgement.violations.num_rows} violations"


FIFO = """
WITH message AS (
  SELECT p.run, p.queue, p.message, p.start AS published_start, p."end" AS published_end,
         coalesce(min(d.start), 4611686018427387904) AS left_start, min(d."end") AS given_end
  FROM history p LEFT JOIN history d
    ON d.op = 'deliver' AND d.run = p.run AND d.queue = p.queue AND d.message = p.message
  WHERE p.op = 'publish' GROUP BY ALL
), best AS (
  SELECT run, queue, published_end,
         max(left_start) OVER (PARTITION BY run, queue ORDER BY published_end) AS left_start
  FROM message
)
SELECT count(*) FROM message late ASOF JOIN best early
  ON early.run = late.run AND early.queue = late.queue
 AND early.published_end < late.published_start
WHERE early.left_start > late.given_end
"""


def in_duckdb(folder: Path, scratch: Path) -> str:
    """Check the rule of first in, first out in SQL."""
    import duckdb  # noqa: PLC0415 (is no dependency of ours)

    base = duckdb.connect(str(scratch / "base"))
    base.execute(f"CREATE VIEW history AS SELECT * FROM read_parquet('{folder}/*.parquet')")  # noqa: S608
    return f"{base.execute(FIFO).fetchall()[0][0]} violations of fifo-order"


MEASURED: dict[str, Callable[[Path, Path], str]] = {
    "floor": floor,
    "spark": on_spark,
    "alone": alone,
    "memory": in_memory,
    "duckdb": in_duckdb,
}


def in_its_own_process(name: str, folder: Path) -> dict[str, object]:
    """Run one measurement, and return its output, its seconds, and its peak memory."""
    context = multiprocessing.get_context("spawn")
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_measured, args=(name, folder, Path(scratch), theirs))
        start = time.perf_counter()
        process.start()
        theirs.close()
        used_s, peak = 0.0, 0
        while not ours.poll(0.1):
            seconds, memory = _used_by(process.pid or 0)
            used_s, peak = max(used_s, seconds), max(peak, memory)
        try:
            found["said"] = ours.recv()
        except EOFError:
            found["said"] = "it ended early"
        found["used_s"] = max(used_s, _used_by(process.pid or 0)[0])
        process.join()
        found["seconds"] = time.perf_counter() - start
        found["peak_mb"] = peak >> 20
    return found


def _used_by(session_id: int) -> tuple[float, int]:
    """Return the processor time of a session's processes in seconds, and their memory in bytes."""
    ticks = pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if int(fields[3]) == session_id:
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def _measured(name: str, folder: Path, scratch: Path, theirs: Connection) -> None:
    os.setsid()
    said = MEASURED[name](folder, scratch)
    theirs.send(said)
    theirs.close()
    time.sleep(0.2)  # until its processor time was read


def main() -> None:
    """Run the chosen measurements."""
    options = argparse.ArgumentParser(description="Histories judged, by size and shape.")
    options.add_argument("--events", type=int, action="append")
    options.add_argument("--only", action="append", choices=list(MEASURED))
    options.add_argument("--shape", action="append", choices=list(SHARES))
    somewhere = Path(tempfile.gettempdir()) / "histories"
    options.add_argument("--folder", type=Path, default=somewhere)
    asked = options.parse_args()
    names = asked.only or list(MEASURED)
    if importlib.util.find_spec("duckdb") is None and "duckdb" in names:
        if asked.only:
            options.error("duckdb is not installed")
        names.remove("duckdb")
        print("duckdb is not installed, and not measured")
    print("      events shape    what     seconds  processor   events/s  peak MB  said")
    for events in asked.events or EVENTS:
        for shape in asked.shape or SHARES:
            folder = asked.folder / f"{shape}-{events}"
            if not folder.exists():
                write(Traffic(events, SHARES[shape]), folder)
            for name in names:
                found = in_its_own_process(name, folder)
                seconds = found["seconds"]
                assert isinstance(seconds, float)
                used = f"{found['used_s']:10.1f}"
                print(
                    f"{events:>12,} {shape:8} {name:7} {seconds:8.1f} {used}"
                    f" {events / seconds:10,.0f} {found['peak_mb']:>8}  {found['said']}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""Measure RabbitMQ's paging queue: its rates, and the cost of a message that is not in RAM.

Prints three tables, all with index and store on real files below the given folder:

* resident memory as a queue grows with a target of so many messages in RAM: bytes for each message
  beyond the first size;
* messages a second through publish, fetch and acknowledge, persistent and transient;
* microseconds for each message as a queue grows to a million, ten thousand at a time, and as it is
  drained again; below one segment of the index (16 384) no position leaves RAM, which costs less.

Rates are given twice: by processor time, the cost of this code, and by wall clock, which includes
the disk's syncs. Bodies have 100 bytes, all different. Syncs come as often as in the release at 100
000 messages a second: each 25 ms. Run it on a quiet machine:

    python benchmarks/paging_rate.py [FOLDER]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from brokerproof.reference.rabbitmq.paging import Node, Parameters, RealDirectory, VariableQueue

FILLER = b"x" * 84
MESSAGES = 300_000
DEPTH = 100
SYNC_EACH = 2_500
TARGET = 10_000
SMALL_TARGET = 1_000
SIZES = (10_000, 100_000, 1_000_000)
SLICE = 10_000
SLICES = (10_000, 30_000, 100_000, 300_000, 500_000, 700_000, 900_000, 1_000_000)
REPEATS = 3
KINDS = {"persistent": True, "transient": False}


def resident_bytes() -> int:
    """Return the process's current memory if the system reports it; else its peak."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Bench:
    """One durable queue on real files, with numbered messages."""

    def __init__(self, root: Path, *, persistent: bool) -> None:
        self.disk = RealDirectory(root)
        self.node = Node(self.disk, Parameters())
        self.queue: VariableQueue = self.node.declare("bench", durable=True)
        self.persistent = persistent
        self.published = 0
        self.synced = 0

    def publish(self, count: int) -> None:
        """Publish so many messages, and sync when it is time."""
        queue, persistent = self.queue, self.persistent
        for number in range(self.published, self.published + count):
            msg_id = number.to_bytes(16, "big")
            queue.publish(
                msg_id,
                msg_id + FILLER,
                persistent=persistent,
                needs_confirming=persistent,
            )
        self.published += count
        if self.published - self.synced >= SYNC_EACH:
            self.node.sync()
            queue.drain_confirmed()
            self.synced = self.published

    def fetch_and_acknowledge(self, count: int) -> None:
        """Fetch so many messages, then acknowledge each by itself."""
        queue = self.queue
        tags = []
        for _ in range(count):
            fetched = queue.fetch(ack_required=True)
            assert fetched is not None
            assert fetched.tag is not None
            tags.append(fetched.tag)
        for tag in tags:
            queue.acknowledge((tag,))

    def fill(self, size: int) -> None:
        """Publish until so many messages were published."""
        while self.published < size:
            self.publish(min(DEPTH, size - self.published))

    def drain(self, size: int) -> None:
        """Fetch and acknowledge until so many are left."""
        while self.queue.length > size:
            self.fetch_and_acknowledge(min(DEPTH, self.queue.length - size))


class Seconds(NamedTuple):
    """A duration, by both clocks."""

    processor: float
    wall: float


def now() -> Seconds:
    """Return both clocks."""
    return Seconds(time.process_time(), time.perf_counter())


def since(started: Seconds) -> Seconds:
    """Return the time since then."""
    ended = now()
    return Seconds(ended.processor - started.processor, ended.wall - started.wall)


def rate(root: Path, *, persistent: bool) -> Seconds:
    """Return the time of so many messages through a queue that stays short."""
    bench = Bench(root, persistent=persistent)
    started = now()
    while bench.published < MESSAGES:
        bench.publish(DEPTH)
        bench.fetch_and_acknowledge(DEPTH)
    bench.node.sync()
    seconds = since(started)
    bench.disk.close()
    return seconds


def memory(root: Path, persistent: bool) -> list[int]:
    """Return resident memory at each size."""
    bench = Bench(root, persistent=persistent)
    bench.queue.set_target(TARGET)
    found = []
    for size in SIZES:
        bench.fill(size)
        found.append(resident_bytes())
    bench.disk.close()
    return found


def cost(root: Path, *, persistent: bool) -> dict[int, tuple[float, float]]:
    """Return the processor time of a message in µs as a queue grows that pages nearly all.

    By the size at the end of a slice: to fill the slice, and later to drain as many from there.
    """
    bench = Bench(root, persistent=persistent)
    bench.queue.set_target(SMALL_TARGET)
    filled: dict[int, float] = {}
    for size in SLICES:
        bench.fill(size - SLICE)
        started = now()
        bench.fill(size)
        filled[size] = since(started).processor / SLICE * 1e6
    found = {}
    for size in reversed(SLICES):
        bench.drain(size)
        started = now()
        bench.drain(size - SLICE)
        found[size] = filled[size], since(started).processor / SLICE * 1e6
    bench.disk.close()
    return dict(sorted(found.items()))


def print_memory(folder: str | None, name: str) -> None:
    """Print the table of resident memory, of a fresh process."""
    with tempfile.TemporaryDirectory(dir=folder) as root, get_context("spawn").Pool(1) as fresh:
        figures = fresh.apply(memory, (Path(root), KINDS[name]))
    for size, figure in zip(SIZES, figures, strict=True):
        beyond = size - SIZES[0]
        each = f"{(figure - figures[0]) / beyond:6.0f} B each beyond" if beyond else ""
        print(f"memory  {name:10}  {size:9,} messages  {figure / 2**20:7.1f} MiB {each}")


def print_rate(folder: str | None, name: str) -> None:
    """Print the best of some rates."""
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(dir=folder) as root:
            runs.append(rate(Path(root), persistent=KINDS[name]))
    processor = MESSAGES / min(run.processor for run in runs)
    wall = MESSAGES / min(run.wall for run in runs)
    print(
        f"rate    {name:10}  {processor:9,.0f} messages a second of processor, {wall:,.0f} of wall"
    )


def print_cost(folder: str | None, name: str) -> None:
    """Print the table of cost by size."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        found = cost(Path(root), persistent=KINDS[name])
    for size, (fill, drain) in found.items():
        print(
            f"cost    {name:10}  {size:9,} messages  {fill:5.1f} µs to fill, "
            f"{drain:5.1f} µs to drain, {fill + drain:5.1f} µs together"
        )


def main(folder: str | None = None) -> None:
    """Print the tables."""
    for table in (print_memory, print_rate, print_cost):
        for name in KINDS:
            table(folder, name)


if __name__ == "__main__":
    main(*sys.argv[1:2])

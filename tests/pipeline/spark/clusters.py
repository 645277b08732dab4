"""A standalone Spark cluster of this machine for tests: a master and workers on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

START_S = 120


@dataclass
class Worker:
    """A worker with its executors, and the folder in which they keep their shuffle files."""

    process: subprocess.Popen[bytes]
    folder: Path

    def has_shuffled(self) -> bool:
        """Return whether an executor has written a part of a shuffle."""
        folders = os.walk(self.folder)  # which passes over folders that are gone meanwhile
        return any(name.startswith("shuffle_") for _, _, names in folders for name in names)

    def is_lost(self) -> None:
        """End the worker and its executors without warning, with all their files."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Cluster:
    """A master, its address and its workers."""

    address: str
    workers: list[Worker] = field(default_factory=list)


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Yield a cluster with workers of one core and one executor each, and end it."""
    pytest.importorskip("pyspark")
    address = f"spark://127.0.0.1:{_free_port()}"
    master = _started("master.Master", folder / "master", "--port", address.rpartition(":")[2])
    found = Cluster(address)
    try:
        for number in range(workers):
            place = folder / f"worker-{number}"
            process = _started("worker.Worker", place, "-c", "1", "-m", "1g", address)
            found.workers.append(Worker(process, place))
            _until(place / "log", "Successfully registered with master")
        yield found
    finally:
        for each in found.workers:
            each.is_lost()
        os.killpg(master.pid, signal.SIGKILL)
        master.wait()


def _started(name: str, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    import pyspark  # noqa: PLC0415 (an extra)

    home = Path(pyspark.__file__).parent
    (folder / "local").mkdir(parents=True)
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    command += ["--host", "127.0.0.1", "--webui-port", "0"]
    if name.endswith("Worker"):
        command += ["--work-dir", str(folder / "work")]
    local = {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, *words],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | local,
            start_new_session=True,
        )


def _until(log: Path, words: str) -> None:
    deadline = time.monotonic() + START_S
    while words not in log.read_text("utf-8", "replace"):
        assert time.monotonic() < deadline, log.read_text("utf-8", "replace")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])

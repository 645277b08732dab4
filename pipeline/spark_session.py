"""Spark, started so that it runs the same Python everywhere and says nothing that is not asked for.

Owns what a session needs: a Java runtime, the interpreter of the workers, memory, and that nothing
listens beyond this machine unless the master is another one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

from brokerproof.checks.errors import CannotRun
from brokerproof.checks.interrupts import SIGNALS
from brokerproof.checks.reporting.folders import undisturbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_LEAST: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)')
_LOG: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = Spark: %p %c{1}: %m%n
"""
"""Of what Spark has to say only errors are shown."""

POLL_S: Final = 0.1
END_S_MAX: Final = 60.0
"""So long jobs may take to end when they are cancelled; then the session is stopped under them."""

_Result = TypeVar("_Result")

_INSTALL: Final = "install one, for instance with: apt-get install openjdk-17-jre-headless"


def java() -> Path:
    """Return the Java runtime that Spark will use; raises `CannotRun` where there is none."""
    home = os.environ.get("JAVA_HOME")
    name = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if name is None or not Path(name).is_file():
        where = f"JAVA_HOME is {home}, where there is none" if home else "there is none"
        raise CannotRun(f"Spark needs a Java runtime, {JAVA_LEAST} or later: {where}; {_INSTALL}")
    told = subprocess.run([name, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = _VERSION.search(told.stderr)
    if version is None or int(version[1]) < JAVA_LEAST:
        said = told.stderr.splitlines()[0] if told.stderr else f"status {told.returncode}"
        raise CannotRun(
            f"Spark needs a Java runtime, {JAVA_LEAST} or later; {name} is: {said}; {_INSTALL}"
        )
    return Path(name)


@contextmanager
def session(master: str, scratch: Path) -> Iterator[SparkSession]:
    """Yield a session on a master, and stop it.

    What it spills goes below `scratch`. Raises `CannotRun` where it cannot be started.
    """
    java()
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra; the other engine needs none)
    except ImportError as error:
        raise CannotRun(
            "Spark is not installed; install it with: pip install 'brokerproof[pipeline]'"
        ) from error
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch.mkdir(parents=True, exist_ok=True)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("brokerproof").master(master)
    for name, value in _settings(master, scratch).items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with _told_to(scratch / "spark.log"), _uninterrupted() as pressed:
            spark = builder.getOrCreate()
    # Whatever keeps Spark from starting is told in its own first line.
    except Exception as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise CannotRun(f"Spark cannot be started on {master}: {first}") from error
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if pressed:
            raise KeyboardInterrupt
        yield spark
    finally:
        with undisturbed():
            spark.stop()
        # Spark takes Ctrl-C for itself, and keeps it.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def interruptibly(spark: SparkSession, work: Callable[[], _Result]) -> _Result:
    """Return what work on a session comes to; raises `KeyboardInterrupt` when it is to end.

    The work has a thread of its own, since a signal that comes while Spark's answer is awaited
    tears the connection to it. So Ctrl-C is noted here, and the jobs of the session are cancelled.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    pressed = threading.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            errors.append(error)

    def note(_number: int, _frame: FrameType | None) -> None:
        pressed.set()

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        worker = threading.Thread(target=run, daemon=True)
        worker.start()
        waited_s = 0.0
        while worker.is_alive() and waited_s < END_S_MAX:
            worker.join(POLL_S)
            if pressed.is_set():
                spark.sparkContext.cancelAllJobs()
                waited_s += POLL_S
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if pressed.is_set():
        raise KeyboardInterrupt
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def _uninterrupted() -> Iterator[list[int]]:
    """Yield where Ctrl-C is noted meanwhile: a start that is broken off leaves its JVM behind."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _told_to(log: Path) -> Iterator[None]:
    """Let processes that are started meanwhile, and only they, write what they tell into a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _settings(master: str, scratch: Path) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.files.maxPartitionBytes": str(64 << 20),
        "spark.python.worker.reuse": "true",
        "spark.sql.sources.useV1SourceList": "parquet",
    }
    log = scratch / "log4j2.properties"
    log.write_text(_LOG, encoding="ascii")
    settings["spark.log.level"] = "ERROR"
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={log.as_uri()}"
    if master.startswith("local"):
        heap_mb = max(1024, min(4096, memory_mb() // 4))
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": f"{heap_mb}m",
            "spark.local.dir": str(scratch),
        }
    return settings


def memory_mb() -> int:
    """Return how much memory this machine has, in MiB; 4096 where that cannot be known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (ValueError, OSError):
        return 4096

"""A Spark session that runs the same Python on all workers and logs only errors.

Owns what a session needs: a Java runtime, the interpreter of the workers, memory, no open port
beyond this machine with a local master, and an immediate end by Ctrl-C.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from brokerproof.candidates.extras import not_installed
from brokerproof.candidates.signals import SIGNALS, handled_by
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.report.folders import undisturbed

if TYPE_CHECKING:
    from pyspark import SparkConf
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
"""Spark's log shows only errors."""

POLL_S: Final = 0.1
END_S_MAX: Final = 60.0
"""How long cancelled jobs may take to end; then the session is stopped under them."""

_ENDED: Final = "JAVA_GATEWAY_EXITED"
_THROWN: Final = 'Exception in thread "main" '
_BESIDE: Final = (
    "An error occurred while calling ",
    "Error occurred during initialization of VM",
    "WARNING: ",
)
"""How lines begin that come before the one which says why Spark did not start."""

_NO_SETTINGS: Final[Mapping[str, str]] = {}

BRIEF: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a Java runtime that ends soon, or only moves bytes: no compilation for speed."""

_Result = TypeVar("_Result")

_INSTALL: Final = "install one, for instance with: apt-get install openjdk-17-jre-headless"


def java() -> Path:
    """Return the Java runtime that Spark will use; raises `CannotRun` if there is none."""
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
def session(
    master: str,
    scratch: Path,
    settings: Mapping[str, str] = _NO_SETTINGS,
    *,
    is_brief: bool = False,
) -> Iterator[SparkSession]:
    """Yield a session on a master, and stop it.

    It spills below `scratch`. `settings` are Spark's own, and replace those made here. A session
    that `is_brief` only moves a few large values in Java: it skips most of its compilation, leaves
    values as they are, and its tasks have one serializer each. Raises `CannotRun` if it cannot be
    started.
    """
    java()
    try:
        from pyspark import SparkConf  # noqa: PLC0415 (an extra; the other engine needs none)
    except ImportError as error:
        raise CannotRun(not_installed("Spark", "pipeline")) from error
    # The workers run what this variable says, and not what the settings say.
    python = settings.get("spark.pyspark.python", sys.executable)
    if master.startswith("local") and shutil.which(python) is None:
        raise CannotRun(f"--spark: spark.pyspark.python: {python} is no program of this machine")
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch.mkdir(parents=True, exist_ok=True)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf().setAppName("brokerproof").setMaster(master)
    ours = _settings(master, scratch, is_brief=is_brief)
    conf.setAll(list({**ours, **settings}.items()))
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with (scratch / "spark.log").open("ab") as log:
            spark = _started(conf, log)
    except Exception as error:
        why = _why_not(error, scratch / "spark.log")
        raise CannotRun(f"Spark cannot be started on {master}: {why}") from error
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        with undisturbed():
            spark.stop()
        # Spark installs its own handler of Ctrl-C and leaves it behind.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def _why_not(error: Exception, log: Path) -> str:
    """Return the line that says why Spark did not start: of its error, or of Java's end."""
    lines = str(error).splitlines()
    if _ENDED in str(error):
        lines = log.read_text("utf-8", "replace").splitlines()
    told = (each for each in lines if not each.startswith(_BESIDE))
    return next(told, type(error).__name__).removeprefix(": ").removeprefix(_THROWN)


def _started(conf: SparkConf, log: IO[bytes]) -> SparkSession:
    """Return a session; raises `KeyboardInterrupt` on a requested end, and Spark's errors."""
    from pyspark import SparkContext  # noqa: PLC0415 (an extra)
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 (an extra)
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    starting = _Starting()
    with starting.interruptible():
        try:
            gateway: Any = SparkContext._gateway  # noqa: SLF001 (that of a session before)
            if gateway is None:
                with starting.runtime_noted():
                    gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            starting.runtime = gateway.proc
            SparkContext(conf=conf, gateway=gateway)
            starting.listen()  # Spark has put a handler of its own in place
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
        except Exception:
            if not starting.pressed:
                raise
        if starting.pressed:
            # A later session must not use the runtime that is gone.
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
            raise KeyboardInterrupt
    return spark


@dataclass
class _Starting:
    """A start of Spark that Ctrl-C can end: it kills the Java runtime.

    The thread that waits for the runtime's answer gets an error then; otherwise it would wait for
    ever.
    """

    runtime: subprocess.Popen[bytes] | None = None
    pressed: bool = False

    @contextmanager
    def runtime_noted(self) -> Iterator[None]:
        """Record the Java process at once: `launch_gateway` returns it only when it is up."""
        module: Any = importlib.import_module("pyspark.java_gateway")
        starting = self

        class Noted(subprocess.Popen[bytes]):
            def __init__(self, *arguments: Any, **options: Any) -> None:
                super().__init__(*arguments, **options)
                starting.runtime = self
                if starting.pressed:
                    starting.end()

        before = module.Popen
        module.Popen = Noted
        try:
            yield
        finally:
            module.Popen = before

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Listen for Ctrl-C while the body runs, if this is the main thread."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self.listen()
        try:
            yield
        finally:
            if threading.current_thread() is threading.main_thread():
                for number, handler in before.items():
                    signal.signal(number, handler)

    def listen(self) -> None:
        """Install the signal handlers, in the main thread only."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.pressed = True
        self.end()

    def end(self) -> None:
        """Kill the runtime, if this start has begun one."""
        if self.runtime is not None:
            logging.getLogger("py4j").setLevel(logging.CRITICAL)  # which tells what it misses
            self.runtime.kill()
            self.runtime.wait()


def interruptibly(spark: SparkSession, work: Callable[[], _Result]) -> _Result:
    """Return the result of work on a session; raises `KeyboardInterrupt` on a requested end.

    The work has its own thread, since a signal during a wait for Spark's answer breaks the
    connection. So Ctrl-C is recorded here, and the jobs of the session are cancelled.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    pressed = threading.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            errors.append(error)

    def note(_number: int, _frame: FrameType | None) -> None:
        pressed.set()

    with handled_by(note):
        worker = threading.Thread(target=run, daemon=True)
        worker.start()
        waited_s = 0.0
        while worker.is_alive() and waited_s < END_S_MAX:
            worker.join(POLL_S)
            if pressed.is_set():
                spark.sparkContext.cancelAllJobs()
                waited_s += POLL_S
    if pressed.is_set():
        raise KeyboardInterrupt
    if errors:
        raise errors[0]
    return results[0]


def _settings(master: str, scratch: Path, *, is_brief: bool) -> dict[str, str]:
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
    options = [f"-Dlog4j2.configurationFile={log.as_uri()}"]
    if is_brief:
        options += BRIEF
        # With up to 200 parts, a task would make a serializer for each part. That takes longer
        # than moving the values.
        settings["spark.shuffle.sort.bypassMergeThreshold"] = "1"
        # Large values come compressed (`on_spark.py`); of the others there are few.
        settings |= {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"}
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
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
    """Return the memory of this machine in MiB; 4096 if that is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (ValueError, OSError):
        return 4096

"""Spark says what this process alone says, of each row, whatever the parts and the slices are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokerproof.checks.errors import CannotRun
from brokerproof.pipeline.spark import session as spark_session

if TYPE_CHECKING:
    pass

pytestmark = [
    pytest.mark.filterwarnings("ignore:::pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


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


JAVA_ENDS_S_MAX = 60.0


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
    # Java ends by itself, a moment after its input was closed.
    end = time.monotonic() + JAVA_ENDS_S_MAX
    while "org.apache.spark" in (left := _names_of(running.pid)):
        assert time.monotonic() < end, left
    assert "pyspark.daemon" not in left


def _names_of(session_of: int) -> str:
    """Return the command lines of the processes of a session."""
    words = ["ps", "-ww", "-o", "args=", "-g", str(session_of)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout

"""A start of Spark that fails: Ctrl-C ends it at once, and an error is said in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from brokerproof.checks.errors import CannotRun
from brokerproof.pipeline.spark.session import java, session

PRESSED = """
import os, signal, subprocess, sys, time
from pathlib import Path
from pyspark import SparkContext
from brokerproof.pipeline.spark.session import BRIEF, session

moment, number, scratch = sys.argv[1], signal.Signals[sys.argv[2]], Path(sys.argv[3])
runtimes, presses = [], [number]

class Popen(subprocess.Popen):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if kwargs.get("stdin") == subprocess.PIPE:
            runtimes.append(self)
            press("while the runtime is made")

def waited(*args, real=time.sleep):
    press("while the runtime comes up")
    real(*args)

def press(now):
    if now == moment and presses:
        os.kill(os.getpid(), presses.pop())

def begun(*args, real=SparkContext._initialize_context):
    press("while Spark begins")
    return real(*args)

subprocess.Popen = Popen
time.sleep = waited
SparkContext._initialize_context = begun
try:
    with session("local[1]", scratch, is_brief=True) as spark:
        print("started")
        arguments = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        print("is brief" if BRIEF[0] in arguments.getInputArguments() else "is not")
except KeyboardInterrupt:
    print("interrupted")
print("the runtime has ended" if runtimes[0].poll() is not None else "the runtime is there")
if moment == "while Spark begins":
    with session("local[1]", scratch) as spark:
        print(spark.range(3).count())
"""
"""Starts Spark, with a signal in the midst of it."""


@pytest.fixture(autouse=True)
def with_java() -> None:
    """Leave the tests out where Spark has no Java runtime."""
    try:
        java()
    except CannotRun as error:
        pytest.skip(str(error))


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("moment", "name", "told"),
    [
        ("never", "SIGINT", ["started", "is brief", "the runtime is there"]),
        (
            "while the runtime is made",
            "SIGINT",
            ["interrupted", "the runtime has ended"],
        ),
        (
            "while the runtime comes up",
            "SIGTERM",
            ["interrupted", "the runtime has ended"],
        ),
        (
            "while Spark begins",
            "SIGINT",
            ["interrupted", "the runtime has ended", "3"],
        ),
    ],
)
def test_ctrl_c_while_spark_starts_ends_it_at_once(
    tmp_path: Path, moment: str, name: str, told: list[str]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PRESSED, moment, name, str(tmp_path / "scratch")],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert ended.stdout.splitlines() == told, ended.stderr
    assert ended.stderr == ""
    assert ended.returncode == 0


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("master", "memory", "why"),
    [
        ("nowhere", "1g", "Master must either be yarn or start with spark, k8s, or local"),
        ("local[0]", "1g", "Asked to run locally with 0 threads"),
        ("local[1]", "much", "Invalid maximum heap size: -Xmxmuch"),
        ("local[1]", "1k", "Too small maximum heap"),
    ],
)
def test_why_spark_does_not_start_is_said_in_one_line(
    master: str, memory: str, why: str, tmp_path: Path
) -> None:
    failing = (
        "import sys; from pathlib import Path; from brokerproof.pipeline.spark.session import "
        "session\nwith session(sys.argv[1], Path(sys.argv[2]), {'spark.driver.memory': sys.argv[3]}"
        "): pass"
    )
    ended = subprocess.run(
        [sys.executable, "-c", failing, master, str(tmp_path), memory],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(
        f"brokerproof.checks.errors.CannotRun: Spark cannot be started on {master}: "
    )
    assert last.endswith(why)


def test_an_interpreter_that_is_not_here_is_said_before_spark_starts(tmp_path: Path) -> None:
    settings = {"spark.pyspark.python": str(tmp_path / "python")}
    with (
        pytest.raises(CannotRun, match=r"python is no program of this machine"),
        session("local[1]", tmp_path, settings),
    ):
        pass

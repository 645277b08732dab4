"""Spark for tests: one session for all of a module, where there is a Java runtime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokerproof.checks.errors import CannotRun
from brokerproof.pipeline.spark.session import java, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_of_tests(scratch: Path, master: str = "local[2]") -> Iterator[SparkSession]:
    """Yield a session; skips the test where there is no Java."""
    try:
        java()
    except CannotRun as error:
        pytest.skip(str(error))
    with warnings.catch_warnings():
        # Warnings of pyspark about its own use of other packages are no fault of ours.
        warnings.filterwarnings("ignore", module="pyspark")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        with session(master, scratch) as spark:
            yield spark

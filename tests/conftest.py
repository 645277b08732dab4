"""Shared by all tests: one private RabbitMQ, and the choice of the tests of a run."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
from tests.reaching import ROOT, reaching
from tests.slow import name_of, slow

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Keep what earlier tests left, mostly caches, from the garbage collector."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Collect the garbage of one test: searches leave brokers that refer to themselves."""
    gc.collect()


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[PrivateRabbitMQ]:
    """Return a server that runs; where there is none to run, skip, but never on a CI host."""
    server = PrivateRabbitMQ()
    missing = server.choice.missing()
    if missing is not None and not os.environ.get("CI"):
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests; leave all but `n` cases marked `each_time(n)`, evenly spread, to others."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = name_of(item.nodeid)
        needs = getattr(item, "fixturenames", ())
        if {name, name.partition("::")[0]} & slow() or "spark" in needs:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("each_time"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("each_time")
        assert marker is not None
        many = min(marker.args[0], len(group))
        kept = {number * len(group) // many for number in range(many)}
        for number, item in enumerate(group):
            if number not in kept:
                item.add_marker(pytest.mark.thorough)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a file be named whose tests are run."""
    parser.addoption("--reaching", metavar="FILE", help="run the tests whose imports reach a file")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out slow files if slow tests are, and those whose imports do not reach a named file."""
    if (
        "not slow" in config.option.markexpr
        and collection_path.relative_to(ROOT).as_posix() in slow()
    ):
        return True
    named = config.getoption("--reaching")
    if named is None or collection_path.suffix != ".py":
        return None
    try:
        found = reaching(Path(named))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    return True if collection_path not in found else None

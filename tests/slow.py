"""Which tests are slow, as measured: `make quick` leaves out those that `slow.txt` names.

A line names a test with all its cases, or a file with most of its tests, which then is not even
imported. To measure anew: ``pytest --junitxml=FILE`` and ``python -m tests.slow FILE...``.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import parse

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".txt")

QUICK_PART = 0.02
"""The part of the time of all tests that the quick ones may take together."""

FILE_PART = 0.65
"""A file is slow if this part of its tests is."""


@functools.cache
def slow() -> frozenset[str]:
    """Return the names of slow tests and files."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def name_of(node: str) -> str:
    """Return the name of the test, or of the class of tests, that has a case."""
    return "::".join(node.partition("[")[0].split("::")[:2])


def unknown(names: Iterable[str], root: Path = ROOT) -> Iterator[str]:
    """Yield the names of which there is no file or no test."""
    for name in names:
        file, _, test = name.partition("::")
        path = root / file
        if not (path.is_file() and test in path.read_text(encoding="utf-8")):
            yield name


def measured(reports: Iterable[Path]) -> dict[str, float]:
    """Return the seconds of each test, of all its cases together, in that JUnit report with most.

    A second report, of the quick tests alone, shows those that make what a slow test made before.
    """
    most: dict[str, float] = {}
    for report in reports:
        seconds: defaultdict[str, float] = defaultdict(float)
        for case in parse(report).iter("testcase"):  # noqa: S314 (our own report)
            path = re.sub(r"\.(?=[A-Z])", "::", case.attrib["classname"]).replace(".", "/")
            file, *group = path.split("::")
            name = name_of("::".join([f"{file}.py", *group, case.attrib["name"]]))
            seconds[name] += float(case.attrib["time"])
        most |= {name: max(taken, most.get(name, 0)) for name, taken in seconds.items()}
    return most


def slowest(seconds: dict[str, float]) -> Iterator[str]:
    """Yield the slowest tests, until the others take the part that is allowed."""
    files = defaultdict(set)
    for name in seconds:
        files[name.partition("::")[0]].add(name)
    left = sum(seconds.values())
    allowed = QUICK_PART * left
    chosen = set()
    for name in sorted(seconds, key=lambda each: -seconds[each]):
        if left <= allowed:
            break
        chosen.add(name)
        left -= seconds[name]
    for file, names in files.items():
        found = names & chosen
        yield from {file} if len(found) >= FILE_PART * len(names) else found


if __name__ == "__main__":
    names = sorted(slowest(measured(map(Path, sys.argv[1:]))))
    LIST.write_text("\n".join(names) + "\n", encoding="utf-8")

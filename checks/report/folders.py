"""The folder of a report: its files, and how they are written.

Each file is written under another name and then moved to its place. So a reader always finds
either the whole earlier report file or the whole new one.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokerproof.candidates.signals import handled_by
from brokerproof.checks.report.verdict_file import VerdictFile, encoded
from brokerproof.checks.search.counterexamples import Counterexample

COUNTEREXAMPLES = "counterexamples"
VERDICT = "verdict.json"


def place_of_counterexample(candidate: str, requirement: str, *, several: bool) -> str:
    """Return the path of a counterexample below a report's folder."""
    if not several:
        return f"{COUNTEREXAMPLES}/{requirement}.json"
    return f"{COUNTEREXAMPLES}/{_folder_of(candidate)}/{requirement}.json"


def _folder_of(candidate: str) -> str:
    """Return a readable folder name for an address, different for each address."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in candidate)
    if readable == candidate and readable.strip("."):
        return readable
    return f"{readable[:80]}-{hashlib.sha256(candidate.encode()).hexdigest()[:8]}"


def places_of_counterexamples(record: VerdictFile) -> dict[str, Counterexample]:
    """Return all counterexamples of a record by their paths, as `place_of_counterexample` does."""
    several = len(record.candidates) > 1
    return {
        place_of_counterexample(each.candidate, found.requirement, several=several): found
        for each in record.candidates
        for found in each.found
    }


def write(record: VerdictFile, folder: Path) -> Path:
    """Write a record and its counterexamples; return the path of the record.

    Counterexamples of an earlier run are deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = places_of_counterexamples(record)
    for name, found in kept.items():
        put(folder / name, encoded(found))
    for old in sorted((folder / COUNTEREXAMPLES).rglob("*.json")):
        if old.relative_to(folder).as_posix() not in kept:
            old.unlink()
    path = folder / VERDICT
    put(path, encoded(record))
    return path


def put(path: Path, content: bytes) -> None:
    """Write a file whole, or leave the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    beside.replace(path)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C and other ending signals while the body runs, where signals can be blocked."""
    with handled_by(signal.SIG_IGN):
        yield

"""The folder of a report: which files lie in it, and how they are written.

Each file is written whole beside its place and then moved there, so that whoever looks, at any
moment, finds either the report of before or this one.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokerproof.candidates.signals import handled_by
from brokerproof.checks.report.verdict_file import VerdictFile, encoded

COUNTEREXAMPLES = "counterexamples"
VERDICT = "verdict.json"


def place_of_counterexample(candidate: str, requirement: str, *, several: bool) -> str:
    """Return where below a report's folder a counterexample lies."""
    if not several:
        return f"{COUNTEREXAMPLES}/{requirement}.json"
    return f"{COUNTEREXAMPLES}/{_folder_of(candidate)}/{requirement}.json"


def _folder_of(candidate: str) -> str:
    """Return a folder's name for an address: readable, and no other address has the same."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in candidate)
    if readable == candidate and readable.strip("."):
        return readable
    return f"{readable[:80]}-{hashlib.sha256(candidate.encode()).hexdigest()[:8]}"


def write(record: VerdictFile, folder: Path) -> Path:
    """Write a record and its counterexamples; return the path of the record.

    Counterexamples of an earlier run go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    several = len(record.candidates) > 1
    kept = set()
    for candidate in record.candidates:
        for found in candidate.found:
            name = place_of_counterexample(candidate.candidate, found.requirement, several=several)
            put(folder / name, encoded(found))
            kept.add(folder / name)
    for old in sorted((folder / COUNTEREXAMPLES).rglob("*.json")):
        if old not in kept:
            old.unlink()
    path = folder / VERDICT
    put(path, encoded(record))
    return path


def put(path: Path, content: bytes) -> None:
    """Write a file whole, or leave the one that was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    beside.replace(path)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C and its like while the body runs, where signals can be held back."""
    with handled_by(signal.SIG_IGN):
        yield

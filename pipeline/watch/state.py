"""The state of `trace watch` between batches, in a folder: one for each batch, whole or absent.

Owns the names in the folder and the order in which they appear. A batch reads the state of the
previous batch and writes its own beside it, under a name that only a finished one has. A batch that
was cut short is repeated from the same state and writes the same results under the same names, so
no result is lost or doubled.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from brokerproof.pipeline.readers.rejected_rows import Account, Category
from brokerproof.pipeline.tables import SCHEMA

VIOLATIONS: Final = "violations"
REJECTED: Final = "rejected"
RESULT: Final = "violations.parquet"
CHECKPOINT: Final = "checkpoint"
STATE: Final = "state"
ROWS: Final = "rows"
_CONTROL: Final = "control.parquet"
_CARRIED: Final = "carried.json"
_END: Final = "-end"
_UNFINISHED: Final = ".unfinished"


class StateIsMissing(Exception):
    """The state that a batch continues from is missing; the message is one line."""


class Carried(msgspec.Struct, kw_only=True):
    """The state besides the records: counts, and the newest time of each run.

    `batch` is the batch that left this, `files` the number of files read; `checked` and `aside`
    count their rows; `unjudged` counts those of the checked ones that were rejected with their
    messages. `raised`, `withdrawn` and `strangers` count the results so far, and `undecided`
    the queues with an uncertain finding, or with a delivery that may not have been seen;
    `first_undecided` names a few.
    """

    batch: int = -1
    files: int = 0
    newest: dict[str, int] = {}
    rows: int = 0
    checked: int = 0
    aside: dict[Category, int] = {}
    unjudged: dict[Category, int] = {}
    raised: int = 0
    withdrawn: int = 0
    strangers: int = 0
    undecided: int = 0
    first_undecided: list[str] = []

    @property
    def account(self) -> Account:
        """The number of rows, and how many of them were checked and rejected."""
        account = Account(self.rows, self.checked - sum(self.unjudged.values()))
        account.by_category.update(self.aside)
        account.by_category.update(self.unjudged)
        return account


@dataclass(frozen=True)
class State:
    """The state that a batch left; `rows` is the folder of the records and the states of queues."""

    carried: Carried = field(default_factory=Carried)
    control: pa.Table = field(default_factory=SCHEMA.empty_table)
    rows: Path | None = None


@dataclass(frozen=True)
class Folder:
    """The folder of a watch."""

    path: Path

    def prepare(self) -> None:
        """Create the folder, and remove the files of batches that were cut short.

        Raises `StateIsMissing` if Spark has recorded batches without a state.
        """
        for name in (VIOLATIONS, REJECTED, STATE):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        for left in (self.path / STATE).glob(f".*{_UNFINISHED}"):
            shutil.rmtree(left)
        for name in (VIOLATIONS, REJECTED):
            for left in (self.path / name).glob(f".*{_UNFINISHED}"):
                left.unlink()
        done = [int(each.name) for each in self.checkpoint.glob("commits/[0-9]*")]
        self.left_by(max(done, default=-1))

    @property
    def checkpoint(self) -> Path:
        """The folder in which Spark records the files of each batch."""
        return self.path / CHECKPOINT

    def latest(self) -> State | None:
        """Return the last state, or None."""
        names = sorted(each.name for each in (self.path / STATE).glob("[0-9]*"))
        return self._read(names[-1]) if names else None

    def left_by(self, batch: int) -> State:
        """Return the state that a batch left, or the final state after it.

        Raises `StateIsMissing`.
        """
        if batch < 0:
            return State()
        for name in (_name(batch, end=True), _name(batch)):
            if (self.path / STATE / name).is_dir():
                return self._read(name)
        raise StateIsMissing(
            f"{self.path / STATE}: the state of batch {batch} is not there; "
            "begin anew with another folder"
        )

    def has(self, batch: int, *, end: bool = False) -> bool:
        """Return whether a batch was finished."""
        return (self.path / STATE / _name(batch, end=end)).is_dir()

    def _read(self, name: str) -> State:
        folder = self.path / STATE / name
        try:
            carried = msgspec.json.decode((folder / _CARRIED).read_bytes(), type=Carried)
            control = pq.read_table(folder / _CONTROL, schema=SCHEMA)
        except (OSError, msgspec.DecodeError, pa.ArrowException) as error:
            raise StateIsMissing(f"{folder}: this is no state of a watch: {error}") from error
        return State(carried, control, folder / ROWS)

    def begin(self, batch: int, *, end: bool = False) -> Path:
        """Return a new folder for the state of a batch; it has no final name yet.

        An earlier result is removed: more records have come.
        """
        (self.path / RESULT).unlink(missing_ok=True)
        folder = self._unfinished(batch, end=end)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        return folder

    def _unfinished(self, batch: int, *, end: bool) -> Path:
        # A Java runtime may write for a moment longer than its killed process.
        return self.path / STATE / f".{_name(batch, end=end)}.{os.getpid()}{_UNFINISHED}"

    def finish(self, carried: Carried, control: pa.Table, *, end: bool = False) -> None:
        """Give the state of a batch its name, and remove the states no longer needed."""
        folder = self._unfinished(carried.batch, end=end)
        pq.write_table(control, folder / _CONTROL, compression="zstd")
        (folder / _CARRIED).write_bytes(msgspec.json.encode(carried))
        for path in (*folder.rglob("*"), folder):
            _to_disk(path)
        folder.rename(self.path / STATE / _name(carried.batch, end=end))
        _to_disk(self.path / STATE)
        needed = {
            _name(n, end=e) for n in (carried.batch, carried.batch - 1) for e in (True, False)
        }
        for old in (self.path / STATE).iterdir():
            if old.name not in needed and not old.name.endswith(_UNFINISHED):
                shutil.rmtree(old)

    def tell(
        self, kind: str, batch: int, lines: Iterable[dict[str, Any] | msgspec.Struct], *, end: bool
    ) -> Path:
        """Write the results of a batch, in place of those of an interrupted attempt."""
        path = self.path / kind / f"{_name(batch, end=end)}.jsonl"
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        if text:
            with _whole(path) as unfinished:
                unfinished.write_bytes(text)
        return path

    def write_result(self, violations: pa.Table) -> None:
        """Write all violations of a history that has ended, in place of an earlier result."""
        with _whole(self.path / RESULT) as unfinished:
            pq.write_table(violations, unfinished, compression="zstd")


def told(folder: Path, kind: str = VIOLATIONS) -> Iterator[dict[str, Any]]:
    """Yield the results that a watch wrote, batch by batch."""
    for path in sorted((folder / kind).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=dict[str, Any])


def _name(batch: int, *, end: bool = False) -> str:
    return f"{batch:010}{_END if end else ''}"


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield another name for a file to be written; it gets its own once it is durable."""
    unfinished = path.with_name(f".{path.name}{_UNFINISHED}")
    yield unfinished
    _to_disk(unfinished)
    unfinished.replace(path)


def _to_disk(path: Path) -> None:
    """Make a file or folder durable."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

"""The conversion of recordings to one Parquet table, by a pool of as many workers as cores.

A folder stands for its files, in the order of their names; names that begin with a dot or an
underscore are skipped, as in Spark. A worker reads a group of files of a few megabytes, and the
results are joined in the order of the groups. So the table and the rejected rows are the same bytes
for any number of workers. Files that are already such a valid table are used as they are.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Self, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from brokerproof.checks.workers.worker_pool import Lost, Tell, cores, in_order
from brokerproof.pipeline.readers.rejected_rows import Account, Chunk, Rejected
from brokerproof.pipeline.readers.row_checks import checked
from brokerproof.pipeline.readers.sources import Source, named_form, source_of
from brokerproof.pipeline.tables import (
    PLACE,
    SCHEMA,
    Part,
    UnreadableHistory,
    file_and_line,
    files_of,
    place_of,
    read,
)

PART_ROWS: Final = 1_000_000
GROUP_BYTES: Final = 16 << 20
"""The size in bytes from which on a group of files is complete."""

REJECTED_FILE: Final = "_rejected.jsonl"
"""The rejected rows, beside the parts of a table; Spark skips such a name, too."""

SHOWN_MAX: Final = 20
"""The number of rejected rows that are kept for showing; all of them are in the file."""

Progress: TypeAlias = Callable[[Path, int], None]
"""Called now and then with the current file and the total number of rows read."""


@dataclass
class Converted:
    """The result of reading recordings: row counts, written parts, some of the rejected rows.

    `records` counts the rows of the table; `account` counts those of the recordings. `parts` are
    the recordings themselves if they are a table already.
    """

    account: Account = field(default_factory=Account)
    records: int = 0
    files: list[str] = field(default_factory=list)
    parts: list[Path] = field(default_factory=list)
    shown: list[Rejected] = field(default_factory=list)


def convert(
    paths: Sequence[Path],
    form: str | None,
    folder: Path,
    progress: Progress = lambda _path, _rows: None,
    processes: int | None = None,
) -> Converted:
    """Write recordings as one table in parts, and return the row counts.

    Without a form the content of each file decides. Rejected rows are written beside the parts. The
    default of `processes` is the number of cores. Raises `UnreadableHistory` for unreadable input,
    after removing all parts, and for a folder that is not empty.
    """
    source, argument = named_form(form)
    files = list(_each_once(_files(paths)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableHistory(f"{folder}: {error.strerror or error}") from error
    if any(folder.iterdir()):
        raise UnreadableHistory(f"{folder}: there is something in this folder; name a new one")
    several = _Several(files, cores() if processes is None else processes, progress)
    if source is None or source.name == "parquet":
        names = files_of_one_table(files)
        if names is not None and (done := _as_they_are(files, names, several)) is not None:
            (folder / REJECTED_FILE).touch()
            return done
    task = _Task(files, source, argument, folder)
    done = Converted(files=task.names)
    try:
        with (folder / REJECTED_FILE).open("wb") as aside:
            for made in several.done(task.converted, list(_groups(files))):
                _add(done, made, folder, aside)
        if not done.parts:
            with Part(_part(folder, 0), task.names):
                done.parts.append(_part(folder, 0))  # a table without rows is a table
    except BaseException:
        for each in folder.iterdir():
            each.unlink()
        raise
    return done


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        there = sorted(each for each in path.iterdir() if each.name[0] not in "._")
        for each in there:
            if each.is_dir():
                raise UnreadableHistory(
                    f"{each}: this is a folder in a folder; name it by itself, or move it away"
                )
        if not there:
            raise UnreadableHistory(f"{path}: there are no files in this folder")
        yield from there


def _each_once(files: Iterator[Path]) -> Iterator[Path]:
    """Yield files; raises `UnreadableHistory` if two names mean the same file.

    Read twice, each of its messages would be published twice and be ambiguous.
    """
    names: dict[tuple[int, int], Path] = {}
    for path in files:
        if path.exists():
            there = path.stat()
            is_known_by = (there.st_dev, there.st_ino)
            if (before := names.get(is_known_by)) is not None:
                same = "named twice" if str(before) == str(path) else f"the same file as {before}"
                raise UnreadableHistory(f"{path}: this is {same}; name it once")
            names[is_known_by] = path
        yield path


def _groups(files: Sequence[Path]) -> Iterator[range]:
    """Yield the groups of files that are read together."""
    first, size = 0, 0
    for number, path in enumerate(files):
        size += path.stat().st_size if path.is_file() else 0
        if size >= GROUP_BYTES:
            yield range(first, number + 1)
            first, size = number + 1, 0
    if first < len(files):
        yield range(first, len(files))


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05}.parquet"


_Made = TypeVar("_Made")


@dataclass
class _Several:
    """Files that several workers read; `rows` counts the rows read in all."""

    files: Sequence[Path]
    processes: int
    progress: Progress
    rows: int = 0

    def done(
        self, work: Callable[[range, Tell], _Made | str], groups: Sequence[range]
    ) -> Iterator[_Made]:
        """Yield the results of groups of files, in their order; raises `UnreadableHistory`.

        `work` returns a line of text for an unreadable file.
        """

        def task(number: int, tell: Tell) -> _Made | str:
            return work(groups[number], tell)

        for made in in_order(task, len(groups), self.processes, self._tell):
            if isinstance(made, Lost):
                first = self.files[groups[made.task].start]
                raise UnreadableHistory(f"{first}: the process that read it {made.how}")
            yield _readable(made)

    def _tell(self, file: str, rows: int) -> None:
        self.rows += rows
        self.progress(Path(file), self.rows)


def _readable(made: _Made | str) -> _Made:
    if isinstance(made, str):
        raise UnreadableHistory(made)
    return made


@dataclass(frozen=True)
class _Task:
    """The conversion of files: each group separately, with its own names of parts."""

    files: Sequence[Path]
    source: Source | None
    argument: str
    folder: Path

    @property
    def names(self) -> list[str]:
        """The names of the files in the table."""
        return [str(path) for path in self.files]

    def converted(self, group: range, tell: Tell) -> _Group | str:
        """Write the parts of a group, or return why one of its files cannot be read."""
        try:
            with _Parts(self.folder, group.start, self.names) as parts:
                for number in group:
                    path = self.files[number]
                    for chunk in (self.source or source_of(path)).chunks(path, self.argument):
                        parts.write(chunk, number)
                        tell(str(path), chunk.rows)
        except UnreadableHistory as error:
            return str(error)
        return parts.made


@dataclass
class _Group:
    """The result of a group of files; `aside` is the file of the rejected rows."""

    aside: Path
    account: Account = field(default_factory=Account)
    records: int = 0
    parts: list[Path] = field(default_factory=list)
    shown: list[Rejected] = field(default_factory=list)


class _Parts:
    """The parts of one group, each ended when it is full, and the file of rejected rows."""

    def __init__(self, folder: Path, group: int, names: Sequence[str]) -> None:
        self.made = _Group(folder / f".group-{group:05}.aside")
        self._folder = folder
        self._group = group
        self._names = names
        self._part: Part | None = None
        self._aside = self.made.aside.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._aside.close()
        if self._part is not None:
            if kind is not None:
                self._part.discard()
            else:
                self._part.finish()

    def write(self, chunk: Chunk, file: int) -> None:
        """Add the result of some rows of a file, and count them."""
        made = self.made
        for row in chunk.rejected:
            self._aside.write(msgspec.json.encode(row) + b"\n")
            if len(made.shown) < SHOWN_MAX:
                made.shown.append(row)
        reasons = Counter(row.category for row in chunk.rejected)
        made.account.add(chunk.rows, chunk.rows - len(chunk.rejected), reasons)
        made.records += chunk.batch.num_rows
        batch = _of_file(chunk.batch, file)
        at = 0
        while at < batch.num_rows:
            part = self._part or self._begin()
            some = batch.slice(at, PART_ROWS - part.rows)
            part.write(some)
            at += some.num_rows
            if part.rows >= PART_ROWS:
                part.finish()
                self._part = None

    def _begin(self) -> Part:
        name = f".group-{self._group:05}-{len(self.made.parts):05}.parquet"
        self._part = Part(self._folder / name, self._names)
        self.made.parts.append(self._folder / name)
        return self._part


def _add(done: Converted, made: _Group, folder: Path, aside: IO[bytes]) -> None:
    """Append the result of a group to those before it."""
    of = made.account
    done.account.add(of.rows, of.checked, of.by_category)
    done.records += made.records
    done.shown += made.shown[: SHOWN_MAX - len(done.shown)]
    for part in made.parts:
        done.parts.append(part.rename(_part(folder, len(done.parts))))
    with made.aside.open("rb") as rows:
        shutil.copyfileobj(rows, aside)
    made.aside.unlink()


def _of_file(batch: pa.RecordBatch, file: int) -> pa.RecordBatch:
    """Return a table whose places belong to a file of another number than 0."""
    at = SCHEMA.names.index(PLACE)
    places = pc.add(batch.column(PLACE), pa.scalar(place_of(file, 0), pa.int64()))
    return batch.set_column(at, SCHEMA.field(PLACE), places)


def files_of_one_table(files: Sequence[Path]) -> list[str] | None:
    """Return the names of the files in places, if these files are the parts of one table.

    They are if each has exactly the columns of a history, names the same files as far as it names
    any, and has places of its own, by the statistics in the files.
    """
    names: list[str] = []
    ranges: list[tuple[int, int]] = []
    for path in files:
        looked = _part_as_it_is(path)
        if looked is None:
            return None
        of_part, least, most = looked
        if of_part[: len(names)] != names[: len(of_part)]:
            return None
        names = max(names, of_part, key=len)
        ranges.append((least, most))
    ranges.sort()
    apart = all(before[1] < after[0] for before, after in itertools.pairwise(ranges))
    return names if names and apart else None


def _part_as_it_is(path: Path) -> tuple[list[str], int, int] | None:
    """Return the files that a part names, and its least and greatest place."""
    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            if not schema.equals(SCHEMA, check_metadata=False) or not metadata.num_rows:
                return None
            at = schema.names.index(PLACE)
            groups = [metadata.row_group(n).column(at) for n in range(metadata.num_row_groups)]
    except (OSError, pa.ArrowException):
        return None  # the reader reports the error
    found = [each.statistics for each in groups if each.is_stats_set]
    names = files_of(path)
    if len(found) < len(groups) or not all(each.has_min_max for each in found):
        return None
    least, most = min(each.min for each in found), max(each.max for each in found)
    file, line = file_and_line(least)
    is_named = file >= 0 and line >= 1 and file_and_line(most)[0] < len(names)
    return (names, least, most) if is_named else None


def _as_they_are(files: Sequence[Path], names: list[str], several: _Several) -> Converted | None:
    """Return the files as a table, None if a row in them is wrong."""

    def looked_at(group: range, tell: Tell) -> int | str:
        rows = 0
        try:
            for number in group:
                path = files[number]
                for batch in read(path):
                    if checked(batch, str(path)).rejected:
                        return -1
                    rows += batch.num_rows
                    tell(str(path), batch.num_rows)
        except UnreadableHistory as error:
            return str(error)
        return rows

    rows = 0
    for found in several.done(looked_at, list(_groups(files))):
        if found < 0:
            several.rows = 0
            return None
        rows += found
    return Converted(Account(rows, rows), rows, names, list(files))

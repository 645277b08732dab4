"""The forms of recordings by name, how each is known, and `convert`, which makes Parquet of any.

Everything after this reads Parquet only. A folder stands for the files in it, in the order of their
names; those whose names begin with a dot or an underscore are not of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.readers import firehose, jepsen, json_lines, parquet, rows, runs
from brokerproof.pipeline.set_aside import Account, SetAside
from brokerproof.pipeline.tables import (
    PLACE,
    SCHEMA,
    Chunk,
    Part,
    UnreadableHistory,
    place_of,
    records_of,
)
from brokerproof.spec.histories import Record

PART_ROWS: Final = 1_000_000
BEGINNING_BYTES: Final = 4096
SET_ASIDE_FILE: Final = "_set_aside.jsonl"
"""What was set aside, beside the parts of a table; Spark, too, reads no file of such a name."""

SHOWN_MAX: Final = 20
"""So many rows that were set aside are kept to be shown; all of them are in the file."""

Progress: TypeAlias = Callable[[Path, int], None]
"""Is told, now and then, the file that is read and how many rows were read in all."""


@dataclass(frozen=True)
class Source:
    """A form of recording: what it is, how its files are known, and who reads them.

    `argument` says what may stand behind the name, after a colon; it is handed to the reader.
    """

    name: str
    meaning: str
    suffixes: tuple[str, ...]
    looks_so: Callable[[bytes], bool]
    chunks: Callable[[Path, str], Iterator[Chunk]]
    argument: str = ""


def _is_history(beginning: bytes) -> bool:
    return beginning.startswith(b'{"') and any(
        f'"{key}"'.encode() in beginning for key in ("op", json_lines.HEADER)
    )


def _is_trace(beginning: bytes) -> bool:
    return b'"routed_queues"' in beginning or beginning.startswith(b"=" * 80)


def _is_jepsen(beginning: bytes) -> bool:
    return beginning[:1] in (b"{", b"[", b"#", b"(") and b":type" in beginning


def _is_run(beginning: bytes) -> bool:
    return beginning.startswith(b"{") and b'"brokerproof-counterexample/' in beginning


SOURCES: Final[dict[str, Source]] = {
    source.name: source
    for source in (
        Source(
            "parquet",
            "a history as Parquet",
            (".parquet",),
            lambda beginning: beginning.startswith(b"PAR1"),
            lambda path, _: parquet.chunks(path),
        ),
        Source(
            "runs",
            "a counterexample of the gate",
            (),
            _is_run,
            lambda path, _: rows.chunks_of(runs.read(path)),
        ),
        Source(
            "firehose",
            "a trace of RabbitMQ's tracing plugin, as JSON or text",
            (),
            _is_trace,
            lambda path, argument: rows.chunks_of(firehose.read_as(path, argument)),
            argument="the property that tells messages apart, `message_id` if none is named; "
            "or `header=NAME`, or `payload`; and, after a comma, `steady`",
        ),
        Source(
            "jepsen",
            "a history of Jepsen's tests of queues, as EDN",
            (".edn",),
            _is_jepsen,
            lambda path, _: rows.chunks_of(jepsen.read(path)),
        ),
        Source(
            "history",
            "a history as JSON Lines",
            (".jsonl", ".ndjson"),
            _is_history,
            lambda path, _: json_lines.chunks(path),
        ),
    )
}
"""All forms, in the order in which a file's beginning is held against them."""


@dataclass
class Converted:
    """What became of some recordings: their account, the parts written, some of the rows set aside.

    `records` counts the rows of the table; `account` counts those of the recordings.
    """

    account: Account = field(default_factory=Account)
    records: int = 0
    files: list[str] = field(default_factory=list)
    parts: list[Path] = field(default_factory=list)
    shown: list[SetAside] = field(default_factory=list)


def source_of(path: Path) -> Source:
    """Return the form of a file by its name or its beginning; raises `UnreadableHistory`."""
    for source in SOURCES.values():
        if path.suffix in source.suffixes:
            return source
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING_BYTES).lstrip()
    except OSError as error:
        raise UnreadableHistory(f"{path}: {error.strerror or error}") from error
    for source in SOURCES.values():
        if source.looks_so(beginning):
            return source
    known = ", ".join(SOURCES)
    raise UnreadableHistory(f"{path}: this is in no form that is known; name one of {known}")


def read(path: Path, form: str | None = None) -> Iterator[Record | SetAside]:
    """Yield the records of a recording and the rows that were set aside, in tables' portions."""
    source, argument = _named(form)
    for chunk in (source or source_of(path)).chunks(path, argument):
        yield from chunk.set_aside
        yield from records_of(chunk.batch)


def convert(
    paths: Sequence[Path], form: str | None, folder: Path, progress: Progress | None = None
) -> Converted:
    """Write recordings as one table in parts, and return what became of their rows.

    Without a form each file is taken for what it looks like. What was set aside is written beside
    the parts. Raises `UnreadableHistory`, then with no part of the table left, and where the folder
    has something in it already.
    """
    named, argument = _named(form)
    files = list(_files(paths))
    done = Converted(files=[str(path) for path in files])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableHistory(f"{folder}: {error.strerror or error}") from error
    if any(folder.iterdir()):
        raise UnreadableHistory(f"{folder}: there is something in this folder; name a new one")
    try:
        with _Parts(folder, done) as parts:
            for number, path in enumerate(files):
                for chunk in (named or source_of(path)).chunks(path, argument):
                    parts.write(chunk, number)
                    if progress is not None:
                        progress(path, done.account.rows)
    except BaseException:
        for path in (*done.parts, folder / SET_ASIDE_FILE):
            path.unlink(missing_ok=True)
        raise
    return done


def _named(form: str | None) -> tuple[Source | None, str]:
    if form is None:
        return None, ""
    name, _, argument = form.partition(":")
    if name not in SOURCES:
        raise UnreadableHistory(f"there is no form {name!r}; name one of {', '.join(SOURCES)}")
    source = SOURCES[name]
    if argument and not source.argument:
        raise UnreadableHistory(f"nothing can be said behind the form {name!r}, as {argument!r}")
    return source, argument


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(
            each for each in path.iterdir() if each.is_file() and each.name[0] not in "._"
        )
        if not found:
            raise UnreadableHistory(f"{path}: there are no files in this folder")
        yield from found


class _Parts:
    """The parts of one table, each ended when it is full, and the file of what was set aside."""

    def __init__(self, folder: Path, done: Converted) -> None:
        self._folder = folder
        self._done = done
        self._part: Part | None = None
        self._aside = (folder / SET_ASIDE_FILE).open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._aside.close()
        if kind is not None:
            if self._part is not None:
                self._part.discard()
            return
        if self._part is None and not self._done.parts:
            self._begin()  # a table without rows is a table
        if self._part is not None:
            self._part.finish()

    def write(self, chunk: Chunk, file: int) -> None:
        """Add what some rows of a file said, and count them."""
        for row in chunk.set_aside:
            self._aside.write(msgspec.json.encode(row) + b"\n")
            if len(self._done.shown) < SHOWN_MAX:
                self._done.shown.append(row)
        reasons = Counter(row.category for row in chunk.set_aside)
        self._done.account.add(chunk.rows, chunk.rows - len(chunk.set_aside), reasons)
        self._done.records += chunk.batch.num_rows
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
        path = self._folder / f"part-{len(self._done.parts):05}.parquet"
        self._part = Part(path, self._done.files)
        self._done.parts.append(path)
        return self._part


def _of_file(batch: pa.RecordBatch, file: int) -> pa.RecordBatch:
    """Return a table whose places are those of a file with another number than 0."""
    at = SCHEMA.names.index(PLACE)
    places = pc.add(batch.column(PLACE), pa.scalar(place_of(file, 0), pa.int64()))
    return batch.set_column(at, SCHEMA.field(PLACE), places)

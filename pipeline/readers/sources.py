"""The forms of recordings by name, how each is recognised, and its reader.

Readers produce Parquet (`conversion.py`); all later steps read only that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokerproof.pipeline.readers import firehose, jepsen, json_lines, otel, parquet, rows, runs
from brokerproof.pipeline.readers.blocks import BYTE_ORDER_MARK, opened
from brokerproof.pipeline.readers.rejected_rows import Chunk, Rejected
from brokerproof.pipeline.tables import UnreadableHistory, records_of
from brokerproof.spec.histories import Record

BEGINNING_BYTES: Final = 4096

PACKED_SUFFIXES: Final = (".gz", ".zst")
"""What follows the suffix of a form in the name of a file that is unpacked while it is read."""


@dataclass(frozen=True)
class Source:
    """A form of recording: its meaning, how its files are recognised, and its reader.

    `argument` describes the text that may follow the name after a colon; the reader gets that text.
    `is_lines` is whether the reader takes blocks of lines, which may be compressed.
    """

    name: str
    meaning: str
    suffixes: tuple[str, ...]
    looks_so: Callable[[bytes], bool]
    chunks: Callable[[Path, str], Iterator[Chunk]]
    argument: str = ""
    is_lines: bool = True


def _is_history(beginning: bytes) -> bool:
    is_other = beginning.startswith(otel.BEGINS)
    said = (f'"{key}"'.encode() in beginning for key in ("op", json_lines.HEADER))
    return beginning.startswith(b'{"') and not is_other and any(said)


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
            is_lines=False,
        ),
        Source(
            "runs",
            "a counterexample of the gate",
            (),
            _is_run,
            lambda path, _: rows.chunks_of(runs.read(path)),
            is_lines=False,
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
            "otel",
            "messaging spans of OpenTelemetry, as OTLP's JSON Lines",
            (),
            lambda beginning: beginning.startswith(otel.BEGINS),
            lambda path, argument: rows.chunks_of(otel.read_as(path, argument)),
            argument="how many milliseconds the clocks of clients may differ, 100 if nothing is "
            "said; and, after a comma, `unbuffered`",
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
"""All forms, in the order in which a file's beginning is compared with them."""


def source_of(path: Path) -> Source:
    """Return the form of a file by its name or its beginning; raises `UnreadableHistory`."""
    with opened(path) as file:
        beginning = file.read(BEGINNING_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    suffix = next((each for each in path.suffixes[::-1] if each not in PACKED_SUFFIXES), "")
    named = [each for each in SOURCES.values() if suffix in each.suffixes]
    looking = [each for each in SOURCES.values() if each.looks_so(beginning)]
    # Others' lines of JSON have the suffix of a history, too.
    source = next(iter([each for each in named if each in looking] or looking or named), None)
    if source is None:
        known = ", ".join(SOURCES)
        raise UnreadableHistory(
            f"{path}: this is in no form that is known; name one with --form ({known}) or, if it "
            "is no recording, move it away: in a folder, names that begin with . or _ are left out"
        )
    if not source.is_lines:
        with opened(path, may_be_packed=False):
            pass
    return source


def read(path: Path, form: str | None = None) -> Iterator[Record | Rejected]:
    """Yield the records of a recording and the rejected rows, table by table."""
    source, argument = named_form(form)
    for chunk in (source or source_of(path)).chunks(path, argument):
        yield from chunk.rejected
        yield from records_of(chunk.batch)


def named_form(form: str | None) -> tuple[Source | None, str]:
    """Return the form of a name, and the argument after it; raises `UnreadableHistory`."""
    if form is None:
        return None, ""
    name, _, argument = form.partition(":")
    if name not in SOURCES:
        raise UnreadableHistory(f"there is no form {name!r}; name one of {', '.join(SOURCES)}")
    source = SOURCES[name]
    if argument and not source.argument:
        raise UnreadableHistory(f"nothing can be said behind the form {name!r}, as {argument!r}")
    return source, argument

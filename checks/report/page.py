"""The report as one page: `report.html`, which works offline and holds no script.

The file owns the page's data; `page.html` owns its looks. The template engine escapes everything.
Unprintable characters are first shown as codes, since a candidate chooses its ids.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from brokerproof.checks.report.diagram import Diagram, diagram_of
from brokerproof.checks.report.terminal import reason_of
from brokerproof.checks.report.verdict_file import (
    TrafficRecord,
    VerdictFile,
    VerdictRecord,
    counted,
    worst_first,
)
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.trace.moves import visible

BIN_WIDTH: Final = 10
HEIGHT: Final = 48
"""The size of a bin in a picture of traffic. All coordinates are whole numbers."""

CLOCK_LEAST: Final = 10**17
"""A history whose times begin here or later counts nanoseconds of a clock, others perhaps steps."""

STATUS = {0: "kept", 1: "broken", 3: "inconclusive"}


@dataclass(frozen=True)
class _Drawn:
    """A verdict with its counterexample, its diagram, and its anchor on the page."""

    anchor: str
    verdict: VerdictRecord
    found: Counterexample
    diagram: Diagram


def page(record: VerdictFile) -> bytes:
    """Return the content of `report.html`."""
    environment = Environment(
        loader=PackageLoader("brokerproof.checks", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    environment.filters["reason"] = reason_of
    environment.filters["counted"] = counted
    environment.filters["worst_first"] = worst_first
    drawn = {
        number: [
            _Drawn(
                anchor=f"c{number}-{verdict.requirement}",
                verdict=verdict,
                found=verdict.counterexample,
                diagram=diagram_of(verdict.counterexample),
            )
            for verdict in candidate.verdicts
            if verdict.counterexample is not None
        ]
        for number, candidate in enumerate(record.candidates)
    }
    pictures: list[list[_TrafficPicture]] = [
        [_picture_of(each) for each in candidate.traffic] for candidate in record.candidates
    ]
    text = environment.get_template("page.html").render(
        record=record,
        status=STATUS[record.status],
        drawn=drawn,
        pictures=pictures,
        height=HEIGHT,
        bin_width=BIN_WIDTH,
    )
    return text.encode("utf-8")


class _BinMark(NamedTuple):
    """Violations in a bin: where it begins in the picture, and its words."""

    left: int
    words: str


class _TrafficSeries(NamedTuple):
    """A series: its name, its greatest value in words, and its outline, a step for each bin."""

    name: str
    most: str
    outline: str


class _TrafficPicture(NamedTuple):
    """The picture of one queue; `begin`, `end` and `bin` are its axis in words."""

    traffic: TrafficRecord
    width: int
    rows: tuple[_TrafficSeries, ...]
    marks: tuple[_BinMark, ...]
    begin: str
    end: str
    bin: str


def _picture_of(traffic: TrafficRecord) -> _TrafficPicture:
    """Return the picture of a queue's traffic."""
    is_clock = traffic.first >= CLOCK_LEAST
    series = (
        ("waiting messages", traffic.depth, False),
        ("deliveries in a bin", traffic.deliveries, False),
        ("longest wait", traffic.longest_wait, is_clock),
    )
    return _TrafficPicture(
        traffic,
        BIN_WIDTH * len(traffic.depth),
        tuple(
            _TrafficSeries(name, _length(max(values, default=0), is_time), _outline(values))
            for name, values, is_time in series
        ),
        tuple(_marks(traffic, is_clock)),
        _moment(traffic.first, is_clock),
        _moment(traffic.first + traffic.bin_width * len(traffic.depth), is_clock),
        _length(traffic.bin_width, is_clock),
    )


def _moment(time: int, is_clock: bool) -> str:
    """Return a time in words: of a clock in UTC, to the millisecond."""
    if not is_clock:
        return f"{time:,}"
    seconds, rest = divmod(time, 10**9)
    day = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return f"{day:%Y-%m-%d %H:%M:%S}.{rest // 10**6:03} UTC"


def _length(value: int, is_time: bool) -> str:
    """Return a number in words; nanoseconds are shown in hours, minutes, or a smaller unit.

    >>> _length(2_345_678, True)
    '2.35 ms'
    """
    units = ((3600 * 10**9, "h"), (60 * 10**9, "min"), (10**9, "s"), (10**6, "ms"), (1000, "µs"))
    for size, unit in units:
        if is_time and value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,} ns" if is_time else f"{value:,}"


def _outline(values: Sequence[int]) -> str:
    """Return the commands of a path around the bins. A value above 0 is at least 1 high."""
    most = max(1, *values)
    heights = (-(-value * HEIGHT // most) for value in values)
    steps = (f"V{HEIGHT - height}h{BIN_WIDTH}" for height in heights)
    return f"M0 {HEIGHT}{''.join(steps)}V{HEIGHT}z"


def _marks(traffic: TrafficRecord, is_clock: bool) -> Iterator[_BinMark]:
    for number, many in enumerate(traffic.violations):
        if many:
            begins = traffic.first + number * traffic.bin_width
            verb = "1 violation" if many == 1 else f"{many:,} violations"
            yield _BinMark(number * BIN_WIDTH, f"{verb} from {_moment(begins, is_clock)} on")

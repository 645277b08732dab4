"""The report as one page: `report.html`, which works offline and holds no script.

The file owns the page's data; `page.html` owns its looks. The template engine escapes everything.
Unprintable characters are first shown as codes, since a candidate chooses its ids.
"""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from brokerproof.checks.report.diagram import Diagram, diagram_of
from brokerproof.checks.report.terminal import reason_of
from brokerproof.checks.report.verdict_file import (
    VerdictFile,
    VerdictRecord,
    counted,
    worst_first,
)
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.trace.moves import visible

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
    text = environment.get_template("page.html").render(
        record=record, status=STATUS[record.status], drawn=drawn
    )
    return text.encode("utf-8")

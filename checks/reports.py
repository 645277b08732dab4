"""Reports: verdicts for a person at a terminal, and for machines in `verdict.json`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from brokerproof.checks import counterexamples
from brokerproof.checks.gate import Report
from brokerproof.checks.moves import visible
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.spec.requirements import Level

_STYLES = {
    Outcome.KEPT: "green",
    Outcome.BROKEN: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_CLAIMED: "dim",
}


def show(report: Report, console: Console) -> None:
    """Print stages, the table of verdicts, and every counterexample."""
    title = visible(f"{report.address}  ({report.name} {report.version})")
    console.print(title, highlight=False, markup=False, soft_wrap=True)
    for stage in report.stages:
        console.print(f"  {stage.name:<9} {stage.did}", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("requirement", "level", "verdict"):
        table.add_column(heading, no_wrap=True)
    table.add_column("exercised", justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for verdict in report.verdicts:
        style = _STYLES[verdict.outcome]
        if verdict.outcome is Outcome.BROKEN and verdict.requirement.level is Level.SHOULD:
            style = "yellow"
        table.add_row(
            verdict.requirement.id,
            verdict.requirement.level.value,
            Text(verdict.outcome.value, style),
            str(verdict.exercised or ""),
            Text(visible(verdict.reason)),
        )
    console.print(table)
    for found in _found(report):
        console.print()
        text = counterexamples.text_of_counterexample(found)
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(visible(summary(report)), highlight=False, markup=False, soft_wrap=True)


def summary(report: Report) -> str:
    """Return the verdicts counted, in one line."""
    counts = Counter(verdict.outcome for verdict in report.verdicts)
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]]
    departed = [
        v.requirement.id
        for v in report.verdicts
        if v.outcome is Outcome.BROKEN and v.requirement.level is Level.SHOULD
    ]
    note = f" (of these only recommended: {', '.join(departed)})" if departed else ""
    return f"{report.address}: {', '.join(parts)}{note}"


def _found(report: Report) -> list[counterexamples.Counterexample]:
    return [v.counterexample for v in report.verdicts if v.counterexample is not None]


def write(reports: list[Report], folder: Path, status: int) -> Path:
    """Write `verdict.json` and the counterexamples below a folder; return the former's path."""
    folder.mkdir(parents=True, exist_ok=True)
    several = len(reports) > 1
    for report in reports:
        place = folder / "counterexamples"
        for old in place.glob("*.json") if not several else ():
            old.unlink()
        if several:
            place = place / "".join(c if c.isalnum() or c in "-." else "_" for c in report.address)
        for found in _found(report):
            counterexamples.write(found, place)
    path = folder / "verdict.json"
    content = {
        "format": "brokerproof-verdict/1",
        "status": status,
        "candidates": [_plain(report) for report in reports],
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    return path


def _plain(report: Report) -> dict[str, object]:
    return {
        "candidate": report.address,
        "name": report.name,
        "version": report.version,
        "seed": report.seed,
        "interrupted": report.interrupted,
        "stages": [
            {"stage": s.name, "did": s.did, "complete": s.complete, "operations": s.operations}
            for s in report.stages
        ],
        "verdicts": [_plain_verdict(verdict) for verdict in report.verdicts],
    }


def _plain_verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "requirement": verdict.requirement.id,
        "level": verdict.requirement.level.value,
        "verdict": verdict.outcome.value,
        "exercised": verdict.exercised,
        "reason": verdict.reason,
        "sources": [str(source) for source in verdict.requirement.sources],
        "counterexample": verdict.counterexample,
    }

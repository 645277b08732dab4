"""The report for a person at a terminal: stages, the table of verdicts, every counterexample."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from brokerproof.checks.counterexamples import text_of_counterexample
from brokerproof.checks.glances import KINDS
from brokerproof.checks.moves import visible
from brokerproof.checks.reporting.verdict_file import CandidateRecord, VerdictRecord, summary
from brokerproof.checks.verdicts import Outcome

_STYLES = {
    Outcome.KEPT: "green",
    Outcome.BROKEN: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_CLAIMED: "dim",
}


def show(record: CandidateRecord, console: Console) -> None:
    """Print what the gate says of one candidate."""
    title = visible(f"{record.candidate}  ({record.name} {record.version})")
    console.print(title, highlight=False, markup=False, soft_wrap=True)
    for stage in record.stages:
        console.print(f"  {stage.stage:<9} {visible(stage.did)}", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("requirement", "level", "verdict"):
        table.add_column(heading, no_wrap=True)
    table.add_column("exercised", justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    claimed = [each for each in record.verdicts if each.verdict is not Outcome.NOT_CLAIMED]
    for verdict in claimed:
        style = _STYLES[verdict.verdict]
        if verdict.verdict is Outcome.BROKEN and verdict.counts_as != "failure":
            style = "yellow"
        table.add_row(
            verdict.requirement,
            verdict.level.value,
            Text(verdict.verdict.value, style),
            str(verdict.exercised or ""),
            Text(visible(reason_of(verdict))),
        )
    console.print(table)
    unclaimed = gathered(each.requirement for each in record.verdicts if each not in claimed)
    if unclaimed:
        console.print(Text(f"not claimed: {', '.join(unclaimed)}", _STYLES[Outcome.NOT_CLAIMED]))
    for found in record.found:
        console.print()
        text = text_of_counterexample(found)
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(visible(summary(record)), highlight=False, markup=False, soft_wrap=True)


def gathered(requirements: Iterable[str]) -> list[str]:
    """Return ids, with one phrase instead where all is there that a view of some kind is asked."""
    found = list(requirements)
    phrases = []
    for kind, asked in KINDS.items():
        if asked.issubset(found):
            found = [each for each in found if each not in asked]
            phrases.append(f"what {kind} keeps inside ({len(asked)} ids)")
    return [*found, *phrases]


def reason_of(verdict: VerdictRecord) -> str:
    """Return the reason of a verdict, with the one for which it is accepted."""
    if verdict.known is None:
        return verdict.reason
    return f"{verdict.reason} (known until {verdict.known.expires}: {verdict.known.reason})"

"""Output for a CI host besides files: annotations and a step summary on GitHub.

This file owns the escaping of workflow commands. The gate's other output is printed with commands
switched off, since a candidate chooses its ids and they may look like commands.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from brokerproof.checks.report.terminal import reason_of
from brokerproof.checks.report.verdict_file import (
    VerdictFile,
    VerdictRecord,
    counted,
    worst_first,
)
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.trace.moves import visible
from brokerproof.checks.verdicts import Outcome

SUMMARY_BYTES_MAX = 900_000
"""The host refuses a step summary of more than 1 MiB."""

_KINDS: dict[str, str] = {"failure": "error", "inconclusive": "warning", "recommended": "warning"}


def on_github(environment: Mapping[str, str]) -> bool:
    """Whether this runs on GitHub."""
    return environment.get("GITHUB_ACTIONS") == "true"


def annotations_of(record: VerdictFile) -> Iterator[str]:
    """Yield a workflow command for each verdict that counts for the gate."""
    for candidate in record.candidates:
        for warning in candidate.warnings:
            yield command("warning", "brokerproof", visible(warning))
        for verdict in candidate.verdicts:
            kind = _KINDS.get(verdict.counts_as)
            if kind is not None:
                title = f"{verdict.requirement} {verdict.verdict.value}"
                text = f"{visible(candidate.candidate)}: {_text(verdict)}"
                yield command(kind, title, text)
    for complaint in record.complaints:
        yield command("error", "brokerproof", visible(complaint))


def _text(verdict: VerdictRecord) -> str:
    found = verdict.counterexample
    return visible(reason_of(verdict)) if found is None else text_of_counterexample(found)


def command(kind: str, title: str, text: str) -> str:
    """Return a workflow command; neither title nor text can end it or begin another."""
    return f"::{kind} title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def commands_off(echo: Callable[[str], None], *, on_host: bool) -> Iterator[None]:
    """Make the host read the output of the body as plain text."""
    if not on_host:
        yield
        return
    token = secrets.token_hex(16)
    echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        echo(f"::{token}::")


def step_summary(record: VerdictFile) -> str:
    """Return the summary of a run in Markdown."""
    parts = [_heading(record)]
    for candidate in record.candidates:
        rows = [
            f"| {_escaped(v.requirement)} | {v.level.value} | {_mark(v)} | {v.exercised or ''} "
            f"| {_escaped(reason_of(v))} |"
            for v in worst_first(candidate.verdicts)
            if v.verdict is not Outcome.NOT_CLAIMED
        ]
        table = "\n".join(
            (
                "| requirement | level | verdict | exercised | reason |",
                "|---|---|---|--:|---|",
                *rows,
            )
        )
        parts.append(
            f"### {_escaped(candidate.candidate)}\n\n{_escaped(counted(candidate))}\n\n{table}"
        )
        parts += [_fenced(text_of_counterexample(found)) for found in candidate.found]
    whole = ""
    for part in parts:
        if len((whole + part).encode()) > SUMMARY_BYTES_MAX:
            return whole + "The rest is in the report: there is more than a summary may hold.\n"
        whole += part + "\n\n"
    return whole


def _heading(record: VerdictFile) -> str:
    words = {0: "kept", 1: "broken", 3: "inconclusive"}[record.status]
    interrupted = ", interrupted" if record.interrupted else ""
    complaints = "".join(f"\n* {_escaped(complaint)}" for complaint in record.complaints)
    return f"## brokerproof: {words}{interrupted}" + (complaints and f"\n{complaints}")


def _mark(verdict: VerdictRecord) -> str:
    words = verdict.verdict.value
    return f"**{words}**" if verdict.counts_as in {"failure", "inconclusive"} else words


def _escaped(text: str) -> str:
    """Return a text that Markdown and HTML show literally."""
    words = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~@])", r"\\\1", words)


def _fenced(text: str) -> str:
    """Return a text in a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def append_summary(record: VerdictFile, path: Path) -> None:
    """Add the summary of a run to the file that the host shows."""
    with path.open("a", encoding="utf-8") as file:
        file.write(step_summary(record))

"""Known failures: a list, kept beside the code, of accepted failures with reason and expiry date.

A known failure does not turn the gate red. A stale list does: an entry whose requirement is kept
again, and one that has expired, each turn the gate red with a line that says what to do. The
present day comes from the caller.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.gate.gate_run import Report
from brokerproof.checks.verdicts import Judgement, Outcome, Verdict, judgement
from brokerproof.spec.requirements import catalogue


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One accepted failure: of one candidate or of any, until the end of the day `expires`."""

    requirement: str
    reason: str
    expires: dt.date
    candidate: str | None = None

    def is_about(self, address: str) -> bool:
        """Whether the entry is about the candidate with that address."""
        return self.candidate is None or without_password(self.candidate) == without_password(
            address
        )

    def __str__(self) -> str:
        whose = "" if self.candidate is None else f" of {without_password(self.candidate)}"
        return self.requirement + whose


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    known: tuple[KnownFailure, ...] = ()


class MalformedList(Exception):
    """A list of known failures cannot be used; the message is one line with line or field."""


@dataclass(frozen=True)
class KnownFailures:
    """A list of known failures, its file, and the day on which it is read."""

    path: Path | None = None
    entries: tuple[KnownFailure, ...] = ()
    today: dt.date = dt.date.min

    def judge(
        self, address: str, verdict: Verdict, *, strict: bool, accept_inconclusive: bool
    ) -> Judgement:
        """Return the judgement on a candidate's verdict."""
        found = (e for e in self._about(address, verdict.requirement.id) if not self._expired(e))
        return judgement(
            verdict,
            strict=strict,
            accept_inconclusive=accept_inconclusive,
            known=next(found, None),
        )

    def complaints(self, reports: Iterable[Report]) -> tuple[str, ...]:
        """Return the complaints about the list itself, given these reports."""
        judged = [(report.address, verdict) for report in reports for verdict in report.verdicts]
        return tuple(
            complaint for entry in self.entries for complaint in self._complaints(entry, judged)
        )

    def _complaints(self, entry: KnownFailure, judged: list[tuple[str, Verdict]]) -> Iterator[str]:
        outcomes = {
            verdict.outcome
            for address, verdict in judged
            if entry.is_about(address) and verdict.requirement.id == entry.requirement
        }
        if not outcomes:
            return
        if Outcome.KEPT in outcomes and Outcome.BROKEN not in outcomes:
            yield (
                f"{self.path}: {entry} is known as a failure and is kept again: "
                "take it off the list"
            )
        elif self._expired(entry):
            yield (
                f"{self.path}: {entry} was accepted until {entry.expires} ({entry.reason}): "
                "mend it, or set a later date"
            )

    def _about(self, address: str, requirement: str) -> Iterator[KnownFailure]:
        for entry in self.entries:
            if entry.requirement == requirement and entry.is_about(address):
                yield entry

    def _expired(self, entry: KnownFailure) -> bool:
        return self.today > entry.expires


def read_known(path: Path, today: dt.date) -> KnownFailures:
    """Return the list of known failures in a file; raises `MalformedList`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MalformedList(f"{path}: {reason}") from error
    try:
        entries = msgspec.convert(tomllib.loads(text), _File).known
    except tomllib.TOMLDecodeError as error:
        raise MalformedList(f"{path}: not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise MalformedList(f"{path}: {_placed(str(error), text)}") from error
    seen = set()
    for number, entry in enumerate(entries):
        place = f"{path}: line {_line_of(text, number)}: known[{number}]"
        if entry.requirement not in catalogue():
            raise MalformedList(
                f"{place}.requirement: there is no requirement {entry.requirement!r}"
            )
        if not entry.reason.strip():
            raise MalformedList(f"{place}.reason: say why it is accepted")
        if (entry.requirement, entry.candidate) in seen:
            raise MalformedList(f"{place}: {entry} is on the list twice")
        seen.add((entry.requirement, entry.candidate))
    return KnownFailures(path, entries, today)


def _placed(complaint: str, text: str) -> str:
    """Return a complaint of msgspec with the line of the entry, and the field."""
    what, _, place = complaint.partition(" - at `$")
    field = place.strip("`.")
    number = re.match(r"known\[(\d+)\]", field)
    line = f"line {_line_of(text, int(number[1]))}: " if number else ""
    return f"{line}{field}: {what}" if field else what


def _line_of(text: str, number: int) -> int:
    """Return the line on which an entry begins."""
    starts = [
        line
        for line, content in enumerate(text.splitlines(), 1)
        if re.match(r"\s*\[\[\s*known\s*\]\]", content)
    ]
    return starts[number] if number < len(starts) else 1

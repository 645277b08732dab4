"""Known failures: accepted for a time, and checked against their list."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

from brokerproof.checks.commands.known_failures import KnownFailures, MalformedList, read_known
from brokerproof.checks.gate.gate import Report
from brokerproof.checks.verdicts import Counts, Outcome, Verdict
from brokerproof.spec.requirements import catalogue

TODAY = dt.date(2026, 6, 1)
ENTRY = """
[[known]]
requirement = "fifo-order"
reason = "issue 17"
expires = 2026-06-01
"""


def listed(text: str, tmp_path: Path, today: dt.date = TODAY) -> KnownFailures:
    """Return the list in a text."""
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    return read_known(path, today)


def verdict(outcome: Outcome, requirement: str = "fifo-order") -> Verdict:
    """Return a verdict."""
    return Verdict(catalogue()[requirement], outcome, 1, "reason")


def counts(known: KnownFailures, each: Verdict, address: str = "box:make") -> Counts:
    """Return the status of a verdict."""
    return known.judge(address, each, strict=False, accept_inconclusive=False).counts_as


def complaints(known: KnownFailures, *verdicts: Verdict, address: str = "box:make") -> list[str]:
    """Return the errors of a list after these verdicts of a candidate."""
    return list(known.complaints([Report(address, "box", "1", 0, verdicts)]))


def test_a_known_failure_is_accepted_on_its_last_day(tmp_path: Path) -> None:
    known = listed(ENTRY, tmp_path)
    broken = verdict(Outcome.BROKEN)
    assert counts(known, broken) == "accepted"
    assert complaints(known, broken) == []


def test_without_a_list_the_same_failure_counts() -> None:
    assert counts(KnownFailures(), verdict(Outcome.BROKEN)) == "failure"


def test_it_counts_again_on_the_day_after_and_is_told(tmp_path: Path) -> None:
    known = listed(ENTRY, tmp_path, TODAY + dt.timedelta(days=1))
    broken = verdict(Outcome.BROKEN)
    assert counts(known, broken) == "failure"
    [line] = complaints(known, broken)
    assert line.endswith(
        "fifo-order was accepted until 2026-06-01 (issue 17): mend it, or set a later date"
    )


def test_one_that_is_kept_again_is_told(tmp_path: Path) -> None:
    known = listed(ENTRY, tmp_path)
    [line] = complaints(known, verdict(Outcome.KEPT))
    assert line == (
        f"{tmp_path / 'known.toml'}: fifo-order is known as a failure and is kept again: "
        "take it off the list"
    )


def test_what_was_not_decided_is_not_kept_again(tmp_path: Path) -> None:
    known = listed(ENTRY, tmp_path)
    for outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_CLAIMED):
        assert complaints(known, verdict(outcome)) == []
    assert counts(known, verdict(Outcome.INCONCLUSIVE)) == "inconclusive"


def test_an_entry_speaks_of_its_requirement_and_candidate_only(tmp_path: Path) -> None:
    known = listed(ENTRY + 'candidate = "amqp091://me:secret@host/"\n', tmp_path)
    broken = verdict(Outcome.BROKEN)
    assert counts(known, broken, "amqp091://me:other@host/") == "accepted"
    assert counts(known, broken, "box:make") == "failure"
    assert counts(known, verdict(Outcome.BROKEN, "nothing-lost"), "amqp091://me:x@host/") == (
        "failure"
    )
    assert complaints(known, verdict(Outcome.KEPT)) == []
    [line] = complaints(known, verdict(Outcome.KEPT), address="amqp091://me:secret@host/")
    assert "fifo-order of amqp091://me:***@host/ is known" in line


def test_an_entry_for_all_candidates_stays_as_long_as_one_fails(tmp_path: Path) -> None:
    known = listed(ENTRY, tmp_path)
    reports = [
        Report("one", "box", "1", 0, (verdict(Outcome.KEPT),)),
        Report("other", "box", "1", 0, (verdict(Outcome.BROKEN),)),
    ]
    assert known.complaints(reports) == ()
    assert len(known.complaints(reports[:1])) == 1


def test_an_empty_list_is_a_list(tmp_path: Path) -> None:
    assert listed("", tmp_path).entries == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[known]\n", "Expected ']]' at the end of an array declaration (at line 1"),
        (ENTRY.replace("2026-06-01", '"soon"'), "line 2: known[0].expires: Invalid"),
        (ENTRY + ENTRY.replace('"issue 17"', "17"), "line 7: known[1].reason: Expected `str`"),
        (ENTRY.replace("reason", "raison"), "line 2: known[0]: Object"),
        (ENTRY + 'colour = "red"\n', "line 2: known[0]: Object contains unknown field `colour`"),
        ('[[knwon]]\nrequirement = "x"\n', "Object contains unknown field `knwon`"),
        (ENTRY.replace("fifo-order", "nonsense"), "there is no requirement 'nonsense'"),
        (ENTRY.replace("issue 17", " "), "line 2: known[0].reason: say why"),
        (ENTRY + ENTRY, "line 7: known[1]: fifo-order is on the list twice"),
    ],
)
def test_a_malformed_list_is_refused_with_line_or_field(
    text: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(MalformedList, match=re.escape(complaint)) as told:
        listed(text, tmp_path)
    assert "\n" not in str(told.value)
    assert str(told.value).startswith(str(tmp_path / "known.toml"))


def test_a_list_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MalformedList, match=r"nowhere\.toml: No such file"):
        read_known(tmp_path / "nowhere.toml", TODAY)
    (tmp_path / "no text").write_bytes(b"\xff\xfe")
    with pytest.raises(MalformedList, match="utf-8"):
        read_known(tmp_path / "no text", TODAY)

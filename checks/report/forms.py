"""All forms of a report, written into one folder."""

from __future__ import annotations

from pathlib import Path

from brokerproof.checks.report import folders
from brokerproof.checks.report.junit import junit
from brokerproof.checks.report.page import page
from brokerproof.checks.report.sarif import sarif
from brokerproof.checks.report.verdict_file import VerdictFile

PAGE = "report.html"
FORMS = {"junit.xml": junit, "verdict.sarif": sarif, PAGE: page}
"""The function that makes each file besides the record and the counterexamples."""


def write_report(record: VerdictFile, folder: Path) -> Path:
    """Write the record, then all forms made from it; return the path of the record.

    Ctrl-C does not interrupt it.
    """
    with folders.undisturbed():
        path = folders.write(record, folder)
        for name, made_by in FORMS.items():
            folders.put(folder / name, made_by(record))
    return path

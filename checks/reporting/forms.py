"""All forms of a report, written into one folder."""

from __future__ import annotations

from pathlib import Path

from brokerproof.checks.reporting import folders
from brokerproof.checks.reporting.junit import junit
from brokerproof.checks.reporting.page import page
from brokerproof.checks.reporting.sarif import sarif
from brokerproof.checks.reporting.verdict_file import VerdictFile

PAGE = "report.html"
FORMS = {"junit.xml": junit, "verdict.sarif": sarif, PAGE: page}
"""What each file besides the record and the counterexamples is made by."""


def write_report(record: VerdictFile, folder: Path) -> Path:
    """Write the record, then everything that is made of it; return the path of the record.

    Ctrl-C does not end it halfway.
    """
    with folders.undisturbed():
        path = folders.write(record, folder)
        for name, made_by in FORMS.items():
            folders.put(folder / name, made_by(record))
    return path

"""JUnit XML, which every CI host reads: one suite for a candidate, one case for a requirement.

A failure carries the counterexample as the terminal prints it. An inconclusive verdict is an error,
as it has not passed. A case is skipped with its reason if the inconclusive verdict is accepted, or
if the requirement is not claimed, known to fail or only recommended.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from brokerproof.checks.report.terminal import reason_of
from brokerproof.checks.report.verdict_file import CandidateRecord, VerdictFile, VerdictRecord
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.trace.moves import visible

SETTINGS = "settings"
"""The suite of stale known failures and of expected requirements that were not judged."""


def junit(record: VerdictFile) -> bytes:
    """Return the content of `junit.xml`."""
    suites = ET.Element("testsuites", name="brokerproof")
    for candidate in record.candidates:
        suites.append(_suite(candidate))
    if record.complaints:
        suite = ET.Element("testsuite", name=SETTINGS)
        for number, complaint in enumerate(record.complaints, 1):
            case = _case(suite, SETTINGS, f"entry {number}")
            ET.SubElement(case, "failure", message=visible(complaint), type="setting")
        suites.append(_counted(suite))
    ET.indent(suites, " ")
    content: bytes = ET.tostring(_counted(suites), encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(candidate: CandidateRecord) -> ET.Element:
    suite = ET.Element("testsuite", name=visible(candidate.candidate))
    for verdict in candidate.verdicts:
        case = _case(suite, candidate.candidate, verdict.requirement)
        told = _told(verdict)
        if told is not None:
            case.append(told)
        if verdict.counterexample is not None and verdict.counts_as != "failure":
            text = text_of_counterexample(verdict.counterexample)
            ET.SubElement(case, "system-out").text = text
    return _counted(suite)


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=visible(classname), name=name)


def _told(verdict: VerdictRecord) -> ET.Element | None:
    """Return the element inside a case; None if the requirement is kept."""
    message = visible(reason_of(verdict))
    match verdict.counts_as:
        case "pass":
            return None
        case "failure":
            told = ET.Element("failure", message=message, type="broken")
            if verdict.counterexample is not None:
                told.text = text_of_counterexample(verdict.counterexample)
            return told
        case "inconclusive":
            return ET.Element("error", message=message, type="inconclusive")
        case "not claimed":
            return ET.Element("skipped", message="not claimed")
        case "accepted" | "recommended":
            return ET.Element("skipped", message=f"{verdict.verdict.value}, accepted: {message}")


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _counted(element: ET.Element) -> ET.Element:
    """Return a suite, or all of them, with its cases counted by outcome."""
    element.set("tests", str(len(list(element.iter("testcase")))))
    for attribute, tag in _COUNTED.items():
        element.set(attribute, str(len(list(element.iter(tag)))))
    return element

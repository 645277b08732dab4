"""The forms of a report for machines and for a browser, with candidates that say hostile things.

Every form is made of the record alone, so one hostile record is held against all of them.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft4Validator, ValidationError

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.commands.known_failures import KnownFailure
from brokerproof.checks.gate.gate import Report, Stage
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.report import ci_hosts, folders, verdict_file
from brokerproof.checks.report.forms import FORMS, write_report
from brokerproof.checks.report.junit import junit
from brokerproof.checks.report.page import page
from brokerproof.checks.report.sarif import HELP, sarif
from brokerproof.checks.report.verdict_file import (
    VerdictFile,
    candidate_record,
)
from brokerproof.checks.search.counterexamples import (
    Certificate,
    Counterexample,
    counterexample_of,
    text_of_counterexample,
)
from brokerproof.checks.search.findings import play
from brokerproof.checks.trace.moves import Move
from brokerproof.checks.verdicts import ExitStatus, Outcome, Verdict, judgement
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.operations import Declare, Get, Publish
from brokerproof.spec.requirements import catalogue
from brokerproof.version import HOME
from tests.checks.broken_candidates import Box, Stack

CERTIFICATE = Certificate(grade="product", scope="one channel", operations=4)
HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]>&amp;<!--",
    "a\nb\r::error title=no::no",
    "| cell | `code` ```fence",
    "\x00\x1b[2J\u202e\ufffe\ud800",
    "{{ 7 * 7 }}{% include 'x' %}",
    "%0A%25##[error]",
)


def found_with(first: str, second: str) -> Counterexample:
    """Return a counterexample about messages with these ids."""
    moves: list[Move] = [
        Declare(queue="q0", order=Fifo()),
        Publish(queue="q0", message=Message(id=first)),
        Publish(queue="q0", message=Message(id=second)),
        Get(channel="ch0", queue="q0"),
    ]
    run = play(Stack(), Oracle(Stack().hello().capabilities), moves)
    return counterexample_of("box:make", run, CERTIFICATE)


def record_with(
    words: str = "m1",
    *,
    address: str = "box:make",
    known: KnownFailure | None = None,
    complaints: tuple[str, ...] = (),
    accept: bool = False,
) -> VerdictFile:
    """Return a record with one verdict of each kind, and a candidate's own words everywhere."""
    found = found_with("m0", words)
    verdicts = (
        Verdict(catalogue()["nothing-lost"], Outcome.KEPT, 7),
        Verdict(catalogue()["fifo-order"], Outcome.BROKEN, 3, found.summary, found),
        Verdict(catalogue()["browser-once-by-priority"], Outcome.BROKEN, 1, words),
        Verdict(catalogue()["get-finds"], Outcome.INCONCLUSIVE, 0, f"never happened: {words}"),
        Verdict(catalogue()["browser-once"], Outcome.NOT_CLAIMED),
    )
    stages = [Stage("product", f"one channel: {words}", complete=True, operations=9)]
    report = Report(address, words, words, 0, verdicts, stages)
    judgements = tuple(
        judgement(v, known=known, accept_inconclusive=accept)
        if v.requirement.id in {"fifo-order", "get-finds"}
        else judgement(v)
        for v in verdicts
    )
    record = candidate_record(report, Box().hello().capabilities, judgements)
    return verdict_file.verdict_file((record,), ExitStatus.BROKEN, complaints=complaints)


KNOWN = KnownFailure("fifo-order", "issue 17", dt.date(2030, 1, 1))


# verdict.json.


def test_words_that_no_file_can_hold_are_written_as_their_codes(tmp_path: Path) -> None:
    path = write_report(record_with("half a \ud800 pair"), tmp_path)
    assert verdict_file.read(path).candidates[0].name == "half a \\ud800 pair"


@pytest.mark.parametrize("words", [w for w in HOSTILE if "\ud800" not in w])
def test_the_record_comes_back_from_its_file_as_it_was(words: str, tmp_path: Path) -> None:
    record = record_with(words)
    assert verdict_file.read(write_report(record, tmp_path)) == record


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"status": 1', b'"status": 7', "`$.status`"),
        (b'"level": "MUST"', b'"level": "MAY"', "`$.candidates[0].verdicts[0].level`"),
        (b'"counts_as": "pass"', b'"counts_as": "won"', "verdicts[0].counts_as"),
        (b'"format": "brokerproof-verdict/1"', b'"format": "x"', "`$.format`"),
    ],
)
def test_a_file_that_is_no_verdict_is_refused_with_its_field(
    old: bytes, new: bytes, complaint: str, tmp_path: Path
) -> None:
    path = write_report(record_with(), tmp_path)
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(verdict_file.UnreadableVerdict, match=re.escape(complaint)):
        verdict_file.read(path)


def test_the_same_record_gives_the_same_bytes_in_every_form(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_report(record_with(), tmp_path / name)
    names = [p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*")]
    assert {path.name for path in names} >= {"verdict.json", *FORMS}
    for path in names:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "other" / path).read_bytes()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("amqp091://guest:secret@host:5672/v", "amqp091://guest:***@host:5672/v"),
        ("amqp091://guest:se@cret@host/", "amqp091://guest:***@host/"),
        ("amqp091://guest@host/", "amqp091://guest@host/"),
        ("amqp091://host:5672/", "amqp091://host:5672/"),
        ("package.module:make", "package.module:make"),
    ],
)
def test_no_report_has_a_password(address: str, shown: str, tmp_path: Path) -> None:
    assert without_password(address) == shown
    write_report(record_with(address=address), tmp_path)
    for path in tmp_path.rglob("*.*"):
        assert "cret" not in path.read_text("utf-8")


def test_counterexamples_of_addresses_that_look_alike_have_folders_of_their_own() -> None:
    places = {
        folders.place_of_counterexample(address, "fifo-order", several=True)
        for address in ("a:b", "a_b", "a/b", "..", "../..", "a?b")
    }
    assert len(places) == 6
    for place in places:
        assert ".." not in Path(place).parts
        assert len(Path(place).parts) == 3


# junit.xml.


def cases(record: VerdictFile) -> dict[str, ET.Element]:
    """Return the test cases by name."""
    root = ET.fromstring(junit(record))  # noqa: S314 (it is our own)
    return {str(case.get("name")): case for case in root.iter("testcase")}


def test_a_case_ends_as_its_verdict_counts() -> None:
    found = cases(record_with())
    ends = {name: [child.tag for child in case] for name, case in found.items()}
    assert ends == {
        "nothing-lost": [],
        "fifo-order": ["failure"],
        "browser-once-by-priority": ["skipped"],
        "get-finds": ["error"],
        "browser-once": ["skipped"],
    }
    root = ET.fromstring(junit(record_with()))  # noqa: S314
    counted = {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}


def test_a_failure_carries_the_counterexample() -> None:
    record = record_with()
    failure = cases(record)["fifo-order"].find("failure")
    assert failure is not None
    assert failure.text == text_of_counterexample(found_with("m0", "m1"))
    assert failure.get("message") == "expected m0; seen m1 to the get"


def test_what_is_accepted_is_skipped_with_its_reason() -> None:
    found = cases(record_with(known=KNOWN, accept=True))
    known = found["fifo-order"].find("skipped")
    assert known is not None
    assert "known until 2030-01-01: issue 17" in str(known.get("message"))
    assert found["fifo-order"].find("system-out") is not None
    assert found["get-finds"].find("skipped") is not None


def test_a_complaint_about_the_list_is_a_failure_of_its_own() -> None:
    case = cases(record_with(complaints=("known.toml: fifo-order is kept again",)))["entry 1"]
    failure = case.find("failure")
    assert failure is not None
    assert "kept again" in str(failure.get("message"))


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_leave_the_xml_well_formed(words: str) -> None:
    record = record_with(words, complaints=(words,))
    assert len(cases(record)) == 6


# SARIF. The schema is the one that the npm package @microsoft/jest-sarif 1.0.0-beta.0 ships (MIT).

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_bytes())


def sound(content: bytes) -> dict[str, Any]:
    """Return the run in a SARIF file; raises where it is not in form or does not hang together."""
    log = json.loads(content)
    Draft4Validator(SCHEMA).validate(log)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for file in files(result):
            assert file["uriBaseId"] in run["originalUriBaseIds"]
            assert not file["uri"].startswith("/")
    prints = [sorted(result["partialFingerprints"].items()) for result in run["results"]]
    assert all(prints.count(each) == 1 for each in prints)
    assert all(rule["helpUri"].startswith(HOME) for rule in rules)
    return cast("dict[str, Any]", run)


def files(part: object) -> Iterator[dict[str, str]]:
    """Yield each place in a file that a part of a SARIF log names."""
    if isinstance(part, dict):
        if "artifactLocation" in part:
            yield part["artifactLocation"]
        part = list(part.values())
    for each in part if isinstance(part, list) else ():
        yield from files(each)


def test_sarif_is_in_form_and_has_a_result_for_each_broken_requirement() -> None:
    run = sound(sarif(record_with()))
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("fifo-order", "error"),
        ("browser-once-by-priority", "warning"),
    ]
    [result, _] = run["results"]
    assert next(files(result)) == {"uri": "counterexamples/fifo-order.json", "uriBaseId": "REPORT"}
    [flow] = result["codeFlows"]
    assert len(flow["threadFlows"][0]["locations"]) == 5
    assert "get-finds" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert run["tool"]["driver"]["informationUri"] == HOME


def test_the_page_that_helps_is_there() -> None:
    page, _, heading = HELP.removeprefix(f"{HOME}/blob/main/").partition("#")
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert heading in [each.lower().replace(" ", "-") for each in headings]


def test_what_is_known_is_a_suppressed_result() -> None:
    [result, other] = sound(sarif(record_with(known=KNOWN)))["results"]
    assert result["suppressions"] == [
        {"kind": "external", "justification": "issue 17 (until 2030-01-01)"}
    ]
    assert "suppressions" not in other


def test_a_candidate_in_a_file_is_where_its_results_are() -> None:
    [result, _] = sound(sarif(record_with(address="my queues/broker.py:make")))["results"]
    assert next(files(result)) == {"uri": "my%20queues/broker.py", "uriBaseId": "%SRCROOT%"}


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_leave_sarif_in_form(words: str) -> None:
    assert len(sound(sarif(record_with(words, complaints=(words,))))["results"]) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ruleIndex": 1', b'"ruleIndex": 0'),
        (b'"level": "error"', b'"level": "fatal"'),
        (b'"uri": "counter', b'"uri": "/counter'),
        (b'"startLine": 1', b'"startLine": 0'),
        (b'"version": "2.1.0"', b'"version": "2.2"'),
        (b'"ruleId"', b'"rule"'),
        (b'"uriBaseId": "REPORT"', b'"uriBaseId": "ELSEWHERE"'),
        (b'"informationUri"', b'"informationURL"'),
        (b'"helpUri": "https:', b'"helpUri": "ftp:'),
    ],
)
def test_sarif_that_is_not_in_form_is_noticed(old: bytes, new: bytes) -> None:
    content = sarif(record_with())
    assert old in content
    with pytest.raises((AssertionError, KeyError, ValidationError)):
        sound(content.replace(old, new))


# Output for CI hosts.


def test_annotations_tell_what_matters() -> None:
    lines = list(ci_hosts.annotations_of(record_with(complaints=("a list",))))
    kinds = [line.split("::")[1] for line in lines]
    assert kinds == [
        "error title=fifo-order broken",
        "warning title=browser-once-by-priority broken",
        "warning title=get-finds inconclusive",
        "error title=brokerproof",
    ]
    told = lines[0].split("::", 2)[2]
    unescaped = told.replace("%0A", "\n").replace("%25", "%")
    assert unescaped == "box:make: " + text_of_counterexample(found_with("m0", "m1"))


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_stay_within_one_command(words: str) -> None:
    for line in ci_hosts.annotations_of(record_with(words, complaints=(words,))):
        assert line.isprintable()
        assert re.match(r"::(error|warning) title=[^:,]*::", line)
        assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)


def test_a_title_cannot_end_its_command() -> None:
    line = ci_hosts.command("error", "a,b:c::d%\n", "e%\r\nf")
    assert line == "::error title=a%2Cb%3Ac%3A%3Ad%25%0A::e%25%0D%0Af"


def test_commands_are_off_while_the_words_of_a_candidate_are_printed() -> None:
    lines: list[str] = []
    with ci_hosts.commands_off(lines.append, on_host=True):
        lines.append("::error::no")
    assert lines[0].startswith("::stop-commands::")
    token = lines[0].removeprefix("::stop-commands::")
    assert len(token) == 32
    assert lines[1:] == ["::error::no", f"::{token}::"]
    quiet: list[str] = []
    with ci_hosts.commands_off(quiet.append, on_host=False):
        pass
    assert quiet == []


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_stay_words_in_the_summary(words: str) -> None:
    text = ci_hosts.step_summary(record_with(words, complaints=(words,)))
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    assert "<" not in outside
    assert "`" not in outside.replace("\\`", "")
    rows = [line for line in outside.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_a_summary_that_is_too_long_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ci_hosts.step_summary(record_with())
    monkeypatch.setattr(ci_hosts, "SUMMARY_BYTES_MAX", 300)
    text = ci_hosts.step_summary(record_with())
    assert len(text) < len(whole)
    assert text.endswith("The rest is in the report: there is more than a summary may hold.\n")
    assert "more than a summary may hold" not in whole


# The page.


class _Reader(HTMLParser):
    """Collects the elements, attributes and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read_page(record: VerdictFile) -> _Reader:
    """Return the page of a record as a browser would show it."""
    reader = _Reader(page(record).decode("utf-8"))
    assert reader.open == []
    return reader


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_only_words_on_the_page(words: str) -> None:
    plain, hostile = (
        read_page(record_with("m1")),
        read_page(record_with(words, complaints=(words,))),
    )
    extra = ["ul", "li"]
    assert sorted(hostile.tags) == sorted([*plain.tags, *extra])
    assert {name for name, _ in hostile.attributes} == {name for name, _ in plain.attributes}
    assert "".join(hostile.words).replace("\n", "").isprintable()


def test_the_page_needs_nothing_from_elsewhere() -> None:
    reader = read_page(record_with())
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    values = [value for name, value in reader.attributes if name in {"src", "href"}]
    assert values
    assert all(str(value).startswith("#") for value in values)
    assert "url(" not in page(record_with()).decode()


def test_the_page_shows_verdicts_sources_and_what_was_expected() -> None:
    words = " ".join(read_page(record_with()).words)
    for part in ("fifo-order", "Priority Queues, Priority Queues", "expected", "m1 to the get"):
        assert part in words
    assert "one channel: m1" in words
    assert "issue 17" not in words
    assert "issue 17" in " ".join(read_page(record_with(known=KNOWN)).words)


def test_links_of_the_page_lead_to_something() -> None:
    reader = read_page(record_with())
    anchors = {value for name, value in reader.attributes if name == "id"}
    links = {str(value)[1:] for name, value in reader.attributes if name == "href"}
    assert links
    assert links <= anchors


def test_a_page_of_nothing_says_so() -> None:
    empty: Any = verdict_file.verdict_file((), ExitStatus.INCONCLUSIVE, interrupted=True)
    assert "The run was interrupted" in " ".join(read_page(empty).words)

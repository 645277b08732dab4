"""SARIF 2.1.0, for hosts that show findings of static analysis: rules are requirements.

A result is a broken requirement of one candidate. Hosts need a file location for each: it is the
candidate's own file if its address names one, and the counterexample otherwise. A known failure is
a suppressed result. An inconclusive verdict is no result but a notification.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import quote

from brokerproof.checks.report.folders import place_of_counterexample
from brokerproof.checks.report.verdict_file import (
    CandidateRecord,
    VerdictFile,
    VerdictRecord,
    encoded,
)
from brokerproof.checks.search.counterexamples import (
    Counterexample,
    text_of_counterexample,
    texts_of_moves,
)
from brokerproof.checks.trace.moves import visible
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.requirements import Level
from brokerproof.version import HOME, __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

HELP = f"{HOME}/blob/main/docs/explanation/how-it-works.md#what-the-verdicts-mean"
"""The page that explains requirements and verdicts."""

SOURCES, REPORT = "%SRCROOT%", "REPORT"
"""The base of each address: the root of the sources, by the hosts' name for it, and this folder.

Neither has an address of its own, since no report holds a path of the machine.
"""

Json = dict[str, object]


def sarif(record: VerdictFile) -> bytes:
    """Return the content of `verdict.sarif`."""
    rules = {v.requirement: _rule(v) for c in record.candidates for v in c.verdicts}
    places = list(rules)
    run: Json = {
        "tool": {
            "driver": {
                "name": "brokerproof",
                "semanticVersion": _semantic(__version__),
                "version": __version__,
                "informationUri": HOME,
                "rules": list(rules.values()),
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            SOURCES: {"description": {"text": "The root of the checked sources."}},
            REPORT: {"description": {"text": "The folder of this report."}},
        },
        "invocations": [
            {
                "executionSuccessful": not record.interrupted,
                "exitCode": record.status,
                "toolExecutionNotifications": list(_notifications(record)),
            }
        ],
        "results": [
            _result(record, candidate, verdict, places.index(verdict.requirement))
            for candidate in record.candidates
            for verdict in candidate.verdicts
            if verdict.verdict is Outcome.BROKEN
        ],
    }
    return encoded({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _semantic(version: str) -> str:
    """Return a version of ours in semantic versioning."""
    return re.sub(r"\.(dev|a|b|rc)(\d+)$", r"-\1.\2", version)


def _rule(verdict: VerdictRecord) -> Json:
    sources = "; ".join(verdict.sources)
    return {
        "id": verdict.requirement,
        "shortDescription": {"text": verdict.statement},
        "fullDescription": {"text": f"{verdict.statement} Source: {sources}."},
        "helpUri": HELP,
        "help": {
            "text": f"`brokerproof requirements {verdict.requirement}` says when it is asked."
        },
        "defaultConfiguration": {"level": _level(verdict)},
        "properties": {"tags": [verdict.level.value]},
    }


def _level(verdict: VerdictRecord) -> str:
    return "error" if verdict.level is Level.MUST else "warning"


def _result(
    record: VerdictFile, candidate: CandidateRecord, verdict: VerdictRecord, place: int
) -> Json:
    found = verdict.counterexample
    text = visible(verdict.reason) if found is None else text_of_counterexample(found)
    identity = f"{candidate.candidate}\0{verdict.requirement}"
    file = _file(record, candidate, verdict)
    result: Json = {
        "ruleId": verdict.requirement,
        "ruleIndex": place,
        "kind": "fail",
        "level": _level(verdict),
        "message": {"text": f"{visible(candidate.candidate)}: {text}"},
        "locations": [{**_location(file), "logicalLocations": [_logical(candidate)]}],
        "partialFingerprints": {
            "candidateAndRequirement/v1": hashlib.sha256(identity.encode()).hexdigest()
        },
    }
    if found is not None and found.steps:
        flows: list[Json] = [{"locations": list(_flow(found, file))}]
        flows += _flows_of_threads(found, file)
        result["codeFlows"] = [{"threadFlows": flows}]
    if verdict.known is not None:
        until = f"{verdict.known.reason} (until {verdict.known.expires})"
        result["suppressions"] = [{"kind": "external", "justification": visible(until)}]
    return result


def _location(file: Json) -> Json:
    return {"physicalLocation": {"artifactLocation": file, "region": {"startLine": 1}}}


def _logical(candidate: CandidateRecord) -> Json:
    return {"fullyQualifiedName": visible(candidate.candidate), "kind": "module"}


def _file(record: VerdictFile, candidate: CandidateRecord, verdict: VerdictRecord) -> Json:
    """Return the file that a host shows for the result: the candidate's, or the counterexample."""
    path, _, factory = candidate.candidate.rpartition(":")
    if path.endswith(".py") and factory.isidentifier() and not path.startswith("/"):
        return {"uri": quote(PurePosixPath(path).as_posix()), "uriBaseId": SOURCES}
    several = len(record.candidates) > 1
    place = place_of_counterexample(candidate.candidate, verdict.requirement, several=several)
    return {"uri": quote(place), "uriBaseId": REPORT}


def _flow(found: Counterexample, file: Json) -> Iterator[Json]:
    steps = zip(texts_of_moves(found.steps), found.steps, strict=True)
    for number, (move, line) in enumerate(steps, 1):
        text = f"{number}. {move}: {visible(line.answered)}"
        yield {"location": {**_location(file), "message": {"text": text}}}
    ending = f"expected {visible(found.expected)}; seen {visible(found.seen)}"
    yield {"location": {**_location(file), "message": {"text": ending}}}


def _flows_of_threads(found: Counterexample, file: Json) -> Iterator[Json]:
    """Yield the steps of each thread, with their places in the order of all steps."""
    run = found.interleaved
    for name in () if run is None else run.threads:
        assert run is not None, "there are no threads without a run"
        locations = [
            {
                "executionOrder": number,
                "location": {**_location(file), "message": {"text": visible(str(access))}},
            }
            for number, access in enumerate(run.accesses, 1)
            if access.thread == name
        ]
        yield {"id": visible(name), "locations": locations}


def _notifications(record: VerdictFile) -> Iterator[Json]:
    for candidate in record.candidates:
        for verdict in candidate.verdicts:
            if verdict.verdict is Outcome.INCONCLUSIVE:
                text = f"{candidate.candidate}: {verdict.requirement}: {verdict.reason}"
                level = "warning" if verdict.counts_as == "inconclusive" else "note"
                yield {"level": level, "message": {"text": visible(text)}}
    for complaint in record.complaints:
        yield {"level": "error", "message": {"text": visible(complaint)}}

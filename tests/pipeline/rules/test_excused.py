"""What a recording leaves open is counted, under each requirement and by what left it open."""

from __future__ import annotations

from pathlib import Path

import click.testing
import pytest
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.results import Coverage
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.histories import Record
from tests.pipeline.plain_queues import Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, given, published, recorded, table_of
from tests.pipeline.rules.naive import accused
from tests.pipeline.rules.test_unanswered_gets import losses

DRAINED = recorded("drained", 900, 901)
CRASHED = [recorded("crash", 500, 501), recorded("restart", 502, 503)]
AUTOMATIC = recorded("consume", 1, 2, consumer="c", channel="ch", mode="automatic")
RETURNED = [
    published("m0", 1, 2),
    given("m0", 10, 11, redelivered=False),
    recorded("release", 20, 21, message="m0", consumer="c", position=0),
]
GIVEN = [published("m0", 1, 2), given("m0", 10, 11)]


def settled(outcome: str) -> Record:
    end = 21 if outcome == "ok" else None
    where = {"message": "m0", "consumer": "c", "position": 0}
    return recorded("acknowledge", 20, end, outcome=outcome, **where)


def queue(**more: object) -> Record:
    return recorded("declare", 0, 0, **more)


EXCUSED: dict[tuple[str, str], tuple[list[Record], list[Record]]] = {
    ("nothing-lost", "purges"): (losses(1, gets=0), [recorded("purge", 500, 501)]),
    ("nothing-lost", "deletions"): (losses(1, gets=0), [recorded("delete", 500, 501)]),
    ("nothing-lost", "crashes"): (losses(1, gets=0), CRASHED),
    ("nothing-lost", "queues that may drop messages"): (
        losses(1, gets=0)[1:],
        [queue(may_drop=True)],
    ),
    ("nothing-lost", "automatic consumers that left"): (
        [AUTOMATIC, *losses(1, gets=0)],
        [recorded("close", 500, 501, channel="ch")],
    ),
    ("nothing-lost", "gets without an answer"): (losses(1, gets=0), losses(0, gets=1)[1:-1]),
    ("survives-restart", "queues that were not found drained"): (
        [queue(durable=True), published("m0", 1, 2, persistent=True), *CRASHED],
        [],
    ),
    ("nothing-twice", "settlements without an answer"): (
        [*GIVEN, *CRASHED],
        [settled("unknown")],
    ),
    ("nothing-twice", "crashes"): (
        [published("m0", 1, 2), given("m0", 10, 11, mode="automatic")],
        CRASHED,
    ),
    ("redelivered-flag", "flags that were not recorded"): (
        RETURNED,
        [given("m0", 30, 31, subscriber="d")],
    ),
    ("redelivered-flag", "crashes"): (
        RETURNED,
        [*CRASHED, given("m0", 600, 601, subscriber="d", redelivered=True)],
    ),
    ("fifo-order", "publishes without an answer"): (
        [queue(), given("m0", 10, 11)],
        [recorded("publish", 1, None, message="m0", outcome="unknown")],
    ),
    ("priority-order", "publishes without an answer"): (
        [queue(levels=2), given("m0", 10, 11)],
        [recorded("publish", 1, None, message="m0", outcome="unknown")],
    ),
    ("fifo-order", "deliveries without a beginning"): (
        [queue(), published("m0", 1, 2)],
        [given("m0", 1, 11)],
    ),
    ("priority-order", "deliveries without a beginning"): (
        [queue(levels=2), published("m0", 1, 2)],
        [given("m0", 1, 11)],
    ),
    ("fifo-order", "deliveries that may be unrecorded"): (
        [queue(), replace(AUTOMATIC, mode="acknowledge"), published("m0", 1, 2)],
        [recorded("close", 500, 501, channel="ch"), given("m0", 600, 601, subscriber="d")],
    ),
    ("priority-order", "deliveries that may be unrecorded"): (
        [queue(levels=2), replace(AUTOMATIC, mode="acknowledge"), published("m0", 1, 2)],
        [recorded("close", 500, 501, channel="ch"), given("m0", 600, 601, subscriber="d")],
    ),
}
"""For each requirement and cause: records, and those that excuse the message."""


def test_a_settlement_before_a_crash_is_a_case_of_its_requirement() -> None:
    name = "settlement-survives-crash"
    for outcome, asked in (("ok", 1), ("unknown", 0)):
        found = coverage_of([*GIVEN, settled(outcome), *CRASHED])
        assert found.asked[name] == asked


def coverage_of(records: list[Record]) -> Coverage:
    return judged_alone(table_of(records)).coverage


@pytest.mark.parametrize(("requirement", "cause"), EXCUSED)
def test_what_a_recording_leaves_open_is_counted_by_its_cause(requirement: str, cause: str) -> None:
    records, because = EXCUSED[requirement, cause]
    found = coverage_of([*records, *because])
    assert found.asked[requirement] == 1
    assert found.excused[requirement] == {cause: 1}
    if because:
        assert cause not in coverage_of(records).excused.get(requirement, {})


@pytest.mark.parametrize(
    ("start", "others", "excused"),
    [
        (1, [], True),
        (2, [], False),
        (1, [recorded("consume", 1, 1, consumer="c", channel="ch", mode="acknowledge")], False),
    ],
)
def test_a_delivery_has_a_beginning_by_its_start_or_by_its_stream(
    start: int, others: list[Record], excused: bool
) -> None:
    found = coverage_of([queue(), *others, published("m0", 1, 2), given("m0", start, 11)])
    assert bool(found.excused.get("fifo-order")) == excused


def test_every_excuse_of_a_rule_is_shown() -> None:
    cases = [case for rule in RULES.values() for case in rule.cases]
    named = {(case.requirement, cause) for case in cases for cause in case.excused}
    by_losses = {cause for requirement, cause in named if requirement == "nothing-lost"}
    assert {
        pair for pair in named if pair[1] not in by_losses or pair[0] != "survives-restart"
    } == {pair for pair in EXCUSED if pair[1] != "gets without an answer"}


def test_no_more_is_excused_than_there_is() -> None:
    excused = set()
    for seed in range(150):
        happened = simulated(seed, Shape(unanswered=0.3)).happened
        found = coverage_of(blurred(happened, seed, 30, natural=True))
        for requirement, causes in found.excused.items():
            assert sum(causes.values()) <= found.asked[requirement], seed
            excused |= {(requirement, cause) for cause in causes}
    assert len(excused) > 10


def checked(records: list[Record], folder: Path, *words: str) -> click.testing.Result:
    path = folder / "night.jsonl"
    path.write_bytes(b"".join(lines_of(records)))
    arguments = ["trace", "check", str(path), "--report", str(folder / "report"), *words]
    return click.testing.CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(("purged", "later", "status"), [(1, 2, 0), (1, 1, 0), (2, 1, 3)])
def test_what_is_excused_for_the_most_part_is_not_kept(
    purged: int, later: int, status: int, tmp_path: Path
) -> None:
    records = [*losses(purged, gets=0), recorded("purge", 500, 501)]
    for number in range(later):
        records += [
            published(f"n{number}", 600 + number, 600 + number),
            given(f"n{number}", 700, 700, position=number, mode="automatic"),
        ]
    result = checked(records, tmp_path)
    assert f"{purged} of {purged + later} excused: {purged} by purges" in result.output
    assert ("most of it was excused" in result.output) == (status == 3)
    assert result.exit_code == status, result.output
    assert checked(records, tmp_path, "--accept-inconclusive").exit_code == 0


def test_settlements_without_an_answer_are_counted(tmp_path: Path) -> None:
    records = [*GIVEN, settled("unknown")]
    assert "1 of 1 settlements had no answer" in checked(records, tmp_path).output
    assert "had no answer" not in checked([*GIVEN, settled("ok")], tmp_path).output


@pytest.mark.parametrize(
    ("crashes", "broken"), [("ok", {"fifo-order"}), ("unknown", set()), (None, set())]
)
def test_a_close_without_an_answer_leaves_the_order_open_until_a_certain_crash(
    crashes: str | None, broken: set[str]
) -> None:
    records = [
        recorded("declare", 0, 1, durable=True),
        recorded("consume", 2, 3, consumer="a", channel="ch", mode="acknowledge"),
        recorded("close", 4, None, channel="ch", outcome="unknown"),
        *(published(f"m{n}", start, start + 1) for n, start in enumerate((20, 30))),
        given("m1", 50, 51, subscriber="b"),
        given("m0", 60, 61, subscriber="b", position=1),
    ]
    if crashes is not None:
        end = 7 if crashes == "ok" else None
        records.append(recorded("crash", 6, end, outcome=crashes))
        records.append(recorded("restart", 8, 9))
    assert accused(records) == broken

"""Messages that wait too long for a consumer that is free, and those of which that is not sure."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click.testing
import pytest
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import given, recorded, table_of
from tests.pipeline.rules.naive import judged_naively
from tests.pipeline.rules.naive_violations import Violation
from tests.pipeline.rules.test_kernels_agree import recording

BOUND = 50
PUBLISHED = Record(op="publish", queue="q", message="a", start=9, end=10)
LAST = Record(op="drained", queue="another", start=100, end=101)


def consumer(
    name: str = "c",
    *,
    window: int | None = None,
    mode: Literal["acknowledge", "automatic", "browse"] = "acknowledge",
    selective: bool = False,
    start: int = 0,
) -> Record:
    return recorded(
        "consume",
        start,
        start + 1,
        consumer=name,
        channel=f"channel of {name}",
        window=window,
        mode=mode,
        selective=selective,
    )


def settled(message: str, start: int, end: int, *, position: int = 0) -> Record:
    return recorded("acknowledge", start, end, message=message, consumer="c", position=position)


def stalled(*records: Record, bound: int | None = BOUND) -> list[tuple[str, str | None, int, int]]:
    """Return which messages were stalled, for whom, and when."""
    history = [Record(op="declare", queue="q", start=0, end=0), *records]
    table = table_of(history)
    found = judged_alone(table, stalled_after=bound).violations.to_pylist()
    rows = {Violation(**row) for row in found}
    assert rows == judged_naively(history, stalled_after=bound)
    assert {each.rule for each in rows} <= {"stalled"}
    return sorted((e.message, e.witness, e.late_start, e.late_end) for e in rows)


BEFORE = Record(op="publish", queue="q", message="b", start=2, end=3)
HELD = (BEFORE, given("b", 3, 5), consumer(window=1), PUBLISHED, LAST)
"""What was given before fills the window of the consumer."""

STALLED: dict[str, tuple[list[Record], tuple[str, str, int, int]]] = {
    "no consumer is given it": ([consumer(), PUBLISHED, LAST], ("a", "c", 10, 100)),
    "the consumer comes later": ([PUBLISHED, consumer(start=30), LAST], ("a", "c", 31, 100)),
    "the consumer has room again": ([*HELD, settled("b", 20, 22)], ("a", "c", 22, 100)),
    "the consumer may have left": (
        [consumer(), PUBLISHED, Record(op="cancel", consumer="c", start=61, end=62), LAST],
        ("a", "c", 10, 61),
    ),
    "it goes to that consumer too late": (
        [consumer(), PUBLISHED, given("a", 1, 90), LAST],
        ("a", "c", 10, 90),
    ),
    "another consumer came for it later": (
        [consumer(), PUBLISHED, consumer("d", start=70), given("a", 70, 71, subscriber="d"), LAST],
        ("a", "c", 10, 70),
    ),
    "it returned, and waits again": (
        [
            *(consumer(window=2), PUBLISHED, given("a", 1, 12), LAST),
            replace(settled("a", 20, 25), op="release"),
        ],
        ("a", "c", 25, 100),
    ),
}
"""Histories of one message that is stalled, the witness, and when."""


@pytest.mark.parametrize("why", STALLED)
def test_what_waits_too_long_is_told(why: str) -> None:
    records, expected = STALLED[why]
    assert stalled(*records) == [expected]
    exactly = expected[3] - expected[2]
    assert stalled(*records, bound=exactly - 1) == [expected]
    assert stalled(*records, bound=exactly) == []
    assert stalled(*records, bound=None) == []


SPARED: dict[str, list[Record]] = {
    "it may have been with another": [
        *(consumer(), PUBLISHED, given("a", 2, 90, subscriber="a get"), LAST),
    ],
    "the window is full": [*HELD],
    "the settlement may not have happened": [
        *HELD,
        replace(settled("b", 20, 22), outcome="unknown", end=None),
    ],
    "the consumer leaves": [
        *(consumer(), PUBLISHED, LAST),
        Record(op="cancel", consumer="c", start=40, end=41),
    ],
    "the consumer's channel may close": [
        *(consumer(), PUBLISHED, LAST),
        Record(op="close", channel="channel of c", start=40, outcome="unknown"),
    ],
    "the consumer selects": [consumer(selective=True), PUBLISHED, LAST],
    "the consumer only looks": [consumer(mode="browse"), PUBLISHED, LAST],
    "the consumer may have been given something else": [
        *(consumer(), replace(BEFORE, start=8, end=9), PUBLISHED, given("b", 1, 55), LAST),
    ],
    "the subscription had no answer": [
        replace(consumer(), outcome="unknown", end=None),
        PUBLISHED,
        LAST,
    ],
    "the publish had no answer": [
        consumer(),
        replace(PUBLISHED, outcome="unknown", end=None),
        LAST,
    ],
    "its queue was purged": [
        *(consumer(), PUBLISHED, LAST),
        Record(op="purge", queue="q", start=50, end=51),
    ],
    "a delivery to the consumer is missing": [
        *(consumer(), BEFORE, PUBLISHED, given("b", 3, 5, position=1), LAST),
    ],
    "the name of the consumer comes again": [
        *(consumer(), PUBLISHED, LAST),
        Record(op="cancel", consumer="c", channel="channel of c", start=12, end=13),
        consumer(start=15),
    ],
}
"""Histories in which nothing is stalled for certain."""


@pytest.mark.parametrize("why", SPARED)
def test_what_may_have_been_elsewhere_is_spared(why: str) -> None:
    assert stalled(*SPARED[why]) == []


def test_what_is_behind_others_waits_for_the_same_consumer() -> None:
    found = stalled(consumer(), BEFORE, PUBLISHED, LAST)
    assert found == [("a", "c", 10, 100), ("b", "c", 3, 100)]
    served = given("b", 95, 96, subscriber="d")
    assert stalled(consumer(), BEFORE, PUBLISHED, consumer("d", start=95), served, LAST) == [
        ("a", "c", 10, 100),
        ("b", "c", 3, 95),
    ]


def test_kernels_and_naive_evaluator_agree_on_stalls() -> None:
    told = 0
    for bound in (0, 20, 60, 200):
        histories = {f"r{seed}": recording(seed)[0] for seed in range(bound, bound + 40)}
        rows = [replace(each, run=run) for run, records in histories.items() for each in records]
        naive = {
            violation
            for run in histories
            for violation in judged_naively([e for e in rows if e.run == run], None, bound)
        }
        table = table_of(rows)
        kernels = judged_alone(table, stalled_after=bound).violations.to_pylist()
        assert {Violation(**row) for row in kernels} == naive
        told += sum(each.rule == "stalled" for each in naive)
    assert told > 20


def checked(path: Path, *options: str) -> click.testing.Result:
    arguments = ["trace", "check", str(path), "--report", str(path.parent / "report")]
    return click.testing.CliRunner().invoke(main, [*arguments, "--engine", "alone", *options])


def test_the_command_says_it_where_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    declared = Record(op="declare", queue="q", start=0, end=0)
    path.write_bytes(b"".join(lines_of([declared, consumer(), PUBLISHED, LAST])))
    said = checked(path, "--stalled-after", "50ns")
    assert said.exit_code == 1, said.output
    assert "a to be given to c within the time that was set" in " ".join(said.output.split())
    # What is written about it is a history that shows the same.
    witness = tmp_path / "report" / "witnesses" / "quiescence.jsonl"
    again = tmp_path / "again.jsonl"
    witness.rename(again)
    assert checked(again, "--stalled-after", "50ns").exit_code == 1
    assert "quiescence" not in checked(path).output
    assert checked(path, "--stalled-after", "1us").exit_code == 0
    only = checked(path, "--stalled-after", "1us", "--only", "quiescence")
    assert only.exit_code == 0
    assert "quiescence" in only.output


@pytest.mark.parametrize("words", ["soon", "5 fortnights", "-1s", "99999999999999999999s", ""])
def test_what_is_no_duration_is_refused_in_one_line(words: str, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(lines_of([PUBLISHED])))
    said = checked(path, f"--stalled-after={words}")
    assert said.exit_code == 2
    assert "Traceback" not in said.output
    assert "--stalled-after" in said.output

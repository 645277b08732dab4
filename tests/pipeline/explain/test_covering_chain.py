"""Covering chains of waiting messages: records that they make wrong, and sound ones."""

from __future__ import annotations

from pathlib import Path

import click.testing
import numpy as np
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search import counterexamples
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.dominance import Early, Late, overtaken_by_a_chain
from brokerproof.pipeline.explain.covering_chain import covering_chain_of, fewest
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.tables import write
from brokerproof.spec.histories import Record
from brokerproof.spec.requirements import catalogue
from tests.pipeline.covering_chains import history_of_a_chain
from tests.pipeline.parts.test_slices import judged_in_slices
from tests.pipeline.recorders import table_of
from tests.pipeline.rules.brute_force import can_be_explained
from tests.pipeline.rules.naive import judged_naively


def of_a_chain(*, urgent: bool, left_by: int = 20, returned: bool = False) -> list[Record]:
    """Let b come as late as 19 at the latest, and a, c and d take their turns before and after it.

    What is asked for is so within (5, 50): a get, or a delivery of what is less urgent.
    """
    times = {"a": (1, 2, 10), "b": (3, 9, left_by), "c": (15, 19, 40), "d": (30, 39, 60)}
    records = [Record(op="declare", queue="q", start=0, end=0, levels=3 if urgent else None)]
    for name, (start, end, left) in times.items():
        subscriber = {
            "queue": "q",
            "message": name,
            "consumer": f"subscriber of {name}",
            "position": 0,
        }
        records += [
            Record(op="publish", queue="q", message=name, priority=2, start=start, end=end),
            Record(op="deliver", start=left, end=left + 5, **subscriber),  # type: ignore[arg-type]
        ]
    if returned:
        subscriber = {"queue": "q", "message": "c", "consumer": "subscriber of c", "position": 0}
        records.append(Record(op="release", start=70, end=71, **subscriber))  # type: ignore[arg-type]
    if not urgent:
        return [*records, Record(op="empty", queue="q", consumer="g", start=5, end=50)]
    return [
        *records,
        Record(op="publish", queue="q", message="less", priority=0, start=0, end=1),
        Record(op="deliver", queue="q", message="less", consumer="e", position=0, start=5, end=50),
    ]


def of_turns_while_drained(left_by: int = 20) -> list[Record]:
    records = of_a_chain(urgent=False, left_by=left_by)[:-1]
    return [*records, Record(op="drained", queue="q", start=5, end=50)]


def test_a_queue_that_always_had_one_was_never_drained() -> None:
    records = of_turns_while_drained()
    assert not can_be_explained(records)
    [found] = judged_alone(table_of(records)).violations.to_pylist()
    assert (found["rule"], found["requirement"]) == ("left-behind-of-several", "nothing-lost")
    assert {each.rule for each in judged_naively(records)} == {"left-behind-of-several"}
    records = of_turns_while_drained(left_by=19)
    assert can_be_explained(records)
    assert judged_alone(table_of(records)).violations.num_rows == 0


RULES_BY_URGENCY = [
    (False, "found-nothing-of-several", "get-finds"),
    (True, "overtakes-some-that-wait", "priority-order"),
]


@pytest.mark.parametrize(("urgent", "rule", "requirement"), RULES_BY_URGENCY)
def test_some_were_there_at_each_moment(urgent: bool, rule: str, requirement: str) -> None:
    records = of_a_chain(urgent=urgent)
    assert not can_be_explained(records)
    [found] = judged_alone(table_of(records)).violations.to_pylist()
    assert (found["rule"], found["requirement"], found["witness"]) == (rule, requirement, "d")
    assert (found["early_start"], found["early_end"]) == (2, 60)
    assert {each.rule for each in judged_naively(records)} == {rule}


@pytest.mark.parametrize(("urgent", "rule", "requirement"), RULES_BY_URGENCY)
def test_one_moment_without_any_spares_it(urgent: bool, rule: str, requirement: str) -> None:
    """What left at 19 may have left before c came at 19."""
    assert rule
    assert requirement
    records = of_a_chain(urgent=urgent, left_by=19)
    assert can_be_explained(records)
    assert judged_alone(table_of(records)).violations.num_rows == 0
    assert judged_naively(records) == set()


@pytest.mark.parametrize(("urgent", "rule", "requirement"), RULES_BY_URGENCY)
def test_the_fewest_that_fill_the_span_are_named(
    urgent: bool, rule: str, requirement: str, tmp_path: Path
) -> None:
    """A message that was there all along its neighbour's turn is not needed."""
    needless = Record(op="publish", queue="q", message="e", priority=2, start=31, end=38)
    taken = Record(op="deliver", queue="q", message="e", consumer="f", position=0, start=45, end=46)
    other = Record(op="publish", queue="r", message="z", priority=2, start=0, end=0)
    records = [*of_a_chain(urgent=urgent), needless, taken, other]
    write(tmp_path / "part.parquet", records)
    table = judged_alone(table_of(records)).violations
    [row] = table.filter(pc.equal(table.column("rule"), rule)).to_pylist()
    assert row["requirement"] == requirement
    turns = covering_chain_of(Violation.of(row), [tmp_path / "part.parquet"], NOTHING_SAID)
    assert turns == ("a", "b", "c", "d")


def test_what_is_written_about_turns_breaks_the_same(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(lines_of(of_a_chain(urgent=False))))
    first = checked(path, tmp_path / "first")
    assert first.exit_code == 1
    assert "from 2 on there always was one: a, then b, then c, then d" in first.output.replace(
        "\n", " "
    )
    written = tmp_path / "first" / "witnesses" / "get-finds.jsonl"
    assert checked(written, tmp_path / "again").exit_code == 1
    [about] = (tmp_path / "first" / "counterexamples").glob("*.json")
    found = counterexamples.read(about)
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    assert found.witnesses == ("g at 5", "a", "b", "c", "d")


def checked(path: Path, report: Path) -> click.testing.Result:
    arguments = ["trace", "check", str(path), "--report", str(report), "--engine", "alone"]
    return click.testing.CliRunner().invoke(main, arguments)


def test_no_choice_of_fewer_fills_a_span() -> None:
    draw = np.random.default_rng(3)
    for _ in range(300):
        size = int(draw.integers(1, 8))
        key = draw.integers(0, 20, size)
        early = Early(np.zeros(size, dtype=np.int64), key, key + draw.integers(1, 9, size))
        start = int(draw.integers(1, 12))
        end = start + int(draw.integers(0, 10))
        chosen = list(fewest(early, start, end))
        sizes = [
            some.bit_count()
            for some in range(1 << size)
            if all(
                any(some >> n & 1 and early.key[n] < t < early.value[n] for n in range(size))
                for t in range(start, end + 1)
            )
        ]
        assert len(chosen) == min(sizes, default=0)
        late = Late(np.zeros(1, dtype=np.int64), np.array([start]), np.array([end]))
        assert (overtaken_by_a_chain(early, late)[0][0] >= 0) == bool(sizes)


def test_kernels_naive_evaluator_and_slices_agree_on_turns() -> None:
    failed = 0
    for seed in range(0, 80, 10):
        several = {f"r{each}": history_of_a_chain(each) for each in range(seed, seed + 10)}
        naive = set()
        records = []
        for run, history in several.items():
            of_run = [_of_run(each, run) for each in history]
            naive |= {tuple(each) for each in judged_naively(of_run)}
            records += of_run
        whole = judged_alone(table_of(records)).violations
        assert {tuple(each.values()) for each in whole.to_pylist()} == naive
        in_slices, failing = judged_in_slices(table_of(records), seed)
        assert in_slices.to_pylist() == whole.to_pylist()
        failed += failing
    assert failed > 40


def _of_run(record: Record, run: str) -> Record:
    return replace(record, run=run)


def test_turns_are_accused_of_nothing_that_can_be_explained() -> None:
    rules = set()
    for seed in range(40):
        records = history_of_a_chain(seed)
        found = judged_naively(records)
        assert not (found and can_be_explained(records))
        rules |= {each.rule for each in found}
    assert rules >= {each.name for each in RULES.values() if each.each_moment}

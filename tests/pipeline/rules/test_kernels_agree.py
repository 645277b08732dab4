"""The column kernels and the naive evaluator say the same of every history, witness and all.

As a program it asks that of as many random histories as one likes::

    python tests/pipeline/rules/test_kernels_agree.py --histories 50000
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from msgspec.structs import replace

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.tables import batch_of
from tests.pipeline.altered import CLASSES, altered_history
from tests.pipeline.covering_chains import history_of_a_chain
from tests.pipeline.plain_queues import BROKEN_BY, Fault, Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, sharp
from tests.pipeline.rules.dense import dense_history
from tests.pipeline.rules.naive import judged_naively
from tests.pipeline.rules.naive_violations import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from brokerproof.spec.histories import Record

FAULTS: tuple[Fault | None, ...] = (None, *BROKEN_BY)
WIDTHS = (0, 5, 30, 100, 400)
CHUNK = 250


def judged(records: Sequence[Record], places: Sequence[int]) -> set[Violation]:
    """Return what the kernels say."""
    table = pa.Table.from_batches([batch_of(records, places)])
    return {Violation(**row) for row in judged_alone(table).violations.to_pylist()}


def recording(seed: int) -> tuple[list[Record], bool]:
    """Return a random recording, and whether it is of a sound queue."""
    if seed % 10 == 9:
        return history_of_a_chain(seed), False
    chance = random.Random(seed)  # noqa: S311
    if chance.random() < 0.4:
        small = chance.choice((altered_history, dense_history))
        records = small(seed, chance.choice(list(CLASSES.values())))
        if records is not None:
            return records, False
    fault = chance.choice(FAULTS) if chance.random() < 0.7 else None
    simulation = simulated(seed, Shape(queues=chance.choice((1, 1, 2))), fault)
    natural, width = chance.random() < 0.5, chance.choice(WIDTHS)
    records = blurred(simulation.happened, seed, width, natural=natural)
    return records, fault is None or not simulation.planted


def of_run(records: Sequence[Record], run: str) -> list[Record]:
    """Return the same records as those of a run."""
    return [replace(each, run=run) for each in records]


def disagreements(seeds: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the verdicts on recordings, many judged at once as runs of theirs.

    The rows of all of them are shuffled; each is judged naively by itself, in its own order.
    """
    rows: list[tuple[int, Record]] = []
    naive: dict[str, set[Violation]] = {}
    sound = set()
    for seed in seeds:
        records, is_sound = recording(seed)
        records = of_run(records, f"run {seed}")
        naive[f"run {seed}"] = judged_naively(records)
        rows += enumerate(records, start=len(rows))
        if is_sound:
            sound.add(f"run {seed}")
    random.Random(seeds[0]).shuffle(rows)  # noqa: S311  # noqa: S311
    found: dict[str, set[Violation]] = {run: set() for run in naive}
    for each in judged([record for _, record in rows], [place for place, _ in rows]):
        found[each.run].add(each)
    for run, violations in naive.items():
        if found[run] != violations:
            only = found[run] - violations, violations - found[run]
            yield f"{run}: the kernels alone say {only[0]}, the naive evaluator alone {only[1]}"
        if run in sound and violations:
            yield f"{run}: a sound queue is accused of {violations}"


def test_kernels_and_naive_evaluator_agree_on_600_histories() -> None:
    wrong = [
        each for seed in range(0, 600, CHUNK) for each in disagreements(range(seed, seed + CHUNK))
    ]
    assert wrong == []


def test_a_history_by_itself_is_judged_as_among_others() -> None:
    for seed in range(60):
        records, _ = recording(seed)
        assert judged(records, range(len(records))) == judged_naively(records)


def test_a_disagreement_would_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.judged_naively", lambda _: set())
    assert any("the kernels alone say" in each for each in disagreements(range(20)))


def test_rows_may_stand_in_any_order() -> None:
    for seed in range(30):
        records, _ = recording(seed)
        expected = judged(records, range(len(records)))
        rows = list(enumerate(records))
        random.Random(seed).shuffle(rows)  # noqa: S311  # noqa: S311
        assert judged([each for _, each in rows], [place for place, _ in rows]) == expected


SEEDS_MAX = 400
"""So many runs of a fault are tried until it has been found."""


@pytest.mark.parametrize("fault", BROKEN_BY)
def test_a_planted_fault_is_found_under_its_name(fault: Fault) -> None:
    """The same run without the fault is right, and so is a run in which it had no occasion."""
    for seed in range(SEEDS_MAX):
        simulation = simulated(seed, Shape(), fault)
        violations = judged_naively(sharp(simulation.happened))
        if not simulation.planted:
            assert violations == set()
            continue
        if BROKEN_BY[fault] in {each.requirement for each in violations}:
            assert judged_naively(sharp(simulated(seed, Shape()).happened)) == set()
            return
    pytest.fail(f"{fault} was not found in {SEEDS_MAX} runs")


@pytest.mark.thorough
def test_every_rule_finds_a_planted_fault() -> None:
    # How long is too long is a user's to say: `test_stalls.py`.
    missing = set(RULES) - {"stalled"}
    for seed in range(SEEDS_MAX):
        if not missing:
            break
        missing -= {each.rule for each in judged_naively(history_of_a_chain(seed))}
        beside_gets = simulated(seed, Shape(unanswered=0.3), "loses").happened
        missing -= {each.rule for each in judged_naively(sharp(beside_gets))}
        for fault in BROKEN_BY:
            simulation = simulated(seed, Shape(), fault)
            if simulation.planted:
                missing -= {each.rule for each in judged_naively(sharp(simulation.happened))}
    assert missing == set()


def table_of_faults(seeds: int) -> Iterator[str]:
    """Yield for each fault which rules found it in how many of the runs that had it."""
    yield f"{'fault':26}{'requirement':24}{'planted':>8}{'found':>7}{'blurred':>8}  rules"
    for fault, requirement in BROKEN_BY.items():
        planted = found = found_blurred = 0
        rules: Counter[str] = Counter()
        for seed in range(seeds):
            simulation = simulated(seed, Shape(), fault)
            if not simulation.planted:
                continue
            planted += 1
            told = judged_naively(sharp(simulation.happened))
            by = {each.rule for each in told if each.requirement == requirement}
            rules.update(by)
            found += bool(by)
            told = judged_naively(blurred(simulation.happened, seed, 20, natural=True))
            found_blurred += requirement in {each.requirement for each in told}
        names = ", ".join(rule for rule, _ in rules.most_common())
        yield f"{fault:26}{requirement:24}{planted:8}{found:7}{found_blurred:8}  {names}"


def main() -> int:
    """Compare as many histories as asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=50_000)
    parser.add_argument("--faults", type=int, default=300, help="seeds for the table of faults")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    wrong = 0
    for seed in range(asked.first, asked.first + asked.histories, CHUNK):
        until = min(seed + CHUNK, asked.first + asked.histories)
        for each in disagreements(range(seed, until)):
            wrong += 1
            print(each)  # noqa: T201
    print(f"{asked.histories} histories, {wrong} disagreements")  # noqa: T201
    for line in table_of_faults(asked.faults):
        print(line)  # noqa: T201
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""The hunt for a race: rounds until one breaks a requirement, then ever smaller rounds that do.

Owns how many rounds are played, in which shapes, and how often a finding is repeated. Rounds are
judged in batches, by the rules on histories; every record is passed on. Limits: rounds and seconds
of the search, rounds and seconds of each smaller shape.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.rounds.clients import Fault
from brokerproof.pipeline.rounds.rounds import Round, Rounds
from brokerproof.pipeline.rounds.shape import Shape
from brokerproof.pipeline.tables import batch_of
from brokerproof.spec.histories import Record

BATCH_ROUNDS: Final = 100
BATCH_S: Final = 1.0
"""A batch is judged when it has so many rounds, or took so long."""

TRIED_MIN: Final = 50
TRIED_FOR_EACH: Final = 4
"""A smaller shape is tried in so many times the rounds that the finding took, and `TRIED_MIN`."""

TRIED_S: Final = 4.0
CUT_S: Final = 20.0
"""The seconds for one smaller shape, and for all of them."""

SEEN_AGAIN: Final = 2
"""A smaller shape is taken once so many of its rounds show the finding: not if that is rare."""

REPEATED_ROUNDS: Final = 500
REPEATED_S: Final = 5.0
"""The finding is repeated in so many rounds of the smallest shape."""


NAMED_FIRST: Final = ("nothing-invented", "nothing-twice", "nothing-lost")
"""Of several requirements that one round breaks, these are named: they explain the others.

A message that two clients were given, and that one of them settled, looks lost to the other.
"""


class Limits(NamedTuple):
    """The limits of the search: rounds, kills among them, and seconds."""

    rounds: int
    kills: int = 0
    seconds: float | None = None


class Progress(NamedTuple):
    """The progress of a hunt."""

    doing: str
    rounds: int


@dataclass
class Finding:
    """A requirement that a round broke, and how often rounds of the smallest shape break it.

    `after` is the number of rounds until then; `run` names the smallest round.
    """

    requirement: str
    after: int
    shape: Shape
    run: str
    kills: bool
    seen: int = 0
    of: int = 0


@dataclass
class Hunt:
    """One search; `records` makes it go on."""

    rounds: Rounds
    shape: Shape
    limits: Limits
    stop_asked: Callable[[], bool] = lambda: False
    told: Callable[[Progress], None] = lambda _: None
    finding: Finding | None = None
    interrupted: bool = False
    hangs: bool = False
    faults: dict[Fault, int] = field(default_factory=dict)
    searched: int = 0

    def records(self) -> Iterator[Record]:
        """Play and judge; yield the records of all rounds, in the order of the rounds."""
        with self.rounds.open():
            yield from self._search()
            if self.finding is not None and not self.hangs:
                yield from self._cut(self.finding)
                yield from self._repeat(self.finding)

    def _search(self) -> Iterator[Record]:
        begun = time.monotonic()
        draw = random.Random(f"{self.rounds.seed} kills")  # noqa: S311 - load, not secrets
        # The first round shows how long one takes, so that a kill comes within it.
        kills = frozenset(draw.sample(range(1, self.limits.rounds + 1), self.limits.kills))
        while self.finding is None and self.searched < self.limits.rounds and not self._ends():
            left = self.limits.seconds and begun + self.limits.seconds - time.monotonic()
            if left is not None and left <= 0:
                return
            count = min(BATCH_ROUNDS, self.limits.rounds - self.searched)
            batch = self._batch("searching", self.shape, count, left or BATCH_S, kills)
            self.searched += len(batch)
            yield from _records_of(batch)
            self._note(batch, kills)

    def _note(self, batch: Sequence[Round], kills: frozenset[int]) -> None:
        found = broken(batch)
        for fault, run in ((each, played.run) for played in batch for each in played.faults):
            if run in found.get(fault.requirement, ()):
                self.faults[fault] = self.faults.get(fault, 0) + 1
        for requirement, runs in sorted(found.items(), key=lambda each: _rank(each[0])):
            places = [place for place, each in enumerate(batch) if each.run in runs]
            after = self.searched - len(batch) + places[0] + 1
            if self.finding is None or after < self.finding.after:
                run = batch[places[0]].run
                self.finding = Finding(requirement, after, self.shape, run, after - 1 in kills)

    def _cut(self, finding: Finding) -> Iterator[Record]:
        """Look for the finding in smaller shapes, until none of them shows it twice."""
        until = time.monotonic() + CUT_S
        rounds = max(TRIED_MIN, TRIED_FOR_EACH * finding.after)
        smaller = iter(finding.shape.smaller())
        while (shape := next(smaller, None)) is not None and time.monotonic() < until:
            tried, end = 0, time.monotonic() + TRIED_S
            seen: list[Round] = []
            while tried < rounds and time.monotonic() < end and not self._ends():
                count = min(BATCH_ROUNDS, rounds - tried)
                batch = self._batch("cutting", shape, count, BATCH_S, finding.kills)
                tried += len(batch)
                yield from _records_of(batch)
                runs = broken(batch).get(finding.requirement, ())
                seen += [each for each in batch if each.run in runs]
                if len(seen) >= SEEN_AGAIN:
                    finding.shape = shape
                    finding.run = min(seen, key=lambda each: len(each.records)).run
                    smaller = iter(shape.smaller())
                    break

    def _repeat(self, finding: Finding) -> Iterator[Record]:
        until = time.monotonic() + REPEATED_S
        while finding.of < REPEATED_ROUNDS and time.monotonic() < until and not self._ends():
            batch = self._batch("repeating", finding.shape, BATCH_ROUNDS, BATCH_S, finding.kills)
            yield from _records_of(batch)
            finding.of += len(batch)
            finding.seen += len(broken(batch).get(finding.requirement, ()))

    def _batch(
        self,
        doing: str,
        shape: Shape,
        count: int,
        seconds: float,
        kills: frozenset[int] | bool,
    ) -> list[Round]:
        """Play rounds of a shape, at least one; `kills` are those with a kill, or all, or none."""
        batch: list[Round] = []
        until = time.monotonic() + min(seconds, BATCH_S)
        while len(batch) < count and not self._ends() and (not batch or time.monotonic() < until):
            has_kill = kills if isinstance(kills, bool) else self.searched + len(batch) in kills
            batch.append(self.rounds.play(shape, kills=has_kill))
            self.hangs = batch[-1].hangs
            self.told(Progress(doing, self.rounds.played))
        return batch

    def _ends(self) -> bool:
        self.interrupted = self.interrupted or self.stop_asked()
        return self.interrupted or self.hangs


def _rank(requirement: str) -> tuple[int, str]:
    named_first = (*NAMED_FIRST, requirement)
    return named_first.index(requirement), requirement


def broken(batch: Sequence[Round]) -> dict[str, frozenset[str]]:
    """Return the runs that break each requirement, by their history or by a faulty answer.

    A faulty answer counts if the history of its run breaks nothing: it may be a consequence.
    """
    found: dict[str, set[str]] = {}
    records = list(_records_of(batch))
    if records:
        table = pa.Table.from_batches([batch_of(records, range(1, len(records) + 1))])
        violations = judged_alone(table).violations
        for requirement, run in zip(
            violations.column("requirement").to_pylist(),
            violations.column("run").to_pylist(),
            strict=True,
        ):
            found.setdefault(requirement, set()).add(run)
    explained = {run for runs in found.values() for run in runs}
    for each in batch:
        for fault in each.faults if each.run not in explained else ():
            found.setdefault(fault.requirement, set()).add(each.run)
    return {requirement: frozenset(runs) for requirement, runs in found.items()}


def _records_of(batch: Sequence[Round]) -> Iterator[Record]:
    for each in batch:
        yield from each.records

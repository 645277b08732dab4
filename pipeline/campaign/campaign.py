"""A campaign: many seeds of the gate's stateful stage, spread over Spark's workers.

The search of the scopes does not depend on a seed and is done once. It comes first, since it shows
whether the candidate is deterministic. Each part is a Spark job with a single task: a worker that
dies loses one part only, and each result is available at once. Results are put in the order of
their seeds before they are combined, so the verdicts do not depend on the number of workers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from brokerproof.checks.gate.gate import snapshot_stage
from brokerproof.checks.gate.gate_run import Report, Stage
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.search.searches import Grade
from brokerproof.checks.verdicts import Evidence, Outcome, Verdict, judge
from brokerproof.pipeline.campaign import histories as campaign_histories
from brokerproof.pipeline.campaign.coverage import Coverage, coverage, in_one_line
from brokerproof.pipeline.campaign.seed import Found, Part, in_a_process
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.requirements import Level, Requirement, catalogue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S: Final = 0.2
"""The interval in seconds at which Ctrl-C is checked."""

NAMED_MAX: Final = 10
"""The largest number of seeds that a message names."""


@dataclass(frozen=True)
class Plan:
    """The work of a campaign on a candidate."""

    candidate: str
    first: int
    seeds: int
    operations: int
    examples: int
    limit_s: float
    folder: str

    @property
    def all_seeds(self) -> range:
        """The seeds, in order."""
        return range(self.first, self.first + self.seeds)

    def part(self, seed: int | None, grade: Grade = "sequences") -> Part:
        """Return the part of one seed, or, for None, the part that depends on no seed."""
        return Part(
            candidate=self.candidate,
            seed=seed,
            operations=self.operations,
            examples=self.examples,
            limit_s=self.limit_s,
            grade=grade,
            folder=self.folder,
        )


@dataclass
class Gathered:
    """The results of a campaign so far; histories are written to a folder at once."""

    plan: Plan
    histories: Path
    scopes: Found | None = None
    seeds: dict[int, Found] = field(default_factory=dict)
    interrupted: bool = False

    def take(self, found: Found, history: bytes) -> None:
        """Record the result of a part."""
        if found.seed is None:
            self.scopes = found
            return
        self.seeds[found.seed] = found
        if history:
            self.histories.mkdir(parents=True, exist_ok=True)
            path = self.histories / campaign_histories.file_of(found.seed)
            unfinished = path.with_name(f".{path.name}.unfinished")
            unfinished.write_bytes(history)
            unfinished.replace(path)

    @property
    def parts(self) -> list[Found]:
        """All results: first the one that depends on no seed, then by seed."""
        of_scopes = [] if self.scopes is None else [self.scopes]
        return of_scopes + [self.seeds[seed] for seed in sorted(self.seeds)]

    @property
    def failing(self) -> list[int]:
        """The seeds that have broken a MUST, in order."""
        musts = {name for name, each in catalogue().items() if each.level is Level.MUST}
        return sorted(seed for seed, found in self.seeds.items() if musts & found.broken.keys())

    def evidence(self) -> Evidence:
        """Return the evidence of all parts together, as of one run of the gate."""
        evidence = Evidence(cut_short=self._cut_short())
        for found in self.parts:
            evidence.exercised.update(found.exercised)
            evidence.outcomes.update({(a, b): times for a, b, times in found.outcomes})
            evidence.actions.update({(a, b): times for a, b, times in found.actions})
            evidence.taken.update({(a, b): times for a, b, times in found.taken})
            evidence.given_up += found.given_up
            for requirement, reason in found.masked.items():
                evidence.masked.setdefault(requirement, reason)
            # Of two equally short ones the first stays: they come in the order of their seeds.
            for requirement, each in found.broken.items():
                evidence.broken[requirement] = _shorter(evidence.broken.get(requirement), each)
        return evidence

    def _cut_short(self) -> str:
        short = [f"{_name(found)}: {found.cut_short}" for found in self.parts if found.cut_short]
        missing = len(self.plan.all_seeds) - len(self.seeds)
        if self.interrupted:
            short.insert(0, f"interrupted, {missing} seeds are missing")
        more = f"; and {len(short) - NAMED_MAX} more" if len(short) > NAMED_MAX else ""
        return "; ".join(short[:NAMED_MAX]) + more

    def breaking(self, requirement: str) -> list[int]:
        """Return the seeds that have broken a requirement, in order."""
        return sorted(s for s, found in self.seeds.items() if requirement in found.broken)


def _shorter(known: Counterexample | None, other: Counterexample) -> Counterexample:
    return other if known is None or len(other.steps) < len(known.steps) else known


def _name(found: Found) -> str:
    return "the search of the scopes" if found.seed is None else f"seed {found.seed}"


# Spreading.

Take = Callable[[Found, bytes], None]


def run(
    spark: SparkSession, gathered: Gathered, progress: Callable[[], None], workers: int
) -> None:
    """Run all parts of a campaign and gather their results; `progress` is called meanwhile.

    It may raise `KeyboardInterrupt`, as Ctrl-C does: then no part begins, and running parts are
    cancelled.
    """
    plan = gathered.plan

    def take(found: Found, history: bytes) -> None:
        gathered.take(found, history)
        progress()

    spread(spark, [plan.part(None)], take, progress, workers)
    grade = gathered.scopes.grade if gathered.scopes else "sequences"
    parts = [plan.part(seed, grade) for seed in plan.all_seeds]
    spread(spark, parts, take, progress, workers)


def workers_of(spark: SparkSession) -> int:
    """Return the number of parts that Spark can run at a time."""
    return max(1, spark.sparkContext.defaultParallelism)


def spread(
    spark: SparkSession,
    parts: Iterable[Part],
    take: Take,
    poll: Callable[[], None],
    workers: int,
) -> None:
    """Let Spark run parts, `workers` at a time, and pass on each result as it comes."""
    context, stopped = spark.sparkContext, threading.Event()

    def do(part: Part) -> tuple[bytes, bytes] | None:
        if stopped.is_set():
            return None
        [told] = context.parallelize([part], 1).map(in_a_process).collect()
        return told

    waiting = iter(parts)
    under_way: dict[Future[tuple[bytes, bytes] | None], Part] = {}
    with ThreadPoolExecutor(workers) as threads:
        try:
            while True:
                # A few more than run at a time, and not all at once: there may be many.
                for part in islice(waiting, 2 * workers - len(under_way)):
                    under_way[threads.submit(do, part)] = part
                if not under_way:
                    return
                done, _ = wait(under_way, POLL_S, FIRST_COMPLETED)
                for each in done:
                    take(*_told(each, under_way.pop(each)))
                poll()
        finally:
            stopped.set()
            # Another thread may have begun its job since.
            while wait(under_way, POLL_S).not_done:
                context.cancelAllJobs()


def _told(done: Future[tuple[bytes, bytes] | None], part: Part) -> tuple[Found, bytes]:
    """Return the result of a part, even if its worker was lost."""
    error = done.exception()
    if error is None:
        told = done.result()
        assert told is not None
        return msgspec.json.decode(told[0], type=Found), told[1]
    if not isinstance(error, Exception):
        raise error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = next((line for line in lines if "Exception" in line or "Error" in line), "")
    return Found(seed=part.seed, cut_short=f"its worker was lost: {why[:200]}"), b""


# The report.


def report_on(
    gathered: Gathered, hello: Hello, chosen: Mapping[str, Requirement]
) -> tuple[Report, tuple[Coverage, ...]]:
    """Return the gate's report on a candidate, and the coverage of the contract."""
    plan, evidence = gathered.plan, gathered.evidence()
    claims = hello.capabilities
    covered = coverage(claims, evidence.actions)
    report = Report(plan.candidate, hello.name, hello.version, plan.first)
    report.interrupted = gathered.interrupted
    report.stages = _stages(gathered)
    if claims.inspect:
        report.stages.append(snapshot_stage(evidence))
    steps = sum(each.taken for each in covered)
    complete = all(each.taken for each in covered)
    report.stages.append(Stage("contract", in_one_line(covered), complete, steps))
    verdicts = judge(dict(chosen), claims, evidence)
    report.verdicts = tuple(_with_seeds(verdict, gathered) for verdict in verdicts)
    return report, covered


def _with_seeds(verdict: Verdict, gathered: Gathered) -> Verdict:
    """Add to a broken requirement how many seeds broke it."""
    if verdict.outcome is not Outcome.BROKEN:
        return verdict
    seeds = gathered.breaking(verdict.requirement.id)
    searches = f"{len(seeds)} of {_seeds(len(gathered.seeds))}"
    if seeds:
        searches += f", first {seeds[0]}"
    if gathered.scopes and verdict.requirement.id in gathered.scopes.broken:
        searches = f"the search of the scopes and {searches}"
    return replace(verdict, reason=f"broken by {searches}: {verdict.reason}")


def _stages(gathered: Gathered) -> list[Stage]:
    plan, found = gathered.plan, list(gathered.seeds.values())
    stages = [] if gathered.scopes is None else list(gathered.scopes.stages)
    asked = f"seeds {plan.first} to {plan.all_seeds[-1]}"
    examples, left_out = sum(f.examples for f in found), sum(f.left_out for f in found)
    operations: Counter[str] = Counter()
    complete: dict[str, bool] = {}
    for each in (stage for one in found for stage in one.stages):
        operations[each.name] += each.operations
        complete[each.name] = complete.get(each.name, True) and each.complete
    for name, total in operations.items():
        did = f"{asked}: {total:,} operations"
        if name == "stateful":
            did = f"{asked}: {examples:,} examples, {total:,} operations"
            did += f", {left_out} of them in no history" if left_out else ""
        stages.append(Stage(name, did, complete[name], total))
    stages.append(_stage_of_the_campaign(gathered, sum(operations.values())))
    return stages


def _stage_of_the_campaign(gathered: Gathered, operations: int) -> Stage:
    seeds = gathered.seeds
    failing = gathered.failing
    did = f"{len(seeds)} of {_seeds(gathered.plan.seeds)} done, {len(failing)} broke a MUST"
    if failing:
        named = ", ".join(map(str, failing[:NAMED_MAX]))
        did += f": {named}" + (", …" if len(failing) > NAMED_MAX else "")
    short = sum(bool(found.cut_short) for found in seeds.values())
    did += f"; {short} ended early" if short else ""
    if gathered.scopes and gathered.scopes.grade == "adaptive":
        did += "; the candidate answers differently to the same operations"
    complete = len(seeds) == gathered.plan.seeds and not short
    return Stage("campaign", did, complete, operations)


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"

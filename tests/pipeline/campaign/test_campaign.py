"""Campaigns: what many seeds find is gathered, told alike by any number of workers, and replayable.

Seeds run in processes of their own, so candidates are files: one sound, one with a planted fault,
and some that ruin one process, the first that asks them something, and are sound in all others.
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.report.verdict_file import VerdictFile
from brokerproof.checks.search.findings import Exchange
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.models.contract.core import Contract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language.core.model import trace
from brokerproof.pipeline.campaign import seed as campaign_seed
from brokerproof.pipeline.campaign.campaign import Gathered, Plan, report_on, run, spread
from brokerproof.pipeline.campaign.coverage import (
    BEYOND_THE_CORE,
    NOT_SEEN,
    OF_THE_CORE,
    Coverage,
    coverage,
    in_one_line,
)
from brokerproof.pipeline.campaign.histories import Examples, file_of
from brokerproof.pipeline.campaign.seed import Found
from brokerproof.pipeline.commands import campaign as campaign_command
from brokerproof.pipeline.commands.campaign import campaign
from brokerproof.pipeline.commands.check import check as check_history
from brokerproof.pipeline.spark.session import session
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare, Publish
from brokerproof.spec.requirements import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
FAULT = "get-takes-the-youngest"

FAULTY = """
import sys

sys.path.insert(0, {root!r})
from tests.faults.catalogue import faults

make = faults()[{fault!r}].faulty()
"""

Ruin = Literal["nothing", "its process", "the worker", "time"]

RUINOUS = """
import os, signal, sys, time

sys.path.insert(0, {root!r})
from tests.checks.broken_candidates import Box


class Ruinous(Box):
    def handle(self, operation):
        if "campaign.seed" in sys.orig_argv[-2] and {ruin!r} != "nothing":
            try:
                os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return super().handle(operation)
            match {ruin!r}:
                case "its process":
                    os._exit(7)
                case "the worker":
                    os.kill(os.getppid(), signal.SIGKILL)
                    time.sleep(60)
                case "time":
                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGTERM])
                    time.sleep(60)
        return super().handle(operation)
"""


def planted(folder: Path) -> str:
    """Write a candidate with a planted fault, and return its address."""
    path = folder / "faulty.py"
    path.write_text(FAULTY.format(root=str(ROOT), fault=FAULT))
    return f"{path}:make"


def ruinous(folder: Path, ruin: Ruin) -> str:
    """Write a small candidate that ruins something once, and return its address."""
    path = folder / "ruinous.py"
    marker = str(folder / "ruined")
    path.write_text(RUINOUS.format(root=str(ROOT), ruin=ruin, marker=marker))
    return f"{path}:Ruinous"


def plan_for(address: str, seeds: int = 2, examples: int = 5) -> Plan:
    """Return a small campaign."""
    return Plan(address, 0, seeds, 30, examples, 300.0, str(ROOT))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all, and Ctrl-C as it was before."""
    before = signal.getsignal(signal.SIGINT)
    with session("local[2]", tmp_path_factory.mktemp("spark")) as spark:
        yield spark
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def faulty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Gathered:
    """What two workers gather of a candidate with a planted fault."""
    folder = tmp_path_factory.mktemp("faulty")
    gathered = Gathered(plan_for(planted(folder), seeds=2, examples=40), folder / "histories")
    run(spark, gathered, lambda: None, workers=2)
    return gathered


def said(gathered: Gathered) -> bytes:
    """Return all that is said of a campaign, as bytes."""
    hello = open_subject(gathered.plan.candidate).hello
    report, covered = report_on(gathered, hello, catalogue())
    return msgspec.json.encode([report.stages, [v.__dict__ for v in report.verdicts], covered])


def test_a_planted_fault_is_found_by_seeds_and_told_with_how_many(faulty: Gathered) -> None:
    assert sorted(faulty.seeds) == [0, 1]
    hello = open_subject(faulty.plan.candidate).hello
    report, _ = report_on(faulty, hello, catalogue())
    [verdict] = [v for v in report.verdicts if v.requirement.id == "fifo-order"]
    assert verdict.outcome is Outcome.BROKEN
    seeds = faulty.breaking("fifo-order")
    assert seeds
    assert f"{len(seeds)} of 2 seeds, first {seeds[0]}: expected " in verdict.reason
    assert verdict.counterexample is not None
    found = [f.broken["fifo-order"] for f in faulty.parts if "fifo-order" in f.broken]
    assert len(verdict.counterexample.steps) == min(len(each.steps) for each in found)


@pytest.mark.thorough
def test_one_worker_and_two_say_the_same(
    spark: SparkSession, faulty: Gathered, tmp_path: Path
) -> None:
    alone = Gathered(faulty.plan, tmp_path / "histories")
    run(spark, alone, lambda: None, workers=1)
    assert said(alone) == said(faulty)
    names = [file_of(seed) for seed in range(2)]
    for folder in (alone.histories, faulty.histories):
        assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        assert (alone.histories / name).read_bytes() == (faulty.histories / name).read_bytes()


def test_other_seeds_have_other_examples(faulty: Gathered) -> None:
    tables = [pq.read_table(faulty.histories / file_of(seed)) for seed in range(2)]
    without_names = [table.drop_columns(["run"]) for table in tables]
    assert without_names[0] != without_names[1]


def test_what_the_fault_did_is_seen_in_the_histories_too(faulty: Gathered, tmp_path: Path) -> None:
    told = CliRunner().invoke(
        check_history,
        [str(faulty.histories), "--engine", "alone", "--report", str(tmp_path / "report")],
    )
    assert told.exit_code == 1, told.output
    record = msgspec.json.decode(
        (tmp_path / "report" / "verdict.json").read_bytes(), type=VerdictFile
    )
    broken = {v.requirement for v in record.candidates[0].verdicts if v.verdict is Outcome.BROKEN}
    assert "fifo-order" in broken


def test_the_command_writes_a_report_that_can_be_replayed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_command, "session", lambda *_: nullcontext(spark))
    report = tmp_path / "report"
    old = report / "histories" / file_of(77)
    old.parent.mkdir(parents=True)
    old.touch()
    options = ["--seeds", "2", "--examples", "3", "--operations", "30", "--report", str(report)]
    told = CliRunner().invoke(campaign, [planted(tmp_path), *options])
    assert told.exit_code == 1, told.output
    assert "2 of 2 seeds done" in told.output
    assert not old.exists()
    names = {"verdict.json", "report.html", "junit.xml", "verdict.sarif", "coverage.parquet"}
    assert names <= {path.name for path in report.iterdir()}
    taken = {
        row["action"]: row["taken"]
        for row in pq.read_table(report / "coverage.parquet").to_pylist()
    }
    assert taken["publish"] > 0
    again = CliRunner().invoke(
        main, ["replay", str(report / "counterexamples" / "fifo-order.json")]
    )
    assert again.exit_code == 1, again.output


def test_a_sound_candidate_passes_and_so_do_its_histories(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_command, "session", lambda *_: nullcontext(spark))
    report = tmp_path / "report"
    options = ["--seeds", "2", "--examples", "6", "--operations", "30", "--report", str(report)]
    told = CliRunner().invoke(campaign, ["reference:qpid-push", "--accept-inconclusive", *options])
    assert told.exit_code == 0, told.output
    place = str(tmp_path / "of-histories")
    checked = CliRunner().invoke(
        check_history, [str(report / "histories"), "--engine", "alone", "--report", place]
    )
    assert checked.exit_code == 0, checked.output


def lost_by(spark: SparkSession, folder: Path, ruin: Ruin) -> tuple[Gathered, list[Found]]:
    """Run four seeds of a candidate that ruins something; return all, and what was cut short."""
    gathered = Gathered(plan_for(ruinous(folder, ruin), seeds=4), folder / "histories")
    parts = [gathered.plan.part(seed) for seed in gathered.plan.all_seeds]
    spread(spark, parts, gathered.take, lambda: None, workers=2)
    assert sorted(gathered.seeds) == [0, 1, 2, 3]
    return gathered, [found for found in gathered.seeds.values() if found.cut_short]


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("ruin", "why"),
    [
        ("its process", "its process ended with status 7"),
        ("the worker", "its worker was lost"),
    ],
)
def test_what_dies_costs_its_own_seed_alone(
    spark: SparkSession, tmp_path: Path, ruin: Ruin, why: str
) -> None:
    gathered, lost = lost_by(spark, tmp_path, ruin)
    [one] = lost
    assert why in one.cut_short
    assert all(found.examples == 5 for found in gathered.seeds.values() if found is not one)
    hello = open_subject(gathered.plan.candidate).hello
    report, _ = report_on(gathered, hello, catalogue())
    outcomes = {verdict.outcome for verdict in report.verdicts}
    assert outcomes == {Outcome.INCONCLUSIVE, Outcome.NOT_CLAIMED}
    assert any(f"seed {one.seed}: {why}" in verdict.reason for verdict in report.verdicts)


def test_a_candidate_that_ruins_nothing_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    gathered, lost = lost_by(spark, tmp_path, "nothing")
    assert not lost
    hello = open_subject(gathered.plan.candidate).hello
    report, _ = report_on(gathered, hello, catalogue())
    assert Outcome.KEPT in {verdict.outcome for verdict in report.verdicts}


def test_what_hangs_beyond_the_reach_of_a_timer_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_seed, "GRACE_S", 3.0)
    monkeypatch.setattr(campaign_seed, "LEAVING_S", 0.1)
    plan = msgspec.structs.replace(plan_for(ruinous(tmp_path, "time")).part(0), limit_s=1.0)
    found, history = campaign_seed.in_a_process(plan)
    assert msgspec.json.decode(found, type=Found).cut_short == "it did not end within 4 s"
    assert history == b""


def test_ctrl_c_keeps_what_was_found(spark: SparkSession, tmp_path: Path) -> None:
    address = ruinous(tmp_path, "nothing")
    gathered = Gathered(plan_for(address, seeds=50), tmp_path / "histories")

    def pressed() -> None:
        if gathered.seeds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(spark, gathered, pressed, workers=2)
    gathered.interrupted = True
    assert 1 <= len(gathered.seeds) <= 4
    report, _ = report_on(gathered, open_subject(address).hello, catalogue())
    assert report.interrupted
    reasons = {v.reason for v in report.verdicts if v.outcome is Outcome.INCONCLUSIVE}
    assert reasons == {f"interrupted, {50 - len(gathered.seeds)} seeds are missing"}


def test_a_candidate_that_cannot_be_opened_is_told_in_one_line() -> None:
    told = CliRunner().invoke(campaign, ["reference:nothing", "--seeds", "2"])
    assert told.exit_code == 2
    assert told.output.startswith("Error: reference:nothing")
    assert told.output.count("\n") == 1


def test_every_action_of_the_contract_is_seen_or_it_is_said_why_not() -> None:
    core, whole = (
        {action.name for action in trace(each).actions} for each in (Contract, WholeContract)
    )
    assert {*OF_THE_CORE} == core - NOT_SEEN.keys()
    assert {*OF_THE_CORE, *BEYOND_THE_CORE} == whole - NOT_SEEN.keys()


def test_only_what_is_claimed_has_to_be_covered() -> None:
    little = coverage(Capabilities(get=True), {("publish", "ok"): 2, ("get", "unknown"): 1})
    assert Coverage("publish", 2, 0, 0) in little
    assert Coverage("get", 0, 1, 0) in little
    assert not {"deliver", "browse", "crash"} & {each.action for each in little}
    assert "never " in in_one_line(little)
    more = coverage(Capabilities(get=True, durable=True), {})
    assert Coverage("crash", 0, 0, 0) in more


def test_an_example_that_no_history_can_hold_is_left_out_and_counted(tmp_path: Path) -> None:
    def example(name: str) -> tuple[Exchange, ...]:
        moves = Declare(queue="q", order=Fifo()), Publish(queue="q", message=Message(id=name))
        return tuple(Exchange(move, move, OK) for move in moves)

    path = tmp_path / "history.parquet"
    with Examples(path, 3, Capabilities()) as examples:
        examples.add(example("m0"))
        examples.add(example("m" * 1000))
        examples.add(example("\ud800"))
        examples.add(example("m1"))
    assert (examples.count, examples.left_out) == (4, 2)
    table = pq.read_table(path)
    assert table.column("message").drop_null().to_pylist() == ["m0", "m1"]
    assert set(table.column("run").to_pylist()) == {"seed 3 example 0 0", "seed 3 example 3 0"}
    assert table.column("place").to_pylist() == [1, 2, 3, 4]

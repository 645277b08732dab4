"""Rounds on threads and on processes: sound ones break nothing, and planted races are found."""

from __future__ import annotations

import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from brokerproof.candidates.driver.candidate import DriverCandidate
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.pipeline.commands.record import record
from brokerproof.pipeline.rounds.hunt import Hunt, Limits, broken
from brokerproof.pipeline.rounds.rounds import Rounds
from brokerproof.pipeline.rounds.shape import Shape
from brokerproof.spec.protocol.answers import Answer, Delivered, Error
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Get,
    Operation,
    Publish,
    Release,
    Reset,
)
from tests.pipeline.recorded_histories import complaints, of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokerproof.spec.histories import Record
    from brokerproof.spec.protocol.candidate import Candidate
    from brokerproof.spec.protocol.capabilities import Hello

EXAMPLES = Path(__file__).parents[3] / "examples"
SOUND = f"{EXAMPLES}/threaded_queue.py:make_queue"
WHOLE = f"{EXAMPLES}/whole_broker.py:make_broker"


class Locked:
    """A candidate behind one lock."""

    def __init__(self, behind: Candidate) -> None:
        self.behind = behind
        self.lock = threading.Lock()

    def hello(self) -> Hello:
        """Return the candidate's hello."""
        return self.behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation at a time."""
        with self.lock:
            return self.behind.handle(operation)


class Doubling(Locked):
    """Two clients get one job, in each round whose number is a multiple of `every`."""

    resets = 0

    def __init__(self, behind: Candidate, every: int) -> None:
        super().__init__(behind)
        self.every = every
        self.given: tuple[str, Answer] | None = None

    def handle(self, operation: Operation) -> Answer:
        """Answer the second client's get as the first one's, in such a round."""
        if isinstance(operation, Reset):
            Doubling.resets += 1
            self.given = None
        if isinstance(operation, Get) and Doubling.resets % self.every == 0:
            given = self.given
            if given is not None and given[0] != operation.channel:
                self.given = None
                return given[1]
            answer = super().handle(operation)
            if any(isinstance(event, Delivered) for event in answer.events):
                self.given = operation.channel, answer
            return answer
        return super().handle(operation)


def subject_of(make: Callable[[], Candidate]) -> Subject:
    """Return a subject in this process."""
    return Subject("a queue", make().hello(), make, in_process=True)


def rounds_of(address: str) -> Rounds:
    """Return the rounds of a candidate by its address."""
    return Rounds(open_subject(address), seed=1)


def locked(address: str) -> Rounds:
    """Return the rounds of a candidate behind a lock."""
    behind = open_subject(address)
    return Rounds(subject_of(lambda: Locked(behind.start())), seed=1)


def played(rounds: Rounds, count: int, shape: Shape, *, kills: bool = False) -> list[list[Record]]:
    """Play rounds; each of them breaks nothing."""
    with rounds.open():
        batch = [rounds.play(shape, kills=kills) for _ in range(count)]
    assert broken(batch) == {}
    return [list(each.records) for each in batch]


def test_rounds_keep_what_every_recording_keeps() -> None:
    shape = Shape(messages=6)
    for history in played(rounds_of(SOUND), 20, shape):
        assert complaints(history) == []
        assert len(of(history, "publish")) == shape.messages
        assert len(of(history, "acknowledge")) == shape.messages
        assert len(of(history, "drained")) == 1


def test_consumers_race_where_there_are_no_gets() -> None:
    rounds = locked(WHOLE)
    claims = rounds.subject.hello.capabilities
    rounds.subject.hello = replace(rounds.subject.hello, capabilities=replace(claims, get=False))
    for history in played(rounds, 10, Shape(levels=3)):
        assert len({each.consumer for each in of(history, "consume")}) == 4
        assert len(of(history, "drained")) == 1
        assert {each.levels for each in of(history, "declare")} == {3}


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_confirmed() -> None:
    histories = played(locked(WHOLE), 20, Shape(), kills=True)
    for history in histories:
        assert len(of(history, "crash")) == len(of(history, "restart")) == 1
        assert {each.persistent for each in of(history, "publish")} == {True}
    assert sum(len(of(history, "drained")) for history in histories) > 10


@pytest.mark.slow
def test_a_race_once_in_500_rounds_is_found_and_cut() -> None:
    behind = open_subject(SOUND)
    Doubling.resets = 0
    rounds = Rounds(subject_of(lambda: Doubling(behind.start(), 500)), seed=1)
    hunt = Hunt(rounds, Shape(), Limits(rounds=1_000))
    records = list(hunt.records())
    assert hunt.finding is not None
    assert (hunt.finding.requirement, hunt.finding.after) == ("nothing-twice", 500)
    assert any(each.run == hunt.finding.run for each in records)


def test_a_frequent_race_is_cut_to_one_message_and_two_consumers() -> None:
    behind = open_subject(SOUND)
    rounds = Rounds(subject_of(lambda: Doubling(behind.start(), 2)), seed=1)
    hunt = Hunt(rounds, Shape(messages=4, consumers=3), Limits(rounds=100))
    records = list(hunt.records())
    found = hunt.finding
    assert found is not None
    assert (found.shape.producers, found.shape.returns) == (1, 0.0)
    assert found.shape.messages <= 2
    assert 0 < found.seen < found.of
    assert len([each for each in records if each.run == found.run]) <= 25


def test_a_round_without_a_race_is_searched_to_the_end() -> None:
    hunt = Hunt(rounds_of(SOUND), Shape(), Limits(rounds=30))
    list(hunt.records())
    assert hunt.finding is None
    assert hunt.searched == 30


class Raising(Locked):
    """Raises for the third get of a round."""

    gets = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        self.gets = 0 if isinstance(operation, Reset) else self.gets + isinstance(operation, Get)
        if self.gets == 3:
            raise KeyError("job")
        return super().handle(operation)


def test_an_exception_is_found_and_told_with_its_client() -> None:
    behind = open_subject(SOUND)
    hunt = Hunt(Rounds(subject_of(lambda: Raising(behind.start())), 1), Shape(), Limits(rounds=5))
    list(hunt.records())
    assert hunt.finding is not None
    assert hunt.finding.requirement == "protocol"
    assert any("get raised KeyError: 'job'" in fault.what for fault in hunt.faults)


class Unsure(Locked):
    """Does not know whether a settlement has happened, now and then: it has."""

    asked = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        answer = super().handle(operation)
        self.asked += 1
        if isinstance(operation, Acknowledge | Release | Publish) and self.asked % 5 == 0:
            return Answer(answer.events, Error("timeout"))
        return answer


def test_an_unknown_outcome_is_no_finding() -> None:
    behind = open_subject(SOUND)
    histories = played(Rounds(subject_of(lambda: Unsure(behind.start())), 1), 20, Shape())
    unknown = [each for history in histories for each in history if each.outcome == "unknown"]
    assert len(unknown) > 20
    assert all(of(history, "drained") for history in histories)


def driver(*words: str) -> Rounds:
    """Return the rounds of a driver of which several processes are started."""
    address = f"exec:{shlex.join([sys.executable, *words])}"
    return Rounds(open_subject(address), 1, lambda: DriverCandidate(address))


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Callable[..., Rounds]]:
    """A function that returns the rounds of the driver whose processes share their queues."""
    made: list[Rounds] = []

    def rounds(*words: str) -> Rounds:
        made.append(driver(f"{EXAMPLES}/drivers/shared_driver.py", f"{tmp_path}/jobs.db", *words))
        return made[-1]

    yield rounds
    for each in made:
        each.subject.close()


@pytest.mark.slow
def test_several_processes_of_a_driver_share_a_queue(shared: Callable[..., Rounds]) -> None:
    for history in played(shared(), 10, Shape()):
        assert complaints(history) == []
        assert len(of(history, "drained")) == 1


@pytest.mark.slow
def test_a_race_between_processes_is_found(shared: Callable[..., Rounds]) -> None:
    hunt = Hunt(shared("hasty"), Shape(), Limits(rounds=1_000))
    list(hunt.records())
    assert hunt.finding is not None
    # The second process that takes a job is its holder, and the first one's settlement is refused.
    # If the first one's channel closes before the second get is answered, the job may have come
    # back in between. Then a history of the round shows no more than the refusal.
    seen = {"nothing-twice", "nothing-lost", "close-releases", "does-what-it-claims"}
    assert hunt.finding.requirement in seen


@pytest.mark.slow
def test_a_driver_with_a_queue_in_each_process_is_refused() -> None:
    rounds = driver(f"{EXAMPLES}/drivers/driver.py")
    try:
        with pytest.raises(CannotRun, match="is not found by another"), rounds.open():
            pass
    finally:
        rounds.subject.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        (SOUND, 0, "nothing was found in 50 rounds"),
        (f"{EXAMPLES}/threaded_queue.py:make_racy_queue", 1, "record more with"),
    ],
)
def test_the_command_judges_what_it_recorded(
    tmp_path: Path, address: str, status: int, told: str
) -> None:
    rounds = "50" if status == 0 else "5000"
    out, report = tmp_path / "history.jsonl", tmp_path / "report"
    result = CliRunner().invoke(
        record, [address, str(out), "--rounds", rounds, "--report", str(report)]
    )
    assert result.exit_code == status, result.output
    assert told in result.output
    assert out.exists()
    assert (report / "verdict.json").exists()


def test_wrong_options_end_in_one_line(tmp_path: Path) -> None:
    for options, told in (
        (["--kills", "1"], "does not claim durable"),
        (["--levels", "3"], "does not claim 3 priorities"),
        (["--rounds", "2", "--kills", "3"], "one each at most"),
    ):
        result = CliRunner().invoke(record, [SOUND, str(tmp_path / "out.jsonl"), *options])
        assert result.exit_code == 2
        assert told in result.output
        assert "Traceback" not in result.output
        assert list(tmp_path.iterdir()) == []

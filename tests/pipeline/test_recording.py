"""Recordings: of a real broker, with returns and with a kill; they say no more than is known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from brokerproof.candidates.amqp091.load.notes import Load, Notes
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.pipeline import tables
from brokerproof.pipeline.commands import record as record_command
from brokerproof.pipeline.commands.record import record
from brokerproof.pipeline.recording import HEADER, Recording, merged, record_load, write_history
from brokerproof.spec.histories import Record
from tests.pipeline.recorded_histories import complaints, of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from brokerproof.candidates.amqp091.load.load import Progress
    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ

WITH_RETURNS = Load(messages=2000, queues=2, window=20, release_share=0.1, gets=20, levels=3)
WITH_A_KILL = Load(messages=2000, release_share=0.1, gets=20, persistent=True, kills=1)


def lines(path: Path) -> list[Record]:
    """Return a history of JSON Lines."""
    header, *rest = path.read_bytes().splitlines()
    assert msgspec.json.decode(header) == HEADER
    return [msgspec.json.decode(line, type=Record) for line in rest]


def parts(folder: Path) -> list[Record]:
    """Return a history of Parquet."""
    return [
        each
        for part in sorted(folder.iterdir())
        for batch in tables.read(part)
        for each in tables.records_of(batch)
    ]


Made = tuple[Recording, list[Record]]


@pytest.fixture(scope="module")
def calm(rabbitmq: PrivateRabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A recording with returns and gets, and its history."""
    out = tmp_path_factory.mktemp("calm") / "history.jsonl"
    recording = record_load(WITH_RETURNS, rabbitmq.url, out)
    assert [each.name for each in out.parent.iterdir()] == [out.name]
    return recording, lines(out)


@pytest.fixture(scope="module")
def killed(rabbitmq: PrivateRabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A recording with a kill, and its history."""
    out = tmp_path_factory.mktemp("killed") / "history"
    recording = record_load(WITH_A_KILL, rabbitmq.url, out, power=rabbitmq)
    return recording, parts(out)


@pytest.mark.rabbitmq
def test_a_recording_keeps_what_every_recording_keeps(calm: Made) -> None:
    recording, history = calm
    assert complaints(history) == []
    assert recording.outcome.fault is None
    assert recording.written.records == len(history)
    assert len(of(history, "publish")) == WITH_RETURNS.messages
    acknowledged, released = of(history, "acknowledge"), of(history, "release")
    assert len(acknowledged) == WITH_RETURNS.messages
    assert 100 < len(released) < 300
    assert len(of(history, "deliver")) == len(acknowledged) + len(released)
    assert [each.queue for each in of(history, "drained")] == ["q0", "q1"]
    assert {each.levels for each in of(history, "declare")} == {WITH_RETURNS.levels}
    assert {each.priority for each in of(history, "publish")} == {0, 1, 2}


@pytest.mark.thorough
@pytest.mark.rabbitmq
def test_a_recording_with_a_kill_does_so_too(killed: Made) -> None:
    recording, history = killed
    assert complaints(history) == []
    assert recording.outcome.fault is None
    assert recording.outcome.progress.kills == len(of(history, "crash")) == 1
    [crash], [restart] = of(history, "crash"), of(history, "restart")
    assert crash.end is not None
    assert restart.end is not None
    lives = [each.start > crash.end for each in of(history, "consume")]
    assert sorted(lives) == [False] * WITH_A_KILL.consumers + [True] * WITH_A_KILL.consumers
    assert len(of(history, "drained")) == 1


def without_a(op: str) -> Callable[[list[Record]], list[Record]]:
    """Return a fault that forgets the second record of a kind."""

    def forget(history: list[Record]) -> list[Record]:
        forgotten = of(history, op)[1]
        return [each for each in history if each is not forgotten]

    return forget


def with_a(op: str, **wrong: object) -> Callable[[list[Record]], list[Record]]:
    """Return a fault that changes the second record of a kind, and keeps the order of starts."""

    def change(history: list[Record]) -> list[Record]:
        changed = of(history, op)[1]
        wrong_ones = [replace(each, **wrong) if each is changed else each for each in history]
        return sorted(wrong_ones, key=lambda each: each.start)

    return change


def with_two(op: str) -> Callable[[list[Record]], list[Record]]:
    """Return a fault that notes the second record of a kind twice."""

    def note_again(history: list[Record]) -> list[Record]:
        again = of(history, op)[1]
        return [twice for each in history for twice in ([each] * (1 + (each is again)))]

    return note_again


def too_late(history: list[Record]) -> list[Record]:
    """Say of a delivery that it was made no earlier than it was seen: a span too narrow."""
    late = next(each for each in of(history, "deliver") if each.position == 30)
    assert late.end is not None
    narrow = [replace(each, start=late.end) if each is late else each for each in history]
    return sorted(narrow, key=lambda each: each.start)


def given_again_without_a_return(history: list[Record]) -> list[Record]:
    """Say of what was never returned that it was redelivered."""
    returned = {each.message for each in of(history, "release")}
    new = next(each for each in of(history, "deliver") if each.message not in returned)
    return [replace(each, redelivered=True) if each is new else each for each in history]


def given_again(history: list[Record]) -> list[Record]:
    """Give an acknowledged message to another consumer, after everything."""
    done = of(history, "acknowledge")[1]
    at = history[-1].start + 10**12
    subscriber = {"consumer": "late", "channel": "late", "position": 0}
    again = replace(done, op="deliver", start=at, end=at, redelivered=False, **subscriber)
    return [*history, again]


FAULTS: dict[str, tuple[Callable[[list[Record]], list[Record]], str]] = {
    "forgets a publish": (without_a("publish"), "never published"),
    "forgets a delivery": (without_a("deliver"), "gaps in its positions"),
    "forgets an acknowledgement": (without_a("acknowledge"), "never acknowledged"),
    "forgets a consume": (without_a("consume"), "never subscribed"),
    "notes a publish twice": (with_two("publish"), "published 2 times"),
    "notes a settlement twice": (with_two("acknowledge"), "settled twice"),
    "notes a release as another's": (with_a("release", position=9999), "never given"),
    "ends before it starts": (with_a("deliver", end=0), "before it starts"),
    "settles before it saw": (with_a("acknowledge", start=0), "before it was seen"),
    "is sure of what was not answered": (with_a("acknowledge", end=None), "does not fit"),
    "drains too early": (with_a("drained", start=0), "while it was in use"),
    "closes too early": (with_a("close", start=0), "after its channel closed"),
    "narrows a span": (too_late, "may have had room before"),
    "invents a redelivery": (given_again_without_a_return, "never returned"),
    "says done of what is not": (given_again, "given after it was acknowledged"),
    "forgets the order": (lambda history: history[::-1], "out of order"),
}


@pytest.mark.each_time(6)
@pytest.mark.rabbitmq
@pytest.mark.parametrize("fault", FAULTS)
def test_a_recorder_with_a_fault_is_found_out(calm: Made, fault: str) -> None:
    spoil, complaint = FAULTS[fault]
    assert any(complaint in each for each in complaints(spoil(calm[1])))


@pytest.mark.rabbitmq
def test_a_recorder_that_trusts_a_killed_broker_is_found_out(killed: Made) -> None:
    trusting = [
        replace(each, end=each.start, outcome="ok") if each.outcome == "unknown" else each
        for each in killed[1]
    ]
    assert any("may have forgotten" in each for each in complaints(trusting))


@pytest.mark.rabbitmq
def test_a_recorder_that_takes_a_restart_for_a_crash_is_found_out(killed: Made) -> None:
    other = {"crash": "restart", "restart": "crash"}
    swapped = [replace(each, op=other.get(each.op, each.op)) for each in killed[1]]
    assert any("do not take turns" in each for each in complaints(swapped))


@pytest.mark.rabbitmq
def test_a_recording_that_is_stopped_keeps_what_there_was(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path
) -> None:
    seen = []
    load = Load(messages=10_000_000)
    recording = record_load(
        load,
        rabbitmq.url,
        tmp_path / "history.jsonl",
        told=lambda progress: seen.append(progress.delivered),
        stop_asked=lambda: bool(seen) and seen[-1] > 100,
    )
    history = lines(tmp_path / "history.jsonl")
    assert recording.outcome.interrupted
    assert recording.outcome.fault is None
    assert of(history, "drained") == []
    assert len(of(history, "deliver")) > 100
    unknown = of([each for each in history if each.outcome != "ok"], "acknowledge")
    assert len(unknown) == sum(each.outcome != "ok" for each in history)
    assert len(unknown) <= load.consumers  # of what the last get of each brought
    assert [each for each in complaints(history) if "never acknowledged" not in each] == []


@pytest.mark.rabbitmq
def test_a_broker_that_dies_unasked_ends_the_recording_and_leaves_open_what_is_unknown(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path
) -> None:
    dead: list[int] = []

    def die(progress: Progress) -> None:
        if progress.delivered > 100 and not dead:
            dead.append(progress.delivered)
            rabbitmq.crash()

    out = tmp_path / "history.jsonl"
    try:
        recording = record_load(Load(messages=10_000_000), rabbitmq.url, out, told=die)
    finally:
        rabbitmq.restart()
    history = lines(out)
    assert recording.outcome.fault is not None
    assert "ended early" in recording.outcome.fault
    assert of(history, "drained", "crash") == []
    # No crash is recorded, so all that the consumers held came back at some unknown moment.
    consumers = {each.channel for each in of(history, "consume")}
    assert {each.channel for each in of(history, "close")} == consumers
    assert {each.outcome for each in of(history, "close")} == {"unknown"}
    assert any(each.outcome == "unknown" for each in of(history, "publish"))
    assert [each for each in complaints(history) if "never acknowledged" not in each] == []


@pytest.mark.rabbitmq
def test_the_command_says_what_was_recorded(rabbitmq: PrivateRabbitMQ, tmp_path: Path) -> None:
    out = tmp_path / "history.jsonl"
    result = CliRunner().invoke(record, [rabbitmq.url, str(out), "--messages", "500"])
    assert result.exit_code == 0, result.output
    assert "published  500 of 500 messages: 500 confirmed, 0 unknown" in result.output
    assert "drained    q0" in result.output
    assert complaints(lines(out)) == []


COMMAND = "from brokerproof.pipeline.commands.record import record; record()"


@pytest.mark.rabbitmq
def test_ctrl_c_reaches_all_processes_and_ends_the_load_in_order(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path
) -> None:
    out = tmp_path / "history.jsonl"
    words = [sys.executable, "-c", COMMAND, rabbitmq.url, str(out), "--messages", "10000000"]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as command:
        # Consumers note what they were given after a few thousand deliveries.
        while command.poll() is None and not any(
            each.stat().st_size for each in tmp_path.glob(".history.jsonl.*/c*.deliveries.jsonl")
        ):
            time.sleep(0.01)
        os.killpg(command.pid, signal.SIGINT)
        told, errors = command.communicate(timeout=120)
    assert (command.returncode, errors) == (3, "")
    assert "interrupted: the report says what was found so far" in told
    history = lines(out)
    assert [each for each in complaints(history) if "never acknowledged" not in each] == []


def test_files_are_merged_by_starts(tmp_path: Path) -> None:
    for name, starts in (("a", (1, 4, 4)), ("b", (2, 4)), ("c", ())):
        with Notes(tmp_path / name) as notes:
            for start in starts:
                notes.write(Record(op="crash", start=start))
    assert [each.start for each in merged(tuple(tmp_path.iterdir()))] == [1, 2, 4, 4, 4]


@pytest.mark.parametrize("name", ["history", "history.jsonl"])
def test_a_history_that_cannot_be_written_to_its_end_is_not_there(
    tmp_path: Path, name: str
) -> None:
    def two_and_no_more() -> Iterator[Record]:
        yield Record(op="crash", start=1)
        yield Record(op="restart", start=2)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_history(tmp_path / name, two_and_no_more())
    assert list(tmp_path.iterdir()) == []


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    history = [Record(op="publish", queue="q", message=f"m{n}", start=n) for n in range(5)]
    write_history(tmp_path / "lines.jsonl", iter(history))
    write_history(tmp_path / "parts", iter(history))
    assert lines(tmp_path / "lines.jsonl") == parts(tmp_path / "parts") == history


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["amqp091://127.0.0.1:1/", "out"], "no server listens there"),
        (["reference:qpid-push", "out"], "brokerproof check runs its interleavings"),
        (["private:beanstalkd", "out"], "there is no such private broker"),
        (["stomp://127.0.0.1:1/", "out"], "no server listens there"),
        (["amqp091://127.0.0.1:1/", "out", "--crash-command", "true"], "give both or neither"),
        (["amqp091://127.0.0.1:1/", "."], "it is there already"),
        (["amqp091://127.0.0.1:1/", "out", "--kills", "1"], "give --crash-command"),
        (["private:rabbitmq", "out", "--kills", "1", "--transient"], "leave out --transient"),
        (["amqp091://127.0.0.1:1/", "out", "--window", "0"], "0 is not in the range"),
        (["amqp091://127.0.0.1:1/", "out", "--seed", "one"], "'one' is not a valid integer."),
    ],
)
def test_what_a_user_can_get_wrong_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(record, arguments)
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


class Started:
    """Power over a broker that is up: it counts its starts."""

    is_ours = False

    def __init__(self) -> None:
        self.starts = 0

    def crash(self) -> None:
        """Do nothing."""

    def restart(self) -> None:
        """Count one more start."""
        self.starts += 1

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.rabbitmq
def test_a_broker_that_a_command_starts_is_waited_for(rabbitmq: PrivateRabbitMQ) -> None:
    power = Started()
    waiting = record_command._Waiting.of(power, rabbitmq.url)
    assert waiting is not None
    waiting.crash()
    waiting.restart()
    assert power.starts == 1


def test_a_broker_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brokerproof.candidates.wire.crashes.RESTART_DEADLINE_S", 0.1)
    waiting = record_command._Waiting.of(Started(), "amqp091://127.0.0.1:1/")
    assert waiting is not None
    with pytest.raises(CandidateUnavailable, match="no server listens there"):
        waiting.restart()

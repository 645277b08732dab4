"""A server of our own: it starts, it serves, and it leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from brokerproof.candidates.amqp091.candidate import Amqp091Candidate
from brokerproof.candidates.instances import rabbitmq as private_rabbitmq
from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
from brokerproof.candidates.unavailable import CandidateUnavailable

COMMAND = [sys.executable, "-m", "brokerproof.candidates.instances.rabbitmq"]


def command_line_of(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.mark.rabbitmq
def test_the_server_and_its_port_mapper_are_ours_and_not_root(rabbitmq: PrivateRabbitMQ) -> None:
    lines = {process_id: command_line_of(process_id) for process_id in rabbitmq.process_ids}
    # Beside the server there may be a tool of its own that has not ended yet.
    assert any("beam.smp" in line for line in lines.values())
    assert sum(line.startswith(("epmd", "/usr/bin/epmd")) for line in lines.values()) == 1
    for process_id in lines:
        assert Path(f"/proc/{process_id}").stat().st_uid != 0


@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbitmq")
def test_the_command_prints_a_url_and_leaves_no_process_and_no_folder_behind(
    tmp_path: Path,
) -> None:
    # Elsewhere than in the checkout, whose folder brokerproof/ is not the whole package.
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as command:
        assert command.stdout is not None
        url = command.stdout.readline().strip()
        folder = folder_of(url)
        processes = private_rabbitmq._processes_at_home(folder)
        with closing(Amqp091Candidate(url)) as candidate:
            assert candidate.hello().name == "RabbitMQ"
        command.terminate()
        assert command.wait(60) == 0
    assert len(processes) >= 2
    assert [line for line in map(command_line_of, processes) if line] == []
    assert not folder.exists()


def folder_of(url: str) -> Path:
    """Return the folder of the server that listens at `url`."""
    port = url.rstrip("/").rpartition(":")[2]
    folders = Path(tempfile.gettempdir()).glob("brokerproof-rabbitmq-*")
    [found] = [f for f in folders if f"127.0.0.1:{port}\n" in (f / "rabbit.conf").read_text()]
    return found


def test_without_a_server_the_command_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(private_rabbitmq, "SERVER", tmp_path / "rabbitmq-server")
    with pytest.raises(CandidateUnavailable, match=r"apt-get install .* rabbitmq-server"):
        PrivateRabbitMQ().start()


def script(folder: Path, text: str) -> Path:
    path = folder / "rabbitmq-server"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.rabbitmq
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo started; echo no luck; exit 3", "ended with status 3 .* it said last: no luck"),
        ("exit 4", "ended with status 4 .* it said nothing"),
        ("echo '{error,eaddrinuse}'; exit 1", "other programs took its ports 3 times"),
    ],
)
@pytest.mark.usefixtures("rabbitmq")
def test_a_server_that_ends_while_it_starts_is_told_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, told: str
) -> None:
    # No other user may look into the folder of a test, so the script keeps our own user.
    monkeypatch.setattr(private_rabbitmq, "ordinary_user", lambda *_: None)
    monkeypatch.setattr(private_rabbitmq, "SERVER", script(tmp_path, text))
    made: list[Path] = []
    make = tempfile.mkdtemp

    def make_and_note(prefix: str) -> str:
        made.append(Path(make(prefix=prefix)))
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_note)
    server = PrivateRabbitMQ()
    with pytest.raises(CandidateUnavailable, match=told) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    assert server.process_ids == ()
    assert made
    for folder in made:
        assert not folder.exists()
        assert private_rabbitmq._processes_at_home(folder) == ()


@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbitmq")
def test_a_server_that_is_not_ready_in_time_is_ended_by_force(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(private_rabbitmq, "ordinary_user", lambda *_: None)
    text = "trap '' TERM; echo deaf; while :; do sleep 60; done"
    monkeypatch.setattr(private_rabbitmq, "SERVER", script(tmp_path, text))
    monkeypatch.setattr(private_rabbitmq, "START_DEADLINE_S", 0.2)
    monkeypatch.setattr("brokerproof.candidates.instances.processes.STOP_DEADLINE_S", 0.1)
    server = PrivateRabbitMQ()
    with pytest.raises(CandidateUnavailable, match=r"no AMQP connection .* it said last: deaf"):
        server.start()
    assert server.process_ids == ()


@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbitmq")
def test_ctrl_c_while_a_server_is_being_stopped_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pressed(_: object) -> None:
        raise KeyboardInterrupt

    server = PrivateRabbitMQ()
    server.start()
    folder, processes = folder_of(server.url), server.process_ids
    monkeypatch.setattr(private_rabbitmq, "end", pressed)
    with pytest.raises(KeyboardInterrupt):
        server.stop()
    assert not folder.exists()
    assert [line for line in map(command_line_of, processes) if line] == []

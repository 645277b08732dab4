"""The durability stage on a real RabbitMQ: no alarm, and twins that lose what they confirmed.

Each crash takes about seven seconds, so few of the examples are played here.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner, Result

from brokerproof.candidates.instances.processes import processes_at_home
from brokerproof.candidates.instances.rabbitmq import SERVER, PrivateRabbitMQ
from brokerproof.candidates.instances.servers import SERVERS
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.crash import crash_examples
from brokerproof.checks.gate import durability, gate
from brokerproof.checks.search import counterexamples
from brokerproof.checks.search.findings import play
from brokerproof.checks.subjects import PRIVATE_RABBITMQ, open_subject
from brokerproof.checks.trace.moves import text_of
from brokerproof.spec.protocol.capabilities import Capabilities

pytestmark = [pytest.mark.rabbitmq, pytest.mark.usefixtures("rabbitmq")]

LOST = ("--only", "survives-restart", "--only", "transient-is-lost", "--only", "protocol")


class Forgetful(PrivateRabbitMQ):
    """A server whose queues come back without their messages."""

    def restart(self) -> None:
        """Remove the queues' files, then start."""
        assert self._folder is not None
        for index in (self._folder / "mnesia").glob("*/msg_stores/vhosts/*/queues/*"):
            for written in (*index.glob("journal.jif"), *index.glob("*.idx")):
                written.unlink()
        super().restart()


class Empty(PrivateRabbitMQ):
    """A server that comes back as new."""

    def restart(self) -> None:
        """Remove everything that was written down, then start."""
        assert self._folder is not None
        for path in (self._folder / "mnesia").iterdir():
            path.rename(self._folder / f"gone-{time.monotonic_ns()}-{path.name}")
        super().restart()


Stakes = Callable[..., None]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Stakes:
    """Return a stage with only the examples of certain stakes, and few tries."""
    planned = crash_examples.planned_examples
    monkeypatch.setattr(durability, "TRIES", 1)
    monkeypatch.setattr(durability, "SHORTENING_CRASHES_MAX", 0)
    monkeypatch.setattr(gate, "run_exhaustive", lambda _: None)

    def only_about(*stakes: str) -> None:
        def some(claims: Capabilities) -> tuple[crash_examples.Planned, ...]:
            return tuple(each for each in planned(claims) if each.at_stake in stakes)

        monkeypatch.setattr(durability, "planned_examples", some)

    return only_about


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the only place for the folders of servers, and see that none is left there."""
    # Not below tmp_path, which other users cannot read: the server runs as its own user.
    folder = Path(tempfile.mkdtemp(prefix=tmp_path.name))
    folder.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    left = list(folder.iterdir())
    shutil.rmtree(folder)
    assert left == []


def check(report: Path, *arguments: str) -> Result:
    """Check without drawn examples."""
    asked = ("check", *arguments, "--examples", "0", "--verbose", "--report", str(report))
    result = CliRunner().invoke(main, asked)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.thorough
@pytest.mark.usefixtures("home")
def test_a_private_rabbitmq_survives_its_crashes(tmp_path: Path, only: Stakes) -> None:
    only("what was accepted", "what was settled")
    result = check(tmp_path, PRIVATE_RABBITMQ, *LOST)
    assert result.exit_code == 0, result.output
    assert "crashes: 2 (its process was killed, not the machine)" in result.output


def private(server: type[PrivateRabbitMQ], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let private:rabbitmq be another server."""
    monkeypatch.setitem(SERVERS, "rabbitmq", server)


@pytest.mark.thorough
@pytest.mark.usefixtures("home")
def test_a_server_that_loses_what_it_confirmed_is_found_and_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: Stakes
) -> None:
    only("what was accepted")
    private(Forgetful, monkeypatch)
    assert check(tmp_path, PRIVATE_RABBITMQ).exit_code == 1
    file = tmp_path / "counterexamples" / "survives-restart.json"
    moves = [text_of(move) for move in counterexamples.read(file).moves]
    assert moves[0] == "declare q0 fifo durable"
    assert moves.count("crash") == moves.count("restart") == 1
    replayed = CliRunner().invoke(main, ("replay", str(file)))
    assert replayed.exit_code == 1
    assert replayed.output.splitlines()[-1].strip() == "broken again: survives-restart"


@pytest.mark.thorough
@pytest.mark.usefixtures("home")
def test_a_server_that_comes_back_without_its_queues_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    private(Empty, monkeypatch)
    with closing(open_subject(PRIVATE_RABBITMQ)) as subject:
        [example, *_] = crash_examples.planned_examples(subject.hello.capabilities)
        run = play(*subject.fresh(), example.moves)
    assert run.broken is not None
    assert run.broken.requirement == "does-what-it-claims"
    assert "refused (there is no queue q0 since a restart: " in run.broken.reason


# By commands.


def scripts(folder: Path, server: PrivateRabbitMQ) -> tuple[str, str]:
    """Return the commands that kill another process's server and start it again."""
    assert server._folder is not None
    pid = server._folder / "pid"
    owner = server._launch.owner
    become = [] if owner is None else ["setpriv", f"--reuid={owner.pw_uid}", "--clear-groups"]
    become += [] if owner is None else [f"--regid={owner.pw_gid}"]
    variables = [f"{name}={value}" for name, value in server._environment.items()]
    start = shlex.join(["setsid", *become, "env", "-i", *variables, str(SERVER)])
    restart = folder / "restart"
    restart.write_text(f"#!/bin/sh\ncd {server._folder}\n{start} </dev/null >started.log 2>&1 &\n")
    restart.chmod(0o755)
    return f"sh -c 'kill -9 $(cat {pid})'", str(restart)


@pytest.mark.thorough
@pytest.mark.usefixtures("home")
def test_a_broker_started_elsewhere_is_crashed_by_commands_and_left_running(
    tmp_path: Path, only: Stakes
) -> None:
    only("what was accepted")
    with PrivateRabbitMQ() as server:
        crash, restart = scripts(tmp_path, server)
        commands = ("--crash-command", crash, "--restart-command", restart)
        result = check(tmp_path / "report", server.url, *LOST, *commands)
        assert result.exit_code == 0, result.output
        assert "crashes: 1 (its process was killed, not the machine)" in result.output
        with closing(open_subject(server.url)) as subject:
            assert subject.hello.name == "RabbitMQ"
        subprocess.run(shlex.split(crash), check=True)


@pytest.mark.parametrize(
    ("crash", "told"),
    [
        ("false", "--crash-command: false: ended with status 1; run it by hand"),
        ("true", "the broker still takes connections when the crash command has returned"),
    ],
)
def test_a_crash_command_that_does_not_kill_ends_in_one_line(
    rabbitmq: PrivateRabbitMQ, tmp_path: Path, crash: str, told: str
) -> None:
    commands = ("--crash-command", crash, "--restart-command", "true")
    result = check(tmp_path, rabbitmq.url, *commands)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert told in line


# Ctrl-C.


@pytest.mark.each_time(1)
@pytest.mark.parametrize("pressed_at", ["starting", "checking"])
def test_ctrl_c_leaves_no_process_and_no_folder(
    home: Path, tmp_path: Path, pressed_at: str
) -> None:
    command = [sys.executable, "-m", "brokerproof", "check", PRIVATE_RABBITMQ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        # Python itself tries a new folder with a file of another name.
        [folder] = _wait_for(lambda: list(home.glob("brokerproof-*")), process)
        _wait_for(lambda: processes_at_home(folder), process)
        if pressed_at == "checking":
            _wait_for((tmp_path / ".brokerproof").exists, process)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert "Traceback" not in output
    assert "interrupted: the report says what was found so far" in output
    assert process.returncode == 3
    assert processes_at_home(folder) == ()


T = TypeVar("T")


def _wait_for(condition: Callable[[], T], process: subprocess.Popen[str]) -> T:
    while not (found := condition()):
        assert process.poll() is None, "it has ended"
        time.sleep(0.02)
    return found

"""The commands that kill and start a broker, and the errors of wrong ones."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.candidates import crash_commands
from brokerproof.candidates.crash_commands import CrashCommands, PowerFailed
from brokerproof.candidates.instances import registry
from brokerproof.checks.commands.command_line import main

URL = "amqp091://guest:guest@127.0.0.1:1/"
BOTH = ("--crash-command", "true", "--restart-command", "true")


def refusal(*arguments: str) -> str:
    """Return the one line with which the command line refuses to run."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("check", URL, *BOTH[:2]), "--crash-command: there is no --restart-command; give both"),
        (("check", URL, *BOTH[2:]), "--restart-command: there is no --crash-command; give both"),
        (("check", "reference:qpid-push", *BOTH), "--crash-command: 0 candidates are on the wire"),
        (("check", "private:rabbitmq", *BOTH), "--crash-command: 0 candidates are on the wire"),
        (("check", URL, URL, *BOTH), "--crash-command: 2 candidates are on the wire; name the one"),
        (("check", *BOTH), "--crash-command: 0 candidates are on the wire"),
        (("check", URL, "--crash-command", "", *BOTH[2:]), "--crash-command: there is no command"),
        (
            ("check", URL, *BOTH[:2], "--restart-command", "start 'it"),
            '--restart-command: no closing quotation in "start \'it"',
        ),
        (("check", "private:kafka"), "private:kafka: there is no such private broker; name rabb"),
        (("check", URL, *BOTH), "no server listens there"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    assert told in refusal(*arguments, "--report", str(tmp_path))


def test_commands_in_a_file_are_for_brokers_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("brokerproof.toml").write_text('crash-command = "true"\n', encoding="utf-8")
    assert "there is no --restart-command" in refusal("check", URL)
    little = ("--operations", "50", "--examples", "0", "--only", "fifo-order")
    other = CliRunner().invoke(main, ("check", "reference:qpid-push", *little))
    assert other.exit_code in (0, 3)


def test_where_there_is_no_server_the_command_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "program", lambda _: None)
    told = refusal("check", "private:rabbitmq", "--report", str(tmp_path))
    assert "a private RabbitMQ: there is no " in told
    assert "apt-get install" in told


# Running them.


def failure(command: str) -> str:
    """Return the one line with which a command that kills has failed."""
    with pytest.raises(PowerFailed) as caught:
        CrashCommands(command, "true").crash()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_commands_are_run_without_a_shell_and_with_their_quotes(tmp_path: Path) -> None:
    killed, started = tmp_path / "killed it", tmp_path / "$started"
    commands = CrashCommands(f"touch '{killed}'", f"touch {started}")
    commands.crash()
    assert (killed.exists(), started.exists()) == (True, False)
    commands.restart()
    assert started.exists()


def test_a_command_that_fails_is_told_with_what_it_said_last() -> None:
    assert failure("sh -c 'echo first; echo no such container >&2; exit 3'") == (
        "--crash-command: sh -c 'echo first; echo no such container >&2; exit 3': "
        "ended with status 3 and said 'no such container'; run it by hand"
    )
    assert failure("false") == "--crash-command: false: ended with status 1; run it by hand"


def test_a_program_that_is_not_there_is_told() -> None:
    told = failure("/nowhere/at/all now")
    assert told.startswith("--crash-command: /nowhere/at/all now: No such file or directory; name")


def test_a_command_that_does_not_return_is_killed_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(crash_commands, "COMMAND_S_MAX", 0.1)
    pid = tmp_path / "pid"
    told = failure(f"sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600'")
    assert "not done within 0.1 s" in told
    if pid.exists():
        assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_what_a_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    CrashCommands("true", f"sh -c 'sleep 600 & echo $! > {pid}'").restart()
    left = int(pid.read_text())
    assert Path(f"/proc/{left}").exists()
    os.kill(left, signal.SIGKILL)

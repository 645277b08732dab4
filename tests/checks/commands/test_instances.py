"""`brokerproof instances`: the table, the installation, and a broker that runs until it is told."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.candidates.instances.maven import Files
from brokerproof.candidates.instances.registry import Choice, instances
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.subjects import open_subject

LACKING = CandidateUnavailable("it", what="there is no box", remedy="install a box")


def told(*arguments: str) -> tuple[int, list[str]]:
    """Return the status and the lines of the command."""
    done = CliRunner().invoke(main, ["instances", *arguments])
    return done.exit_code, done.output.splitlines()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let nothing be missing but what is in the list, and nothing be fetched."""
    lacking: list[str] = []
    monkeypatch.setattr(Choice, "missing", lambda self: LACKING if self.name in lacking else None)
    monkeypatch.setattr(Files, "install", lambda self: self.name == "artemis")
    return lacking


def test_the_table_names_each_release_and_what_it_lacks(installed: list[str]) -> None:
    installed.append("garagemq")
    status, lines = told()
    assert status == 0
    releases = [(name, version) for name, each in instances().items() for version in each.releases]
    assert [tuple(line.split()[:2]) for line in lines[1 : len(releases) + 1]] == releases
    assert [line.split()[0] for line in lines if line.endswith("missing")] == ["garagemq"]
    assert lines[len(releases) + 1 :] == ["garagemq packaged: there is no box; install a box"]


def test_what_is_installed_is_told(installed: list[str]) -> None:
    status, lines = told("install", "artemis", "broker-j?version=10.1.0")
    assert installed == []
    assert status == 0
    assert lines[0].startswith("artemis 2.40.0: ready, in ")
    assert lines[1:] == ["broker-j 10.1.0: ready"]


def test_a_command_that_is_not_ours_to_run_is_told(installed: list[str]) -> None:
    installed.append("rabbitmq")
    status, lines = told("install", "rabbitmq", "broker-j")
    assert status == 2
    assert lines == [
        "rabbitmq packaged: there is no box; install a box",
        "broker-j 9.2.1: ready",
        "Error: something is missing still; run the commands above",
    ]


@pytest.mark.usefixtures("installed")
def test_all_is_what_maven_central_has() -> None:
    status, lines = told("install", "--all")
    assert status == 0
    names = {line.split()[0] for line in lines}
    assert names == {name for name, each in instances().items() if not each.programs}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("install",), "Error: no instance is named; name some, or --all; "),
        (("install", "brokerj"), "Error: brokerj: there is no such private broker (did you mean "),
        (("run", "artemis?version=1"), "Error: private:artemis?version=1: there is no version"),
    ],
)
def test_a_wrong_name_ends_in_one_line(arguments: tuple[str, ...], line: str) -> None:
    status, lines = told(*arguments)
    assert status == 2
    [only] = lines
    assert only.startswith(line)


@pytest.mark.parametrize("address", ["private:broker-j", "private:garagemq"])
def test_a_private_broker_that_is_not_installed_is_never_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CandidateUnavailable, match="install"):
        open_subject(address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbitmq")
def test_a_broker_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "brokerproof", "instances", "run", "rabbitmq"]
    # Elsewhere than in the checkout, whose folder brokerproof/ is not the whole package.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("amqp091://guest:guest@127.0.0.1:")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0

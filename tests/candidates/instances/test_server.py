"""The life of a private server, with a small program for the server: it leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.instances import server as private_server
from brokerproof.candidates.instances.processes import end_leftovers, processes_at_home
from brokerproof.candidates.instances.registry import Choice, chosen
from brokerproof.candidates.instances.server import FIRST_WORDS, Launch, PrivateServer
from brokerproof.candidates.unavailable import CandidateUnavailable

ANSWERING = """
import pathlib, socket, sys, time
pathlib.Path("started").open("a").write("x")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    client.recv(1000)
    client.sendall(b"CONNECTED\\n\\n\\0")
    client.close()
"""
HELPER = [sys.executable, "-c", "import time; time.sleep(600)"]


class Small(PrivateServer):
    """A server that is a Python program, with a helper; its folder is noted."""

    start_deadline_s = 20.0

    def __init__(self, program: str, ready: str = "") -> None:
        super().__init__(chosen("rabbitmq?protocol=stomp"))
        self.program = program
        self.ready = ready
        self.folders: list[Path] = []

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Run the program with its port."""
        self.folders.append(folder)
        command = [sys.executable, "-c", self.program, str(ports[0])]
        return Launch(command, helpers=(HELPER,), ready=self.ready)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Choice, "missing", lambda _: None)


def nothing_is_left_of(server: Small) -> bool:
    return not any(
        folder.exists() or processes_at_home(folder) for folder in server.folders
    ) and bool(server.folders)


def test_a_server_is_started_killed_restarted_on_its_folder_and_stopped() -> None:
    server = Small(ANSWERING)
    with server:
        url, [folder] = server.url, server.folders
        assert url.startswith("stomp://guest:guest@127.0.0.1:")
        assert len(server.process_ids) == 2
        server.crash()
        assert len(server.process_ids) == 1  # the helper
        server.restart()
        assert server.url == url
        assert (folder / "started").read_text() == "xx"
        assert not nothing_is_left_of(server)
    assert nothing_is_left_of(server)
    assert server.process_ids == ()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("print('started'); print('no luck'); raise SystemExit(3)", "status 3 .* said last: no l"),
        ("print('Oh: no\\n  at a.B.c(B.java:1)'); raise SystemExit(1)", "1 .* said last: Oh: no;"),
        ("raise SystemExit(4)", "ended with status 4 .* it said nothing"),
        ("print('{error,eaddrinuse}')", "other programs took its ports 3 times"),
        ("print('java.net.BindException: Address already in use')", "took its ports 3 times"),
    ],
)
def test_a_server_that_ends_while_it_starts_is_told_and_leaves_nothing(
    program: str, told: str
) -> None:
    server = Small(program)
    with pytest.raises(CandidateUnavailable, match=told) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    assert nothing_is_left_of(server)


@pytest.mark.parametrize("answer", ["deaf", "other words"])
def test_a_server_that_is_not_ready_in_time_is_ended_by_force(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)\n"
    wrong = ANSWERING.replace("CONNECTED", "ERROR")
    program = deaf + ("time.sleep(60)" if answer == "deaf" else f"print(1, flush=True){wrong}")
    monkeypatch.setattr("brokerproof.candidates.instances.processes.STOP_DEADLINE_S", 0.1)
    server = Small(program)
    server.start_deadline_s = 1.0
    with pytest.raises(CandidateUnavailable, match=r"no answer by stomp within 1 s; it said last"):
        server.start()
    assert nothing_is_left_of(server)


def test_a_server_that_answers_before_it_is_up_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(private_server, "answers", lambda *_: True)
    program = (
        "import pathlib, time\nprint('BRK-1002', flush=True)\ntime.sleep({late_s})\n"
        "pathlib.Path('up').touch(); print('BRK-1004', flush=True)\ntime.sleep(600)"
    )
    for ready, late_s, is_up in (("BRK-1004", 0.2, True), ("", 600, False)):
        with Small(program.format(late_s=late_s), ready) as server:
            assert (server.folders[0] / "up").exists() == is_up


def test_a_port_taken_while_the_server_was_down_is_no_fault_of_the_server() -> None:
    with Small(ANSWERING) as server:
        server.crash()
        server._launch = Launch([sys.executable, "-c", "print('EADDRINUSE')"], helpers=(HELPER,))
        with pytest.raises(PowerFailed, match="another program took its port"):
            server.restart()


def test_ctrl_c_while_a_server_is_being_stopped_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pressed(_: object) -> None:
        raise KeyboardInterrupt

    server = Small(ANSWERING)
    server.start()
    monkeypatch.setattr(private_server, "end", pressed)
    with pytest.raises(KeyboardInterrupt):
        server.stop()
    assert nothing_is_left_of(server)


def test_what_is_missing_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    error = CandidateUnavailable("it", what="there is no program", remedy="install it")
    monkeypatch.setattr(Choice, "missing", lambda _: error)
    server = Small(ANSWERING)
    with pytest.raises(CandidateUnavailable, match="there is no program; install it"):
        server.start()
    assert server.folders == []


def test_a_server_answers_only_what_its_protocol_says() -> None:
    assert set(FIRST_WORDS) == {"amqp091", "amqp10", "stomp"}
    with Small(ANSWERING) as server:
        [port] = server._ports[:1]
        assert private_server.answers("stomp", port, 5.0)
        assert not private_server.answers("amqp091", port, 5.0)
        assert not private_server.answers("amqp10", port, 5.0)
    assert not private_server.answers("stomp", port, 0.5)


def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path.insert(0, '.')\n"
        "from tests.candidates.instances.test_server import ANSWERING, Choice, Small\n"
        "Choice.missing = lambda _: None\n"
        "server = Small(ANSWERING); server.start()\n"
        "print(server.folders[0], flush=True); os.kill(os.getpid(), 9)\n"
    )
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    folder = Path(done.stdout.strip())
    assert folder.parent == tmp_path, done.stderr
    end_leftovers(folder)  # waits
    assert processes_at_home(folder) == ()

"""The private servers of the recipes: one for each process, and nothing is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from brokerproof.candidates.unavailable import CandidateUnavailable
from examples.recipes import private_server
from examples.recipes.private_server import PrivateServer, once

SLEEP = Path("/usr/bin/sleep")
ROOT = Path(__file__).parents[2]


def sleeping(*arguments: str) -> PrivateServer:
    """Return a server that only sleeps."""
    server = PrivateServer("a private sleeper", SLEEP, "install coreutils")
    server.start(arguments or ("60",), lambda: True)
    return server


def children_of(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
        except OSError:  # it has ended, or is not ours to look at
            continue
    return found


def test_a_closed_server_leaves_no_process_and_no_folder() -> None:
    server = sleeping()
    assert len(children_of(server.folder)) == 1
    server.close()
    assert children_of(server.folder) == []
    assert not server.folder.exists()


def test_a_missing_program_is_told_with_its_remedy() -> None:
    with pytest.raises(CandidateUnavailable, match=r"there is no /no/such; install it"):
        PrivateServer("a private nothing", Path("/no/such"), "install it")


def test_a_server_that_ends_by_itself_is_told_with_its_last_words() -> None:
    server = PrivateServer("a private sleeper", SLEEP, "install coreutils")
    with pytest.raises(CandidateUnavailable, match=r"ended with status 1 .* it said last: Try"):
        server.start(["for ever"], lambda: False)
    assert not server.folder.exists()


def test_a_server_that_is_never_ready_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_server, "START_DEADLINE_S", 0.05)
    server = PrivateServer("a private sleeper", SLEEP, "install coreutils")
    with pytest.raises(CandidateUnavailable, match=r"it was not ready within"):
        server.start(["60"], lambda: False)
    assert children_of(server.folder) == []


def test_a_process_keeps_what_it_has_and_a_copy_of_it_makes_its_own() -> None:
    def start() -> list[int]:
        return [os.getpid()]

    kept = once("a list", start, list.clear)
    assert once("a list", start, list.clear) is kept
    copied = os.fork()
    if copied == 0:
        os._exit(once("a list", start, list.clear) is kept)
    assert os.waitstatus_to_exitcode(os.waitpid(copied, 0)[1]) == 0


def test_a_process_that_ends_leaves_no_folder_and_neither_does_a_killed_copy() -> None:
    script = """
        import multiprocessing, os, signal
        from examples.recipes.private_server import _HOME, PrivateServer
        from tests.examples.test_private_server import sleeping

        def copy():
            sleeping()
            os.kill(os.getpid(), signal.SIGKILL)

        sleeping()
        copied = multiprocessing.get_context("fork").Process(target=copy)
        copied.start()
        copied.join()
        assert len([*_HOME[0].iterdir()]) == 2
        print(_HOME[0])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(ran.stdout.strip())
    assert folder.name.startswith("brokerproof-recipes-")
    assert not folder.exists()

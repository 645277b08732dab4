"""The example of a parallel case of one's own: what it prints, and that it finds what is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import own_case

LOCKED = Path(own_case.__file__).with_name("locked_queue.py")


@pytest.mark.parametrize("candidate", ["reference:qpid-push", f"{LOCKED}:make_broker"])
def test_it_is_run_to_its_end(candidate: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = own_case.run(candidate)
    assert found.complete
    assert not found.failed
    assert found.runs > 1
    assert "interleavings, 0 broken" in capsys.readouterr().out


def test_what_is_broken_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = own_case.run(f"{LOCKED}:make_hasty_broker")
    assert found.failed
    told = capsys.readouterr().out
    assert "1 broken" in told
    assert "nothing orders the two" in " ".join(told.split())


def test_a_candidate_that_is_not_there_is_told() -> None:
    with pytest.raises(SystemExit, match="system must be one of"):
        own_case.run("reference:nonsense")


def test_a_broker_that_threads_cannot_use_is_told() -> None:
    with pytest.raises(SystemExit, match="cannot be used on threads"):
        own_case.run(f"{LOCKED.with_name('naive_queue.py')}:make_broker")

"""One part of a campaign in its own process, so that a failing candidate harms no other part.

Owns how such a process is started, instructed and ended. It gets one line on its standard input,
and ends when that input closes. It leaves files in a folder: the result, and the history of a
seed's examples.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.gate.durability import run_durability
from brokerproof.checks.gate.exhaustive import run_exhaustive
from brokerproof.checks.gate.gate import end_in_order, run_stateful
from brokerproof.checks.gate.gate_run import Budget, Clock, GateRun, Report, Stage
from brokerproof.checks.gate.stateful import Heard
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.report.verdict_file import encoded
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.checks.search.searches import Grade
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.checks.workers import watchdog
from brokerproof.checks.workers.interrupts import Interrupts
from brokerproof.pipeline.campaign.histories import Examples

GRACE_S: Final = 45.0
"""The wait beyond a part's limit: an operation may be under way."""

LEAVING_S: Final = 10.0
"""How long a process may take to clean up after its input was closed."""

_FOUND, _HISTORY, _COMPLAINT = "found.json", "history.parquet", "complaint.txt"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one process: the examples of a seed, or, for None, all that needs no seed."""

    candidate: str
    seed: int | None
    operations: int
    examples: int
    limit_s: float
    grade: Grade
    folder: str
    """The start of relative paths of candidates, if it exists."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a part; all but `seconds` is deterministic.

    `cut_short` says why the part is incomplete; it is empty if it is complete.
    """

    seed: int | None
    cut_short: str
    seconds: float = 0.0
    grade: Grade = "sequences"
    stages: tuple[Stage, ...] = ()
    examples: int = 0
    left_out: int = 0
    broken: dict[str, Counterexample] = {}
    masked: dict[str, str] = {}
    exercised: dict[str, int] = {}
    outcomes: tuple[tuple[str, bool, int], ...] = ()
    actions: tuple[tuple[str, Fate, int], ...] = ()
    taken: tuple[tuple[str, str, int], ...] = ()
    given_up: int = 0


def in_a_process(part: Part) -> tuple[bytes, bytes]:
    """Run a part in its own process; return the result, and a history if there is one."""
    with TemporaryDirectory(prefix="brokerproof-seed-") as name:
        folder = Path(name)
        ended = _ended(part, folder)
        try:
            found = (folder / _FOUND).read_bytes()
        except FileNotFoundError:
            found = encoded(Found(seed=part.seed, cut_short=ended))
        history = folder / _HISTORY
        return found, history.read_bytes() if history.is_file() else b""


def _ended(part: Part, folder: Path) -> str:
    """Run the process to its end; return in one line how it ended."""
    beginning = Path(part.folder)
    with (folder / _COMPLAINT).open("wb") as complaint:
        process = subprocess.Popen(  # noqa: S603 (our own module)
            [sys.executable, "-P", "-m", __name__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaint,
            cwd=beginning if beginning.is_dir() else None,
            start_new_session=True,
        )
    assert process.stdin is not None
    late = ""
    try:
        with suppress(BrokenPipeError):  # it ended before it read its input, as its status shows
            process.stdin.write(msgspec.json.encode(part) + b"\n")
            process.stdin.flush()
        try:
            process.wait(part.limit_s + GRACE_S)
        except subprocess.TimeoutExpired:
            late = f"it did not end within {part.limit_s + GRACE_S:g} s"
    finally:
        _end(process)
    return late or _how(process.returncode, folder / _COMPLAINT)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs: close its input first, then kill its group."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(LEAVING_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _how(status: int, complaint: Path) -> str:
    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    lines = complaint.read_text("utf-8", "replace").strip().splitlines()
    return f"its process ended with status {status}" + (f": {lines[-1][:200]}" if lines else "")


def main(folder: Path) -> None:
    """Run the part that standard input names, and write its result to a folder."""
    part = msgspec.json.decode(sys.stdin.buffer.readline(), type=Part)
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    interrupts = Interrupts()
    with interrupts.listening():
        found = found_by(part, folder, interrupts)
    unfinished = folder / f".{_FOUND}"
    unfinished.write_bytes(encoded(found))
    unfinished.replace(folder / _FOUND)
    # A thread left behind by a candidate would keep the process.
    os._exit(0)


def _end_with_the_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def found_by(part: Part, folder: Path, interrupts: Interrupts) -> Found:
    """Run a part in this process."""
    begun = time.monotonic()
    try:
        subject = open_subject(part.candidate)
    except CandidateUnavailable as error:
        return Found(seed=part.seed, cut_short=f"it could not be opened: {error}")
    with closing(subject), ExitStack() as written:
        run = _run(part, subject, interrupts)
        examples = None
        if part.seed is not None:
            claims = subject.hello.capabilities
            examples = written.enter_context(Examples(folder / _HISTORY, part.seed, claims))
        try:
            with watchdog.watching():
                _do(run, examples.add if examples else None)
                end_in_order(run)
        except KeyboardInterrupt:
            run.clock.interrupted = True
    seen = run.evidence
    return Found(
        seed=part.seed,
        cut_short=run.clock.reason(),
        seconds=time.monotonic() - begun,
        grade=run.grade,
        stages=tuple(run.report.stages),
        examples=0 if examples is None else examples.count,
        left_out=0 if examples is None else examples.left_out,
        broken=dict(sorted(seen.broken.items())),
        masked=dict(sorted(seen.masked.items())),
        exercised=dict(sorted(seen.exercised.items())),
        outcomes=tuple((*key, times) for key, times in sorted(seen.outcomes.items())),
        actions=tuple((*key, times) for key, times in sorted(seen.actions.items())),
        taken=tuple((*key, times) for key, times in sorted(seen.taken.items())),
        given_up=seen.given_up,
    )


def _run(part: Part, subject: Subject, interrupts: Interrupts) -> GateRun:
    hello = subject.hello
    return GateRun(
        subject,
        Budget(part.operations, part.examples, part.limit_s),
        Clock(part.limit_s),
        Report(part.candidate, hello.name, hello.version, part.seed or 0),
        lambda _stage, _operations: interrupts.raise_if_pressed(),
        grade=part.grade,
    )


def _do(run: GateRun, heard: Heard | None) -> None:
    """Run the seed's stages if `heard` takes its examples; otherwise the search of the scopes."""
    if heard is None:
        run_exhaustive(run)
        return
    run_stateful(run, heard)
    run_durability(run)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

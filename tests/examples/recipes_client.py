"""What the tests of recipes share: a run of the gate, its verdicts, and a race of threads."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType

from brokerproof.candidates.python_object import load_python_object
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.trace.moves import text_of
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Declare, Get, Operation, Publish, Reset
from brokerproof.spec.requirements import catalogue

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"

THREADS, MESSAGES, ROUNDS_MAX = 4, 100, 20


def judged(address: str, budget: Budget, jobs: int = 1) -> Report:
    """Return the report on a recipe, named by file and factory; more `jobs` wait at once."""
    with closing(open_subject(f"{RECIPES}/{address}")) as subject:
        return run_gate(subject, catalogue(), budget, seed=0, jobs=jobs)


def ids(report: Report, outcome: Outcome) -> set[str]:
    """Return the requirements with an outcome."""
    return {v.requirement.id for v in report.verdicts if v.outcome is outcome}


def trace(report: Report, requirement: str) -> list[str]:
    """Return the counterexample of a requirement, as lines."""
    [found] = [v.counterexample for v in report.verdicts if v.requirement.id == requirement]
    assert found is not None
    return [f"{text_of(line.move)}: {line.answered}" for line in found.steps]


def made(address: str, *, lease_s: int | None = None) -> Candidate:
    """Return a recipe's candidate, empty but for a queue `q`."""
    candidate = load_python_object(f"{RECIPES}/{address}")
    for operation in (Reset(), Declare(queue="q", order=Fifo(), lease_s=lease_s)):
        assert candidate.handle(operation) == OK
    return candidate


def file_of(candidate: Candidate) -> ModuleType:
    """Return the module that a candidate came from."""
    return sys.modules[type(candidate).__module__]


def put(candidate: Candidate, *messages: str) -> None:
    """Publish messages to `q`."""
    for message in messages:
        assert candidate.handle(Publish(queue="q", message=Message(id=message))) == OK


def taken(answer: Answer) -> tuple[str, str]:
    """Return the message and the delivery of a get that found one."""
    [event] = answer.events
    assert isinstance(event, Delivered)
    return event.message, event.delivery


def play(candidate: Candidate, *operations: Operation) -> list[Answer]:
    """Return the answers to operations."""
    return [candidate.handle(operation) for operation in operations]


def given_twice(address: str) -> set[str]:
    """Let threads empty a queue again and again; return the messages that came more than once.

    The rounds end with the first that shows one.
    """
    for _ in range(ROUNDS_MAX):
        candidate = made(address)
        messages = [f"m{number}" for number in range(MESSAGES)]
        put(candidate, *messages)
        together = threading.Barrier(THREADS)

        def empty(channel: str, candidate: Candidate = candidate) -> list[str]:
            found = []
            together.wait()  # noqa: B023 (all threads of a round end in it)
            while events := candidate.handle(Get(channel=channel, queue="q")).events:
                found.append(taken(Answer(events))[0])
            return found

        with ThreadPoolExecutor(THREADS) as pool:
            each = pool.map(empty, [f"ch{number}" for number in range(THREADS)])
            came = [message for found in each for message in found]
        assert {*came} == {*messages}
        if twice := {message for message in came if came.count(message) > 1}:
            return twice
    return set()

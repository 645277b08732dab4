"""A failure on threads as a counterexample: how it is recorded, and how it is run again.

A parallel case and a list of choices become the content of a file, and a file becomes a case on any
candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerproof.checks.search.counterexamples import (
    Certificate,
    Counterexample,
    answer_text,
    event_text,
    line_of,
)
from brokerproof.checks.search.interleaved import Access, Interleaved
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.histories import Call, Happened
from brokerproof.checks.threads.interleavings import Differs
from brokerproof.checks.threads.on_threads import Threaded
from brokerproof.checks.threads.parallel import Parallel, Recorded, begin
from brokerproof.checks.threads.runs import Failed, Wrong
from brokerproof.checks.threads.schedules import run_again
from brokerproof.checks.threads.tables import seen_again
from brokerproof.checks.trace.moves import text_of
from brokerproof.spec.protocol.operations import Extend, Inspect, Operation, Settlement, name_of

IN_SOME_ORDER, ENDS, NO_RACE = "as-in-some-order", "every-thread-ends", "no-data-race"

BROKEN_BY = {
    Wrong.JUDGED: IN_SOME_ORDER,
    Wrong.RAISED: IN_SOME_ORDER,
    Wrong.STUCK: ENDS,
    Wrong.RACE: NO_RACE,
}
"""The requirement that each kind of failure breaks."""

EXPECTED = {
    IN_SOME_ORDER: "what some order of all this, one thing after the other, would have brought",
    ENDS: "every thread to come to its end",
    NO_RACE: "a lock or an atomic step between the two",
}


@dataclass(frozen=True)
class Found:
    """A failure, and the case in which it was seen; `name` is the case's name in reports."""

    name: str
    parallel: Parallel
    case: Case[Recorded]
    failed: Failed

    @property
    def requirement(self) -> str:
        """The requirement that it breaks."""
        return BROKEN_BY[self.failed.wrong]

    @property
    def size(self) -> tuple[int, int]:
        """The length for a reader: changes of the thread, then steps."""
        return self.failed.switches, len(self.failed.choices)


def recorded(threaded: Threaded, found: Found, certificate: Certificate) -> Counterexample:
    """Return the counterexample for a failure on threads; runs it again to record its accesses."""
    accesses: tuple[Access, ...] = ()
    happened: list[Happened] = []
    also: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    try:
        accesses, shared = seen_again(found.case, found.failed)
        happened = shared.history.happened
        if shared.breach is not None:
            also, witnesses = (shared.breach.requirement,), shared.breach.witnesses
    except Differs as error:
        certificate = Certificate(grade="not certified", reason=str(error))
    parallel = found.parallel
    steps = begin(parallel, *threaded.subject.fresh())
    return Counterexample(
        format="brokerproof-counterexample/1",
        candidate=threaded.subject.address,
        requirement=found.requirement,
        expected=EXPECTED[found.requirement],
        seen="; ".join(found.failed.complaints),
        witnesses=witnesses,
        steps=tuple(map(line_of, steps)),
        certificate=certificate,
        also=also,
        interleaved=Interleaved(
            case=found.name,
            at_once=parallel.at_once,
            choices=found.failed.choices,
            stirring=parallel.stirring,
            jobs_at_once=parallel.jobs_at_once,
            accesses=accesses,
            happened=tuple(map(_told, happened)),
        ),
    )


def _told(happened: Happened) -> str:
    by = happened.by or "in the end"
    if isinstance(happened.what, Call):
        call = happened.what
        return f"{by}: {_asked(call.operation)}: {answer_text(call.operation, call.answer)}"
    return f"{by}: {event_text(happened.what)}"


def _asked(operation: Operation) -> str:
    if isinstance(operation, Settlement | Extend):
        return f"{name_of(operation)} {operation.delivery}"
    return name_of(operation) if isinstance(operation, Inspect) else text_of(operation)


def run_recorded(threaded: Threaded, found: Counterexample) -> Found | None:
    """Run a recorded schedule again on a candidate; return its failure, if any.

    Raises `CannotBegin`, and the errors of starting a candidate.
    """
    run = found.interleaved
    assert run is not None, "it was found on threads"
    [*before, _] = found.moves
    parallel = Parallel(run.case, tuple(before), run.at_once, run.stirring, run.jobs_at_once)
    case = threaded.case(parallel, watched=found.requirement == NO_RACE)
    failed = run_again(case, run.choices)
    return None if failed is None else Found(run.case, parallel, case, failed)

"""Verdicts on brokers with inspection, shared by these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.inside.step_conformance import REQUIREMENT, Watch
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.spec.messages import Fifo, Order
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Declare, Inspect, Operation
from brokerproof.spec.requirements import catalogue


def declared(order: Order | None = None, *, durable: bool = True) -> Declare:
    """Return the queue's declaration."""
    return Declare(queue="q", order=order or Fifo(), durable=durable)


def carried_out(broker: Candidate, operations: Iterable[Operation]) -> Candidate:
    """Return a broker to which this was done."""
    for operation in operations:
        assert broker.handle(operation).ok, operation
    return broker


def report_on(start: Callable[[], Candidate], operations: int = 200, examples: int = 0) -> Report:
    """Return the gate's report on a broker."""
    subject = Subject("shown", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations, examples), 0)


def outcomes(report: Report) -> dict[str, Outcome]:
    """Return the outcome of each requirement."""
    return {each.requirement.id: each.outcome for each in report.verdicts}


def departure_of(start: Callable[[], Candidate], operations: int) -> str:
    """Return the gate's reason why the steps of a broker are not those of its model."""
    (verdict,) = [
        each for each in report_on(start, operations).verdicts if each.requirement.id == REQUIREMENT
    ]
    assert verdict.outcome is Outcome.BROKEN
    return verdict.reason


def watched(broker: Candidate, operations: Iterable[Operation]) -> tuple[Watch, list[bool]]:
    """Return a watch that has looked after each operation, and whether anything had moved."""
    oracle, watch, moved = Oracle(broker.hello().capabilities), Watch(), []
    for operation in operations:
        answer = broker.handle(operation)
        assert answer.ok
        oracle.observe(operation, answer)
        moved.append(watch.look(broker, operation, answer, "", oracle.bindings))
    return watch, moved


def looking_changes_nothing(broker: Candidate) -> None:
    """Look twice, and at a copy, and see that nothing is different."""
    assert isinstance(broker, PoweredBroker)
    state, changes = broker.fingerprint(), broker.changes()
    first, again = (broker.handle(Inspect(queue="q")).inspection for _ in range(2))
    assert first is not None
    assert first == again == broker.fork().handle(Inspect(queue="q")).inspection
    assert (broker.fingerprint(), broker.changes()) == (state, changes)

"""A queue's runner takes turns in its slot as the model says, access by access."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import cast

import pytest

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.threads import Body, Threads
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.watch.path_query import Valuation, valuation
from brokerproof.models.qpid.threads.queue_runner import (
    Change,
    QueueRunner,
    Runner,
    Running,
)
from brokerproof.reference import Broker
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import Consume, Declare, Operation, Publish, SetCredit
from tests.faults.overlay import Edit, plant
from tests.faults.threads.catalogue import thread_faults
from tests.models.qpid.threads.test_queue_runner import KeepsTheSlot
from tests.models.qpid.threads.tie import AT_MOST_ONE, ONE, Naming, Tie, names_of, steps_by, tied
from tests.reference.front.reference_bench import queue_in

CHANGES = ("change", "count", "start", "leave_it")
RUNS = (
    *("hand_over", "begin", "read", "end", "take", "step_aside", "complete", "go_again", "go_on"),
    *("use_up", "give_back", "reschedule", "leave_the_rest"),
)
OPERATIONS: Mapping[str, Operation] = {
    "room 0": SetCredit(consumer="c", messages=2),
    "arrival 1": Publish(queue="q", message=Message(id="y")),
}
"""What each change is; one message waits already for room."""

RUNS_FEW, TO_THE_END = 100, 20_000
SLICE_OF_ONE = Edit(
    "qpid/push/delivery.py", "MAX_ASYNC_DELIVERIES = 10", "MAX_ASYNC_DELIVERIES = 1"
)


class Shared:
    """A queue, and its runners in the order in which they came into its slot."""

    def __init__(self, broker: Broker, threads: Threads) -> None:
        self.broker = broker
        broker.handle(Declare(queue="q", order=Fifo()))
        broker.handle(Publish(queue="q", message=Message(id="x")))
        broker.handle(Consume(queue="q", consumer="c", channel="h", credit=Credit(0)))
        self.queue = queue_in(broker)
        self.runners: list[object] = []
        broker.on_threads(partial(self._start, threads), lambda _: None)

    def _start(self, threads: Threads, _: str, job: Callable[[], None]) -> None:
        # The job is the method of a runner, which has its number from the slot.
        threads.start(f"runner {self.number_of(cast('MethodType', job).__self__)}", job)

    def number_of(self, runner: object) -> int:
        """Return the number of a runner."""
        if runner not in self.runners:
            self.runners.append(runner)
        return self.runners.index(runner)

    def bodies(self) -> Mapping[str, Body]:
        """Return what each thread does."""
        return {name: partial(self.broker.handle, each) for name, each in OPERATIONS.items()}

    def shows(self) -> Valuation:
        """Return which runner is in the slot."""
        runner = self.queue.asynchronous_runner.value
        at = -1 if runner is None else self.number_of(runner)
        return valuation(in_slot=[each == at for each in range(2)])


def counts(shared: Shared, thread: str, cell: object, _: object) -> range:
    """Return how many steps an access is: a runner begins with the slot that it leaves."""
    if cell is shared.queue.asynchronous_runner:
        return range(1, 3) if thread.startswith("runner") else ONE
    return ONE if cell is shared.queue.state_change_count else AT_MOST_ONE


def tie_of(model: type[Model] = QueueRunner, *edits: Edit) -> Tie[Shared]:
    """Return the tie of room that a consumer gains beside an arrival."""
    broker = cast("Callable[[], Broker]", plant(edits))
    idle = valuation(running=[Running.values.index("IS_IDLE")] * 2)
    return Tie(
        case=Case(
            "room beside an arrival",
            make=lambda threads: Shared(broker(), threads),
            bodies=Shared.bodies,
            judge=lambda _: (),
        ),
        system=trace(model),
        scope=Scope({Change: 2, Runner: 2}, range(1)),
        namings=[
            Naming(
                {
                    **{name: steps_by(model, CHANGES, int(name[-1])) for name in OPERATIONS},
                    **{f"runner {each}": steps_by(model, RUNS, each) for each in range(2)},
                },
                Shared.shows,
                lambda _: idle,
            )
        ],
        counts=counts,
    )


@pytest.mark.parametrize("runs", [RUNS_FEW, pytest.param(TO_THE_END, marks=pytest.mark.thorough)])
def test_each_access_is_a_step_of_the_model_and_every_step_is_made(runs: int) -> None:
    never = names_of(QueueRunner)
    for edits in ((), (SLICE_OF_ONE,)):
        found = tied(tie_of(QueueRunner, *edits), runs)
        assert found.complaints == ()
        assert found.explored.complete == (runs == TO_THE_END)
        never -= found.taken
    assert never == set()


def test_a_wrong_model_is_refused() -> None:
    [complaint] = tied(tie_of(KeepsTheSlot), RUNS_FEW).complaints
    assert complaint == "no step of KeepsTheSlot is AtomicReference.set of runner 0"


MISTAKES = {
    each.id: each.edits
    for each in thread_faults()
    if each.id in ("count-after-slot", "the-slot-is-kept-to-the-end")
}


@pytest.mark.parametrize("fault", MISTAKES)
def test_a_mistake_is_no_run_of_the_model(fault: str) -> None:
    [complaint, *_] = tied(tie_of(QueueRunner, *MISTAKES[fault]), RUNS_FEW).complaints
    assert " of QueueRunner " in complaint

"""Threads at one entry whose acquisition can be stolen: a delivery, its settlement, a deletion.

Owns the setup of such a case, its threads, and the inside checks at the end. The contract does not
apply: clients do not see a deleted queue. The checks are that no acquired entry is forgotten, and
that nothing is left of a deleted queue. `tests/models/qpid/threads` holds the moves of the entry
against their model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, cast

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.threads import Body, Threads, running
from brokerproof.reference import Broker
from brokerproof.reference.qpid.push.entries import EntryState
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered, Event
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    ConsumeMode,
    Declare,
    Delete,
    Operation,
    Publish,
    Release,
)
from tests.faults.overlay import Edit, plant
from tests.reference.front.reference_bench import queue_in, subscription_in

ADDRESS: Final = "qpid-push?acquisition=stealable"

Settling = Literal["acknowledge", "release"]


@dataclass(frozen=True)
class Scene:
    """Concurrent actions on one queue `q`, one consumer `c` and one message `a`.

    Attributes: does: the actions, each in a thread: `deliver`, a run of the consumer's first flush;
    `acknowledge` or `release` of its first delivery; `delete` of the queue; `cancel` of the
    consumer. told: the client's reaction to a delivery, in a separate thread. leaves: whether a
    cancellation of the consumer has begun: it is in no list any more, and not closed yet, so a
    deletion does not wait for a delivery on its way to it.

    """

    name: str
    does: Sequence[str]
    told: Settling | None = None
    mode: ConsumeMode = "acknowledge"
    leaves: bool = False


class Stage:
    """A broker under a scene: its one entry, its client's events, and jobs not yet run."""

    def __init__(self, scene: Scene, broker: Broker, threads: Threads) -> None:
        self.scene, self.broker, self._threads = scene, broker, threads
        self.told: list[Delivered] = []
        self.jobs: dict[str, Body] = {}
        broker.on_threads(self._start, self._tell)
        self.ask(Declare(queue="q", order=Fifo()))
        self.ask(Publish(queue="q", message=Message(id="a")))
        self.queue = queue_in(broker)
        [self.entry] = self.queue.entries.iterator()
        self.ask(Consume(queue="q", consumer="c", channel="h", mode=scene.mode, credit=Credit(1)))
        self.subscription = subscription_in(broker, "c")
        if "deliver" not in scene.does:
            self.run_jobs()
        if scene.leaves:
            self.queue.subscriptions.remove(self.subscription)

    def ask(self, operation: Operation) -> None:
        """Hand over an operation."""
        self.broker.handle(operation)

    def run_jobs(self) -> None:
        """Run all scheduled jobs, and those that they schedule."""
        while self.jobs:
            self.jobs.pop(next(iter(self.jobs)))()

    def bodies(self) -> Mapping[str, Body]:
        """Return the body of each thread."""
        ways: Mapping[str, Callable[[], object]] = {
            "deliver": self.jobs.pop("the flush of c", _nothing),
            "acknowledge": lambda: self.ask(Acknowledge(delivery="d0")),
            "release": lambda: self.ask(Release(delivery="d0")),
            "delete": lambda: self.ask(Delete(queue="q")),
            "cancel": lambda: self.queue.unsubscribe(self.subscription),
        }
        return {each: ways[each] for each in self.scene.does}

    def _start(self, name: str, job: Body) -> None:
        self.jobs[name] = job

    def _tell(self, event: Event) -> None:
        if not isinstance(event, Delivered):
            return
        self.told.append(event)
        if running() is not None and self.scene.told is not None and len(self.told) == 1:
            settle = Acknowledge if self.scene.told == "acknowledge" else Release
            body = partial(self.ask, settle(delivery=event.delivery))
            self._threads.start(f"{self.scene.told} when told", body)

    def judged(self) -> Iterator[str]:
        """Yield the failures when all has ended, in a line each."""
        state, unsettled = self.entry.state.value, [*self.broker.outbox.unsettled.values()]
        if "delete" in self.scene.does:
            if not state.dispensed:
                yield f"the queue has gone, and what was in it is {word_of(state)}"
            if unsettled:
                yield "the queue has gone, and its message can be settled still"
        elif (state.holder is not None) != (self.entry in unsettled):
            yield f"what is {word_of(state)} is unsettled {len(unsettled)} times"
        elif state.holder is not None and word_of(state) != "STEALABLE":
            yield f"no thread sends or settles what is {word_of(state)}"


def _nothing() -> None:
    raise AssertionError("nothing was to be delivered")


def word_of(state: EntryState) -> str:
    """Return the model's word for a state."""
    if state.phase.value != "acquired":
        return state.phase.name
    if state.holder is None:
        return "THE_QUEUES"
    return "STEALABLE" if state.stealable else "UNSTEALABLE"


def case_of(scene: Scene, edits: Sequence[Edit] = (), address: str = ADDRESS) -> Case[Stage]:
    """Return the case of a scene on the reference, with these faults planted."""
    start: Callable[[], Candidate] = plant(edits, address)
    return Case(
        scene.name,
        lambda threads: Stage(scene, cast("Broker", start()), threads),
        Stage.bodies,
        lambda stage: [*stage.judged()],
    )

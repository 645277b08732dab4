"""Operations that several threads hand to a broker at once, as a case that can be explored.

The file owns the beginning, the record and the end of a case. Operations one after the other
bring the broker to rest. It is copied for each run, handed the parallel operations, and drained
when all threads have ended. The contract judges the result (`histories`).

Jobs of the broker can be threads too: those that are scheduled when the threads begin. Later jobs
run after all threads have ended, or, if a case says so, each in a thread that begins at once. In
the first way most cases can be explored to their end. In the second every job meets every other,
and the interleavings are too many for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, cast

from brokerproof.checks.conversation import Copier, Misbehaviour, ask
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import Exchange
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.histories import Call, Happened, History, Judge
from brokerproof.checks.threads.threads import Body, Threads, running
from brokerproof.checks.trace.moves import Cut, Move, Settle, operation_of, settling, text_of
from brokerproof.reference.shared.atomics import AtomicInteger
from brokerproof.spec.protocol.answers import Answer, Delivered, Event
from brokerproof.spec.protocol.candidate import Candidate, OnThreads
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare, Drain, Get, Operation, Publish


@dataclass(frozen=True)
class Parallel:
    """Operations one after the other, and then at once.

    Attributes:
        before: done first; then the broker comes to rest.
        stirring: done next; the jobs that this schedules become threads later.
        at_once: a list of moves for each thread; a drain runs the jobs scheduled until then.
        jobs_at_once: whether jobs that are scheduled by threads begin at once, as threads.

    """

    name: str
    before: tuple[Move, ...]
    at_once: tuple[tuple[Move, ...], ...]
    stirring: tuple[Move, ...] = ()
    jobs_at_once: bool = False


AFTER_ALL: Final = "after all"
"""The channel on which all messages left are taken when all threads have ended."""


class CannotBegin(Exception):
    """An operation before the parallel ones failed; the message is one line."""


class Recorded:
    """A broker that threads use, and its history since they began.

    `jobs` are scheduled and not yet run. `breach` is the breach found after all threads had ended.
    `held` are the deliveries held at the beginning, by their messages.
    """

    def __init__(
        self,
        candidate: Candidate,
        threads: Threads,
        held: Mapping[str, str],
        *,
        jobs_at_once: bool,
        clients_run_jobs: bool,
    ) -> None:
        self.candidate = candidate
        self.breach: Breach | None = None
        self._held = held
        self._got: dict[tuple[int, str], str] = {}
        self.history = History()
        self.jobs: deque[tuple[str, Body]] = deque()
        # The line of an executor orders the thread that adds a job before the one that runs it.
        self._line = AtomicInteger()
        self._threads, self._jobs_at_once = threads, jobs_at_once
        self._clients_run_jobs = clients_run_jobs
        self._since: dict[int, int] = {}
        self._gets: dict[int, tuple[Get, list[Event]]] = {}
        # Cases are made only of candidates that are `OnThreads`.
        cast("OnThreads", candidate).on_threads(self._start, self._tell)

    def ask(self, move: Move) -> None:
        """Hand over the operation of a move, in a thread or before they begin, and record it.

        A settlement is left out if the client has no delivery for it: its message was not held at
        the beginning, and no get of the same thread returned it.
        """
        number = _number()
        operation = self._operation(move, number)
        if operation is None:
            return
        begun = self._threads.steps
        self._since[number] = begun
        if isinstance(operation, Get):
            self._gets[number] = operation, []
        self._step_without_threads()
        answer = ask(self.candidate, operation)
        if isinstance(answer, Misbehaviour):
            raise Misbehaved(answer.what)
        _, got = self._gets.pop(number, (None, []))
        events = (*answer.events, *got)
        self._got |= {(number, e.message): e.delivery for e in events if isinstance(e, Delivered)}
        asked = Call(operation, Answer(events, answer.error, parked=answer.parked))
        self.history.happened.append(Happened(asked, begun, self._threads.steps, _name()))

    def _operation(self, move: Move, number: int) -> Operation | None:
        if not isinstance(move, Settle):
            assert not isinstance(move, Cut), "no power is lost beside other threads"
            return move
        delivery = self._got.get((number, move.message)) or self._held.get(move.message)
        return None if delivery is None else settling(move, delivery)

    def take_what_is_left(self, moves: Sequence[Move], claims: Capabilities) -> None:
        """Come to rest, and then take all available messages of the queues of these moves.

        Otherwise a lost message would go unnoticed while no consumer has room for it. Raises
        `Misbehaved`.
        """
        self.run_jobs()
        self.ask(Drain())
        published = sum(isinstance(move, Publish) for move in moves)
        for queue in dict.fromkeys(m.queue for m in moves if isinstance(m, Declare)):
            if claims.get:
                for _ in range(published + 1):
                    told = len(self.history.happened)
                    self.ask(Get(queue=queue, channel=AFTER_ALL))
                    self.run_jobs()
                    if not any(map(_is_a_get_with_a_message, self.history.happened[told:])):
                        break
            elif "acknowledge" in claims.modes:
                self.ask(Consume(queue=queue, consumer=f"{AFTER_ALL}, {queue}", channel=AFTER_ALL))

    def come_to_rest(self) -> Answer | Misbehaviour:
        """Run the jobs that are left; then ask the broker to drain."""
        self.run_jobs()
        return ask(self.candidate, Drain())

    def run_jobs(self) -> None:
        """Run the jobs that are scheduled, and all that these schedule."""
        while self._is_scheduled():
            _, job = self.jobs.popleft()
            self._since[_number()] = self._threads.steps
            job()

    def _is_scheduled(self) -> bool:
        return (running() is None or self._line.get() > 0) and bool(self.jobs)

    def _start(self, name: str, job: Body) -> None:
        if self._jobs_at_once and running() is not None:
            self._threads.start(name, job)
        else:
            if self._clients_run_jobs:
                self._line.increment_and_get()
            self.jobs.append((name, job))

    def _tell(self, event: Event) -> None:
        number = _number()
        if isinstance(event, Delivered) and event.consumer is None:
            answered = self._get_of(event, number)
            if answered is not None:
                answered.append(event)
                return
        # The telling thread has looked for the message since its last event.
        self._step_without_threads()
        now = self._threads.steps
        self.history.happened.append(Happened(event, self._since.get(number, 0), now, _name()))
        self._since[number] = now

    def _get_of(self, event: Delivered, number: int) -> list[Event] | None:
        """Return the events of the get that an event answers; None if there is no such get.

        A publisher's thread may give a message to a get under way. The event does not name that
        get, so it is the first without an answer. A get's own thread tells its own event.
        """
        if number in self._gets:
            return self._gets[number][1]
        waiting = [got for get, got in self._gets.values() if get.queue == event.queue and not got]
        return waiting[0] if waiting else None

    def _step_without_threads(self) -> None:
        """Count a step where no thread does: before they begin, and when they have ended."""
        if running() is None:
            self._threads.steps += 1


def _is_a_get_with_a_message(happened: Happened) -> bool:
    return isinstance(happened.what, Call) and bool(happened.what.answer.events)


_NO_THREAD: Final = -1


def _number() -> int:
    thread = running()
    return _NO_THREAD if thread is None else thread.number


def _name() -> str:
    thread = running()
    return "" if thread is None else thread.name


class Misbehaved(Exception):
    """An operation was answered in the wrong form, or not at all; the message is one line."""


def begin(parallel: Parallel, candidate: Candidate, oracle: Oracle) -> tuple[Exchange, ...]:
    """Perform the operations before the parallel ones, drain, and return the steps.

    Raises `CannotBegin`.
    """
    oracle.watch = None
    steps = []
    for move in (*parallel.before, Drain()):
        operation = operation_of(move, oracle.bindings)
        if operation is None:
            raise CannotBegin(f"the message that this settles is not held: {text_of(move)}")
        answer = ask(candidate, operation)
        if isinstance(answer, Misbehaviour):
            raise CannotBegin(answer.what)
        broken = oracle.observe(operation, answer)
        if broken:
            raise CannotBegin(f"{broken[0].requirement}: {broken[0].reason}")
        steps.append(Exchange(move, operation, answer))
    return tuple(steps)


def parallel_case(
    parallel: Parallel,
    candidate: Candidate,
    copier: Copier,
    oracle: Oracle,
    watches: Sequence[type] = (),
) -> Case[Recorded]:
    """Return the case of operations at once on a candidate just reset.

    Raises `CannotBegin`. The caller must not use the candidate and the oracle again.
    """
    begin(parallel, candidate, oracle)
    asked = (*parallel.before, *parallel.stirring, *chain.from_iterable(parallel.at_once))
    channels = {each.consumer: each.channel for each in asked if isinstance(each, Consume)}
    channels |= {f"{AFTER_ALL}, {m.queue}": AFTER_ALL for m in asked if isinstance(m, Declare)}
    judge = Judge(oracle, channels)
    clients_run_jobs = any(isinstance(m, Drain) for m in chain.from_iterable(parallel.at_once))
    held = {
        oracle.bindings.name_of_entry(held.entry): name
        for name, held in oracle.bindings.held.items()
    }

    def make(threads: Threads) -> Recorded:
        recorded = Recorded(
            copier.fork(candidate),
            threads,
            held,
            jobs_at_once=parallel.jobs_at_once,
            clients_run_jobs=clients_run_jobs,
        )
        for operation in parallel.stirring:
            recorded.ask(operation)
        return recorded

    def bodies(recorded: Recorded) -> Mapping[str, Body]:
        clients = {
            f"client {number}": partial(_ask_all, recorded, moves)
            for number, moves in enumerate(parallel.at_once, start=1)
        }
        jobs = dict(recorded.jobs)
        assert len(jobs) == len(recorded.jobs), "jobs can be told apart"
        recorded.jobs.clear()
        return clients | jobs

    def judged(recorded: Recorded) -> list[str]:
        try:
            recorded.take_what_is_left(asked, oracle.bindings.claims)
        except Misbehaved as error:
            return [str(error)]
        answer = recorded.come_to_rest()
        if isinstance(answer, Misbehaviour):
            return [answer.what]
        breach = recorded.breach = judge.breach(recorded.history, answer)
        return [] if breach is None else [f"{breach.requirement}: {breach.reason}"]

    return Case(parallel.name, make, bodies, judged, watches=watches)


def _ask_all(recorded: Recorded, moves: Sequence[Move]) -> None:
    for move in moves:
        if isinstance(move, Drain):
            recorded.run_jobs()
        else:
            recorded.ask(move)

"""A consumer's place in a queue is moved as the model of paired pointers says, access by access."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, cast

import pytest

from benchmarks.returns_and_deliveries import Returning, returning
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.threads import Body
from brokerproof.models.language.attack.mutants import mutants
from brokerproof.models.language.attack.mutation_testing import (
    Subject,
    attack,
    explained,
    reasons_of,
)
from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.watch.path_query import Valuation, valuation
from brokerproof.models.language.watch.paths import Taken
from brokerproof.models.qpid.moving_place import Opener, Opening, Seeker, Seeking
from brokerproof.models.qpid.paired_pointer import REFUSED_BY_THREADS, PairedPointer
from brokerproof.models.qpid.pointer_queue import Entry, Status
from brokerproof.models.qpid.released_pointer import ReleasedPointer
from brokerproof.reference import Broker, make
from brokerproof.reference.qpid.push.entries import QueueEntry
from brokerproof.reference.qpid.push.pointers import Pointer
from brokerproof.reference.shared.atomics import AtomicReference
from brokerproof.spec.messages import Fifo, Message, Order, Priority
from tests.checks.threads.test_returns_and_deliveries import PASSED
from tests.faults.overlay import Edit, plant
from tests.models.qpid.test_moving_place import Forgetful
from tests.models.qpid.threads.tie import (
    AT_MOST_ONE,
    NONE,
    ONE,
    Naming,
    Tie,
    names_of,
    steps_by,
    tied,
)

OPENS = ("find_it_gone", "read_as_opener", "lower", "come_too_late_to_lower")
SEEKS = (
    *("read", "choose", "give_up", "skip", "find", "acquire", "miss", "move", "set", "leave"),
    *("come_too_late", "read_last", "read_released", "clear"),
)
OWN = {
    "return": (*OPENS, "give_back"),
    "arrive": (*OPENS, "insert", *SEEKS),
    "deliver": SEEKS,
    "seek": SEEKS,
}
"""What a thread may do in its own name, as an opener or a seeker."""

OTHER = {
    "arrive": ("append", "taken_by_another"),
    "acknowledge": ("dequeue",),
    "take": ("taken_by_another",),
}
"""What it may do in no name."""

FIFO, LEVELS = Fifo(), Priority(10)
CASES: Mapping[str, tuple[Order, tuple[str, ...]]] = {
    "two returns": (FIFO, ("return ba 0", "deliver 0")),
    "two returns by priority": (LEVELS, ("return ab 0", "deliver 0")),
    "a return and an acknowledgement": (FIFO, ("return b 0", "acknowledge a", "deliver 0")),
    "a return that another takes": (FIFO, ("return a 0", "take", "deliver 0")),
    "an arrival": (FIFO, ("arrive u 1", "deliver 0")),
    "an urgent arrival": (LEVELS, ("arrive u 1", "deliver 0")),
    "a return beside two that seek": (FIFO, ("return a 0", "deliver 0", "seek 1")),
}
"""By name, the order of the queue, and what its threads do; a number is the thread's."""

NAMES = {FIFO: "abu", LEVELS: "aub"}
"""The messages in the order of the queue; `u` arrives later."""

FEW, PAIR = range(3), range(1, 3)
"""How many steps an access may be that reads an entry's state, and one that reads the place."""


def body_of(shared: Returning, does: str) -> Body:
    """Return what a thread does, by the methods of the queue."""
    what, *rest = does.split()
    by_name = dict(zip("ab", shared.entries, strict=True))
    entries = [by_name[name] for name in rest[0] if name in by_name] if rest else []
    match what:
        case "return":
            return partial(shared.release, *entries)
        case "deliver":
            return partial(shared.deliver, 2)
        case "acknowledge":
            return partial(shared.queue.remove, entries[0], shared.holder)
        case "seek":
            return partial(
                shared.subscriber.pointer.next_available, shared.queue.entries, shared.subscriber
            )
        case "arrive":
            return partial(shared.queue.enqueue, Message(id="u", priority=9))
    return partial(shared.attempt, shared.queue, shared.holder)


def steps_of(does: str, model: type[Model]) -> list[Taken]:
    """Return what a thread may do; an arrival is offered to the consumers as well."""
    what, *rest = does.split()
    others = steps_by(model, OTHER.get(what, ()))
    return [*others, *(steps_by(model, OWN[what], int(rest[-1])) if what in OWN else ())]


def shows(shared: Returning) -> Valuation:
    """Return the entries' states and the subscriber's place."""
    for level in shared.queue.entries.sub_lists():
        entry = level.head.next.value
        while entry is not None:
            if entry not in shared.entries:
                shared.entries.append(entry)
            entry = entry.next.value
    status = {"": "DEQUEUED"}
    for each in shared.entries:
        phase = each.state.value.phase.value.upper()
        status[name_of(each)] = "DEQUEUED" if phase == "DELETED" else phase
    cells = cells_of(shared.subscriber.pointer)
    last_seen, released = cells[0].value if len(cells) == 1 else [each.value for each in cells]
    names = ["", *NAMES[shared.queue.order]]
    return valuation(
        status=[Status.values.index(status.get(name, "ABSENT")) for name in names],
        last_seen=names.index(name_of(last_seen)),
        rewound=released is not None,
        released=None if released is None else names.index(name_of(released)),
    )


def cells_of(pointer: Pointer) -> list[AtomicReference[Any]]:
    """Return the cells of a place: that of a pair, or two as published."""
    names = ("place", "last_seen", "released")
    return [getattr(pointer, name) for name in names if hasattr(pointer, name)]


def name_of(entry: QueueEntry) -> str:
    """Return the name of an entry; that of a dummy head is empty."""
    return "" if entry.message is None else entry.message.id


def counts(shared: Returning, thread: str, cell: object, result: object) -> range:
    """Return how many steps an access is; to other cells only a swap is one, if it links."""
    is_swap, seeks = isinstance(result, bool), thread.startswith("deliver")
    if cell in cells_of(shared.subscriber.pointer):
        return ONE if is_swap else PAIR
    if cell in [each.state for each in shared.entries]:
        return (ONE if seeks else AT_MOST_ONE) if is_swap else FEW
    return AT_MOST_ONE if result is True else NONE


def tie_of(
    name: str,
    model: type[Model] = PairedPointer,
    broker: Callable[[], Broker] = Broker,
    system: System | None = None,
) -> Tie[Returning]:
    """Return the tie of a case, which begins with two messages that another consumer holds.

    `system` is a changed one of the model.
    """
    order, threads = CASES[name]
    return Tie(
        case=Case(
            name,
            make=lambda _: returning(order, broker()),
            bodies=lambda shared: {each: body_of(shared, each) for each in threads},
            judge=lambda _: (),
        ),
        system=system or trace(model),
        scope=Scope({Entry: 4, Seeker: 2, Opener: 2}, range(1), {"head": 0}),
        namings=[
            Naming(
                {each: steps_of(each, model) for each in threads},
                shows,
                lambda _: valuation(opening=[Opening.values.index("OPENS")] * 2),
            )
        ],
        counts=counts,
        before=[
            *steps_by(model, ("append", "taken_by_another")),
            *steps_of("deliver 0", model),
        ],
        rests=valuation(
            seeking=[Seeking.values.index("READS")] * 2,
            opening=[Opening.values.index("OPENS")] * 2,
        ),
    )


FILE = "qpid/push/pointers.py"
PUBLISHED = "qpid-push?pointer=published"


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "address"),
    [(PairedPointer, "qpid-push"), (ReleasedPointer, PUBLISHED)],
)
def test_each_access_is_a_step_of_the_model_and_every_step_is_made(
    model: type[Model], address: str
) -> None:
    never = names_of(model)
    for name in CASES:
        found = tied(tie_of(name, model, partial(make, address)))
        assert (found.complaints, found.explored.complete) == ((), True), name
        never -= found.taken
    assert never == set()


@pytest.mark.parametrize(
    ("model", "address", "name"),
    [
        (ReleasedPointer, "qpid-push", "two returns"),
        (PairedPointer, PUBLISHED, "two returns"),
        (Forgetful, "qpid-push", "two returns"),
    ],
)
def test_a_model_of_another_place_is_refused(model: type[Model], address: str, name: str) -> None:
    [complaint] = tied(tie_of(name, model, partial(make, address))).complaints
    assert complaint.startswith(f"no step of {model.__name__} is ")


MISTAKES = {
    "the place stays where it may pass the entry": ("two returns by priority", PASSED),
    "a delivery forgets what is next": (
        "two returns",
        Edit(FILE, "following = entry, candidate\n", "following = entry, None\n"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_pointer_is_no_run_of_the_model(mistake: str) -> None:
    name, edit = MISTAKES[mistake]
    broker = cast("Callable[[], Broker]", plant([edit]))
    [complaint] = tied(tie_of(name, broker=broker)).complaints
    assert " of PairedPointer " in complaint


EXPLAINS = {
    place: reasons[REFUSED_BY_THREADS]
    for place, reasons in explained(reasons_of(PairedPointer)).items()
    if REFUSED_BY_THREADS in reasons
}


@cache
def survivors() -> tuple[str, ...]:
    """Return the mutants that neither an invariant nor a run refutes."""
    judged = attack(Subject(trace(PairedPointer))).judged
    return tuple(each.name for each in judged if each.outcome == "survivor")


@pytest.mark.thorough
@pytest.mark.parametrize("action", sorted({place.partition(": ")[0] for place in EXPLAINS}))
def test_the_threads_refuse_as_many_surviving_mutants_as_the_reason_explains(action: str) -> None:
    system = trace(PairedPointer)
    refused: Counter[str] = Counter()
    for mutant in mutants(system):
        place = ": ".join(mutant.name.split(": ")[:2])
        # A model that may begin with any value may begin as the reference does.
        as_it_is = mutant.name.endswith(": anything")
        if place in EXPLAINS and place.startswith(f"{action}: ") and mutant.name in survivors():
            refused[place] += not as_it_is and is_refused(mutant.within(system))
    assert refused == {p: n for p, n in EXPLAINS.items() if p.startswith(f"{action}: ")}


def is_refused(changed: System) -> bool:
    """Whether the threads of a case do what no run of a changed model does."""
    return any(tied(tie_of(name, system=changed)).complaints for name in CASES)

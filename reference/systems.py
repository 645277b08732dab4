"""How a queue of each documented system is made, and what such a broker claims.

Owns the construction of queues from settings, the union of all claims, and how each system differs
from it. A further system is a further row of `SYSTEMS`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from brokerproof.reference.activemq.fingerprints import fingerprint_cursor_queue
from brokerproof.reference.activemq.inspection import view_of_cursor_queue
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.reference.activemq.storage import CursorStorage
from brokerproof.reference.front.storage import TemporaryFiles
from brokerproof.reference.qpid.fingerprints import fingerprint_queue
from brokerproof.reference.qpid.inspection import view_of
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.push.pointers import InclusivePointer, Pointer, ReleasedPointer
from brokerproof.reference.qpid.push.published_pointer import PublishedPointer
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.reference.qpid.push.stealing import StealingQueue
from brokerproof.reference.rabbitmq.paging import Parameters
from brokerproof.reference.rabbitmq.process.inspection import view_of_process
from brokerproof.reference.rabbitmq.process.queue import QueueProcess
from brokerproof.reference.rabbitmq.process.storage import NodeStorage
from brokerproof.reference.settings import CURSORS, PointerForm, Settings, SystemName
from brokerproof.reference.shared.disk import SimulatedDisk
from brokerproof.spec.protocol.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.front.storage import Definition, Storage
    from brokerproof.reference.qpid.pull.sessions import Clients
    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.spec.protocol.answers import Inspection

POINTERS: Mapping[PointerForm, Callable[[QueueEntry], Pointer]] = {
    "released": ReleasedPointer,
    "published": PublishedPointer,
    "inclusive": InclusivePointer,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Premises:
    """The parts that the queues of one broker share; `storage` is None without a disk."""

    settings: Settings
    outbox: Outbox
    executor: Executor
    clients: Clients
    storage: Storage | None = None


MakeQueue: TypeAlias = "Callable[[Premises, Definition], AnyQueue]"


def _push_queue(premises: Premises, definition: Definition) -> Queue:
    settings = premises.settings
    make = StealingQueue if settings.acquisition == "stealable" else Queue
    pointer = POINTERS[settings.pointer]
    return make(definition.name, definition.order, pointer, premises.outbox, premises.executor)


def _pull_queue(premises: Premises, definition: Definition) -> PullQueue:
    return PullQueue(
        definition.name,
        definition.order,
        POINTERS[premises.settings.pointer],
        premises.outbox,
        premises.executor,
        premises.clients,
    )


def _queue_process(premises: Premises, definition: Definition) -> QueueProcess:
    storage = premises.storage
    assert isinstance(storage, NodeStorage), "what pages needs a disk: a durable broker has one"
    return QueueProcess(
        definition.name,
        definition.order,
        premises.outbox,
        premises.executor,
        storage,
        storage.open(definition),
    )


def _cursor_queue(premises: Premises, definition: Definition) -> CursorQueue:
    storage = premises.storage
    assert isinstance(storage, CursorStorage), "a durable broker of this system has such a disk"
    return CursorQueue(definition, premises.outbox, premises.executor, storage)


def storage_of(settings: Settings) -> Storage:
    """Return an empty disk for a durable system: a simulated one, or a temporary folder."""
    disk = TemporaryFiles() if settings.disk == "files" else SimulatedDisk()
    if settings.system in CURSORS:
        return CursorStorage(disk, settings.cursor_parameters(), settings.unsynced)
    parameters = Parameters(
        segment=settings.segment,
        batch=settings.batch,
        journal_limit=settings.journal,
        file_size=settings.file,
        recovered=settings.recovered,
    )
    return NodeStorage(disk, parameters, settings.target, settings.unsynced)


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """How a system makes, names and shows a queue, and its differences from the front's claims.

    Queues of one `fingerprint` behave alike. Each function takes the system's own kind of queue.
    """

    make_queue: MakeQueue
    fingerprint: Callable[[Any], Hashable]
    view: Callable[[Any], Inspection]
    differs: Mapping[str, object]


LEVELS_MAX = 10
"""The largest number of priority levels (Qpid, Priority Queues: the broker's default is ten)."""

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=LEVELS_MAX,
    priority_mapping="amqp",
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages", "bytes", "change", "channel"),
    oversize="when_idle",
    selectors=True,
    clock=True,
    delay=True,
    expiry=True,
    auto_close=True,
    auto_delete=True,
    exclusive=True,
    flush=True,
    get=True,
    browse=True,
    release_position="original",
    event_order="total",
    inspect=True,
    purge=True,
    delete=True,
)
"""The union of all claims; `inspect` shows the released form of pointers only."""

_CURSOR = System(
    _cursor_queue,
    fingerprint_cursor_queue,
    view_of_cursor_queue,
    {
        "credit": ("messages", "change"),
        "oversize": "never",
        "selectors": False,
        "clock": False,
        "delay": False,
        "expiry": False,
        "auto_close": False,
        "exclusive": False,
        "flush": False,
        "consumer_priority": True,
        "durable": True,
        "release_position": "head",
    },
)

SYSTEMS: dict[SystemName, System] = {
    "qpid-push": System(_push_queue, fingerprint_queue, view_of, {}),
    "qpid-pull": System(
        _pull_queue,
        fingerprint_queue,
        view_of,
        {
            "clock": False,
            "delay": False,
            "expiry": False,
            "consumer_priority": True,
            "multi_queue": True,
        },
    ),
    "rabbitmq-paging": System(
        _queue_process,
        QueueProcess.fingerprint,
        view_of_process,
        {
            "priority_mapping": "clamp",
            "modes": ("acknowledge", "automatic"),
            "credit": ("messages", "change", "channel"),
            "oversize": "never",
            "selectors": False,
            "clock": False,
            "delay": False,
            "expiry": False,
            "auto_close": False,
            "flush": False,
            "browse": False,
            "consumer_priority": True,
            "durable": True,
        },
    ),
    "activemq-cursor": _CURSOR,
    "activemq-cursor-5.1": _CURSOR,
}


def claims_of(settings: Settings) -> Capabilities:
    """Return what a broker claims.

    Only the released form of pointers can be shown. Only a system whose memory can run out parks.
    """
    system = SYSTEMS[settings.system]
    differs = dict(system.differs)
    if settings.pointer != "released":
        differs["inspect"] = False
    if system.make_queue is _cursor_queue:
        differs["parks"] = settings.cursor_parameters().may_park()
    return msgspec.structs.replace(CLAIMS, **differs)

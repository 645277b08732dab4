"""Which documented system a queue is of, and which of its variants: the one place that chooses.

Owns the parameters, their allowed values, the making of a queue from them, and in what the claims
of a system differ from those of the front. A further system is a further row of `SYSTEMS`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import msgspec

from brokerproof.reference.pointers import InclusivePointer, Pointer, ReleasedPointer
from brokerproof.reference.published_pointer import PublishedPointer
from brokerproof.reference.pull.queue import PullQueue
from brokerproof.reference.pull.sessions import Clients, ConnectionForm
from brokerproof.reference.queue import Queue
from brokerproof.reference.stealing import StealingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from brokerproof.reference.entries import QueueEntry
    from brokerproof.reference.outbox import Executor, Outbox
    from brokerproof.spec.capabilities import Capabilities
    from brokerproof.spec.messages import Order

SystemName: TypeAlias = Literal["qpid-push", "qpid-pull"]
PointerForm: TypeAlias = Literal["released", "published", "inclusive"]
RunnerPolicy: TypeAlias = Literal["eager", "drain"]
AcquisitionForm: TypeAlias = Literal["firm", "stealable"]

POINTERS: Mapping[PointerForm, Callable[[QueueEntry], Pointer]] = {
    "released": ReleasedPointer,
    "published": PublishedPointer,
    "inclusive": InclusivePointer,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How a broker is put together.

    `pointer`: the form of a subscription's place, see `pointers`. `runner`: when a scheduled job
    runs, `eager` at the end of the operation that scheduled it, `drain` not before the next drain.
    `connections`: whether each channel has one of its own, where consumers pull. `acquisition`:
    whether the queue itself may take away what a consumer was sent, see `stealing`.
    """

    system: SystemName = "qpid-push"
    pointer: PointerForm = "released"
    runner: RunnerPolicy = "eager"
    connections: ConnectionForm = "channel"
    acquisition: AcquisitionForm = "firm"

    def __post_init__(self) -> None:
        """Refuse values that are not among the allowed ones, or do not go together."""
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
        if self.system == "qpid-pull" and self.pointer == "inclusive":
            # A pointer that stands on what was returned is not moved back, so nobody is notified.
            raise ValueError("qpid-pull has no inclusive pointers")
        if self.system == "qpid-push" and self.connections != "channel":
            raise ValueError("qpid-push knows no connections; that is a parameter of qpid-pull")
        if self.system == "qpid-pull" and self.acquisition != "firm":
            raise ValueError("qpid-pull acquires firmly; acquisition is a parameter of qpid-push")

    def address(self) -> str:
        """Return the address of such a broker: parameters only where one is not the default."""
        named = (self.pointer, self.runner) != ("released", "eager")
        parameters = [f"pointer={self.pointer}", f"runner={self.runner}"] if named else []
        if self.connections != "channel":
            parameters.append(f"connections={self.connections}")
        if self.acquisition != "firm":
            parameters.append(f"acquisition={self.acquisition}")
        return self.system + ("?" if parameters else "") + "&".join(parameters)


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "system": get_args(SystemName),
    "pointer": get_args(PointerForm),
    "runner": get_args(RunnerPolicy),
    "connections": get_args(ConnectionForm),
    "acquisition": get_args(AcquisitionForm),
}
"""The parameters and their allowed values, the default first."""


def settings_from(parameters: Mapping[str, str]) -> Settings:
    """Return the settings that text parameters ask for; ValueError names the one that is wrong."""
    system = cast("SystemName", parameters.get("system", "qpid-push"))
    pointer = cast("PointerForm", parameters.get("pointer", "released"))
    runner = cast("RunnerPolicy", parameters.get("runner", "eager"))
    connections = cast("ConnectionForm", parameters.get("connections", "channel"))
    acquisition = cast("AcquisitionForm", parameters.get("acquisition", "firm"))
    return Settings(system, pointer, runner, connections, acquisition)


MakeQueue: TypeAlias = "Callable[[Settings, str, Order, Outbox, Executor, Clients], Queue]"


def _push_queue(
    settings: Settings, name: str, order: Order, outbox: Outbox, executor: Executor, _: Clients
) -> Queue:
    make = StealingQueue if settings.acquisition == "stealable" else Queue
    return make(name, order, POINTERS[settings.pointer], outbox, executor)


def _pull_queue(
    settings: Settings,
    name: str,
    order: Order,
    outbox: Outbox,
    executor: Executor,
    clients: Clients,
) -> Queue:
    return PullQueue(name, order, POINTERS[settings.pointer], outbox, executor, clients)


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """How a system makes a queue, and which claims of the front it changes, each to what."""

    make_queue: MakeQueue
    differs: Mapping[str, object]


SYSTEMS: Mapping[SystemName, System] = {
    "qpid-push": System(_push_queue, {}),
    "qpid-pull": System(
        _pull_queue,
        {
            "clock": False,
            "consumer_priority": True,
            "multi_queue": True,
        },
    ),
}


def claims_of(settings: Settings, front: Capabilities) -> Capabilities:
    """Return what a broker claims; only the released form of pointers can be shown."""
    differs = dict(SYSTEMS[settings.system].differs)
    if settings.pointer != "released":
        differs["inspect"] = False
    return msgspec.structs.replace(front, **differs)

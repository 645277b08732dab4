"""Which documented system a queue is of, and which of its variants: the one place that chooses.

Owns the parameters, their allowed values and the making of a queue from them. A further system is a
further row of `SYSTEMS`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from brokerproof.reference.pointers import InclusivePointer, Pointer, ReleasedPointer
from brokerproof.reference.published_pointer import PublishedPointer
from brokerproof.reference.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from brokerproof.reference.entries import QueueEntry
    from brokerproof.reference.outbox import Executor, Outbox
    from brokerproof.spec.messages import Order

SystemName: TypeAlias = Literal["qpid-push"]
PointerForm: TypeAlias = Literal["released", "published", "inclusive"]
RunnerPolicy: TypeAlias = Literal["eager", "drain"]

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
    """

    system: SystemName = "qpid-push"
    pointer: PointerForm = "released"
    runner: RunnerPolicy = "eager"

    def __post_init__(self) -> None:
        """Refuse values that are not among the allowed ones, naming them."""
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "system": get_args(SystemName),
    "pointer": get_args(PointerForm),
    "runner": get_args(RunnerPolicy),
}
"""The parameters and their allowed values, the default first."""


def settings_from(parameters: Mapping[str, str]) -> Settings:
    """Return the settings that text parameters ask for; ValueError names the one that is wrong."""
    system = cast("SystemName", parameters.get("system", "qpid-push"))
    pointer = cast("PointerForm", parameters.get("pointer", "released"))
    runner = cast("RunnerPolicy", parameters.get("runner", "eager"))
    return Settings(system, pointer, runner)


def _push_queue(
    settings: Settings, name: str, order: Order, outbox: Outbox, executor: Executor
) -> Queue:
    return Queue(name, order, POINTERS[settings.pointer], outbox, executor)


SYSTEMS: Mapping[SystemName, Callable[[Settings, str, Order, Outbox, Executor], Queue]] = {
    "qpid-push": _push_queue,
}
"""How each system makes a queue."""

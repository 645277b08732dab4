"""The settings of a reference broker: its system, and the parameters of that system's variants.

Owns the parameters, their allowed values, and how they are written in an address. `systems` builds
a broker from them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from brokerproof.reference.activemq import parameters as cursor
from brokerproof.reference.activemq.bit_array import AuditRules
from brokerproof.reference.activemq.parameters import CursorParameters
from brokerproof.reference.qpid.pull.sessions import ConnectionForm
from brokerproof.reference.rabbitmq.parameters import SEGMENT_MAX
from brokerproof.spec.protocol.candidate import Unsynced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SystemName: TypeAlias = Literal[
    "qpid-push", "qpid-pull", "rabbitmq-paging", "activemq-cursor", "activemq-cursor-5.1"
]
PointerForm: TypeAlias = Literal["released", "published", "inclusive"]
RunnerPolicy: TypeAlias = Literal["eager", "drain"]
AcquisitionForm: TypeAlias = Literal["firm", "stealable"]
Recovered: TypeAlias = Literal["known", "delivered"]
DiskKind: TypeAlias = Literal["simulated", "files"]

NUMBER_MAX: Final = 2**31 - 1
CURSORS: Final[tuple[SystemName, ...]] = ("activemq-cursor", "activemq-cursor-5.1")
DURABLE: Final[tuple[SystemName, ...]] = ("rabbitmq-paging", *CURSORS)
"""The systems with a disk."""

ANY_NUMBER: Final = "any"
"""How a `target` of None is written."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How a broker is put together.

    `pointer`: the form of a subscription's position, see `pointers`. `runner`: when a scheduled job
    runs: `eager` at the end of the operation that scheduled it, `drain` not before the next drain.
    `connections`: whether each channel has a connection of its own, in pull queues. `acquisition`:
    whether the queue itself may take a sent entry from its consumer, see `stealing`.

    For the paging queue: `segment`, `batch`, `journal` and `file` are sizes, see
    `paging.parameters`. `target` is the number of messages of a queue allowed in RAM, None for no
    limit. `unsynced`: what a crash leaves of unsynced bytes. `recovered`: how a message comes back
    of which no delivery is recorded; `delivered` is the release's way.

    For every system with a disk, `disk`: a simulated one, which can be copied, or real files in a
    temporary folder. `cursor` has the parameters of ActiveMQ's queue; None stands for the system's
    defaults.
    """

    system: SystemName = "qpid-push"
    pointer: PointerForm = "released"
    runner: RunnerPolicy = "eager"
    connections: ConnectionForm = "channel"
    acquisition: AcquisitionForm = "firm"
    segment: int = 16_384
    batch: int = 64
    journal: int = 262_144
    file: int = 16 * 1024 * 1024
    target: int | None = None
    unsynced: Unsynced = "lost"
    recovered: Recovered = "known"
    disk: DiskKind = "simulated"
    cursor: CursorParameters | None = None

    def __post_init__(self) -> None:
        """Refuse values outside the allowed ones, and values that do not go together."""
        system = one_of("system", self.system, get_args(SystemName))
        for name, parameter in PARAMETERS.items():
            value, default = self.value_of(name), self.default_of(name)
            parameter.check(name, value)
            if value != default and system not in parameter.systems:
                known = " and ".join(parameter.systems)
                raise ValueError(f"{system} knows no {name}; that is a parameter of {known}")
        if self.system == "qpid-pull" and self.pointer == "inclusive":
            # An inclusive pointer stands on a returned entry and is not moved back, so no consumer
            # is woken.
            raise ValueError("qpid-pull has no inclusive pointers")

    def address(self) -> str:
        """Return the address of such a broker; defaults are left out."""
        changed = [name for name in PARAMETERS if self.value_of(name) != self.default_of(name)]
        if not {"pointer", "runner"}.isdisjoint(changed) and self.system not in DURABLE:
            changed = [name for name in PARAMETERS if name in {"pointer", "runner", *changed}]
        values = [f"{name}={_text(self.value_of(name))}" for name in changed]
        return self.system + ("?" if values else "") + "&".join(values)

    def cursor_parameters(self) -> CursorParameters:
        """Return the parameters of ActiveMQ's queue."""
        return self.cursor or cursor_defaults(self.system)

    def value_of(self, name: str) -> object:
        """Return the value of a parameter."""
        return getattr(self.cursor_parameters() if name in OF_CURSOR else self, name)

    def default_of(self, name: str) -> object:
        """Return this system's default for a parameter."""
        return getattr(cursor_defaults(self.system), name) if name in OF_CURSOR else DEFAULTS[name]


def cursor_defaults(system: SystemName) -> CursorParameters:
    """Return a system's defaults for the parameters of ActiveMQ's queue."""
    return cursor.RELEASE_5_1 if system == "activemq-cursor-5.1" else cursor.REPAIRED


def _text(value: object) -> str:
    return ANY_NUMBER if value is None else str(value)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is allowed; otherwise the ValueError lists the allowed ones."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The systems that have a parameter, how an address writes it, and its check."""

    systems: tuple[SystemName, ...]
    read: Callable[[str, str], Any]
    check: Callable[[str, Any], object]


def _choice(form: Any, *systems: SystemName) -> Parameter:
    allowed = get_args(form)

    def read(name: str, text: str) -> str:
        return one_of(name, text, allowed)

    return Parameter(systems, read, read)


def _number(
    *systems: SystemName, least: int, most: int = NUMBER_MAX, or_any: bool = False
) -> Parameter:
    allowed = f"a number from {least} to {most}" + (f", or {ANY_NUMBER}" if or_any else "")

    def check(name: str, value: int | None) -> None:
        if value is None and or_any:
            return
        if value is None or not least <= value <= most:
            raise ValueError(f"{name} must be {allowed}, not {value}")

    def read(name: str, text: str) -> int | None:
        if or_any and text == ANY_NUMBER:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
            raise ValueError(f"{name} must be {allowed}, not {text!r}")
        return int(text)

    return Parameter(systems, read, check)


PARAMETERS: Mapping[str, Parameter] = {
    "pointer": _choice(PointerForm, "qpid-push", "qpid-pull"),
    "runner": _choice(RunnerPolicy, *get_args(SystemName)),
    "connections": _choice(ConnectionForm, "qpid-pull"),
    "acquisition": _choice(AcquisitionForm, "qpid-push"),
    "segment": _number("rabbitmq-paging", least=1, most=SEGMENT_MAX),
    "batch": _number("rabbitmq-paging", least=1),
    "journal": _number("rabbitmq-paging", least=0),
    "file": _number("rabbitmq-paging", least=1),
    "target": _number("rabbitmq-paging", least=0, or_any=True),
    "unsynced": _choice(Unsynced, *DURABLE),
    "recovered": _choice(Recovered, "rabbitmq-paging"),
    "disk": _choice(DiskKind, *DURABLE),
    "memory": _number(*CURSORS, least=0),
    "minimum": _number(*CURSORS, least=0),
    "page": _number(*CURSORS, least=1),
    "water_mark": _number(*CURSORS, least=1, most=100),
    "depth": _number(*CURSORS, least=0),
    "producers": _number(*CURSORS, least=1),
    "word": _number(*CURSORS, least=1, most=64),
    "lag": _number(*CURSORS, least=0),
    "data": _number(*CURSORS, least=1),
    "audit": _choice(AuditRules, *CURSORS),
    "read": _choice(cursor.Reading, *CURSORS),
    "detached": _choice(cursor.Detached, *CURSORS),
    "pages": _choice(cursor.Pages, *CURSORS),
    "duplicates": _choice(cursor.Duplicates, *CURSORS),
    "passes": _choice(cursor.Passes, *CURSORS),
    "cache": _choice(cursor.CacheOff, *CURSORS),
    "paged": _choice(cursor.PagedIn, *CURSORS),
    "leaving": _choice(cursor.Leaving, *CURSORS),
    "in_flight": _choice(cursor.InFlight, *CURSORS),
    "classes": _choice(cursor.Classes, *CURSORS),
    "levels": _choice(cursor.Levels, *CURSORS),
    "room": _choice(cursor.Room, *CURSORS),
    "free_list": _choice(cursor.FreeListRule, *CURSORS),
    "flow": _choice(cursor.FlowControl, *CURSORS),
    "transient": _choice(cursor.Transient, *CURSORS),
    "groups": _choice(cursor.Groups, *CURSORS),
}
"""The parameters, in the order of an address."""

OF_CURSOR: Final = frozenset(field.name for field in dataclasses.fields(CursorParameters))
DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in dataclasses.fields(Settings)}


def settings_from(parameters: Mapping[str, str]) -> Settings:
    """Return the settings that text parameters describe; ValueError names the wrong one."""
    values: dict[str, Any] = {
        name: PARAMETERS[name].read(name, text) if name in PARAMETERS else text
        for name, text in parameters.items()
    }
    own = {name: value for name, value in values.items() if name in OF_CURSOR}
    settings = Settings(**{name: each for name, each in values.items() if name not in own})
    if not own:
        return settings
    return dataclasses.replace(
        settings, cursor=dataclasses.replace(settings.cursor_parameters(), **own)
    )

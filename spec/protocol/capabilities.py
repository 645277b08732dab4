"""A candidate's capabilities; the gate checks only these (driver protocol 1, rule 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.messages import PriorityMapping
from brokerproof.spec.protocol.operations import ConsumeMode, GetMode, Overflow

OrderKind: TypeAlias = Literal["fifo", "priority", "sorted", "last_value", "none"]
SettleBy: TypeAlias = Literal["delivery", "message"]
Redelivered: TypeAlias = Literal["none", "flag", "count"]
Lease: TypeAlias = Literal["none", "silent", "told"]
Buried: TypeAlias = Literal["exhausted", "rejected"]
CreditKind: TypeAlias = Literal["messages", "bytes", "change", "channel"]
ReleasePosition: TypeAlias = Literal["original", "head", "tail"]
Oversize: TypeAlias = Literal["never", "when_idle"]
EventOrder: TypeAlias = Literal["total", "per_consumer"]
Releases: TypeAlias = Literal["each", "by_leaving", "none"]
Cancels: TypeAlias = Literal["keeps", "returns"]
Closes: TypeAlias = Literal["atomic", "each"]
Browser: TypeAlias = Literal["live", "snapshot"]
BrowserSees: TypeAlias = Literal["available", "all"]
PurgeTakes: TypeAlias = Literal["available", "everything"]
OrderWithin: TypeAlias = Literal["queue", "persistence"]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities by name; a missing one is not claimed, and is never reported as kept."""

    orders: tuple[OrderKind, ...] = ("fifo",)
    priority_levels: int = 10
    priority_mapping: PriorityMapping = "amqp"
    modes: tuple[ConsumeMode, ...] = ()
    credit: tuple[CreditKind, ...] = ()
    selectors: bool = False
    consumer_priority: bool = False
    durable: bool = False
    auto_delete: bool = False
    auto_close: bool = False
    get: bool = False
    get_modes: tuple[GetMode, ...] | None = None
    settle_by: SettleBy = "delivery"
    redelivered: Redelivered = "flag"
    browse: bool = False
    browser: Browser = "live"
    browser_sees: BrowserSees = "available"
    release: Releases = "each"
    cancel: Cancels = "keeps"
    close: Closes = "atomic"
    reject: bool = True
    order_within: OrderWithin = "queue"
    release_position: ReleasePosition | None = None
    oversize: Oversize = "never"
    event_order: EventOrder = "total"
    inspect: bool = False
    purge: bool = False
    purge_takes: PurgeTakes = "available"
    delete: bool = False
    deletion_told: bool = True
    multi_queue: bool = False
    exclusive: bool = False
    flush: bool = False
    clock: bool = False
    delay: bool = False
    expiry: bool = False
    tolerance_s: int = 0
    lease: Lease = "none"
    extend: bool = False
    delivery_limit: bool = False
    dead_letters: tuple[Buried, ...] = ()
    delayed_release: bool = False
    length_limit: tuple[Overflow, ...] = ()
    groups: bool = False
    parks: bool = False
    overlap: bool = False

    def __post_init__(self) -> None:
        """Refuse contradictory capabilities, so that no check has to choose between them."""
        if self.browse != ("browse" in self.modes):
            raise ValueError('browse must be claimed exactly when modes names "browse"')
        if not 1 <= self.priority_levels <= 10:
            raise ValueError(f"priority_levels must be 1 to 10, not {self.priority_levels}")

    @property
    def gets(self) -> tuple[GetMode, ...]:
        """The modes of a get: `get_modes`, or else those of consumers that a get may have."""
        if not self.get:
            return ()
        if self.get_modes is not None:
            return self.get_modes
        return ("acknowledge", "automatic") if "automatic" in self.modes else ("acknowledge",)


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """How a candidate introduces itself."""

    name: str
    version: str
    capabilities: Capabilities


STRICT: Mapping[str, str | bool] = {
    name: getattr(Capabilities(), name)
    for name in (
        "release",
        "cancel",
        "close",
        "browser",
        "browser_sees",
        "purge_takes",
        "deletion_told",
        "order_within",
    )
}
"""The claims in which brokers lawfully differ, each with its strict value."""

"""The sizes that an ActiveMQ queue is run with, and the rules in which its releases differ.

Owns their meaning, and their values in 5.1.0 and in the design without known defects. Refuses to
know what is done with them. Every combination of rules can be built, so that each defect of 5.1.0
can be looked at by itself.

Sources: the analysis of ActiveMQ's queue (5.1); the releases from 5.1.0 to 5.3.0. The ids are those
of the ActiveMQ issues that changed a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from brokerproof.reference.activemq.bit_array import AuditRules
from brokerproof.reference.activemq.disk.linked_container import FreeListRule
from brokerproof.reference.activemq.disk.reference_store import Duplicates, Reading

__all__ = [
    "AuditRules",
    "CacheOff",
    "Classes",
    "Counters",
    "CursorParameters",
    "Detached",
    "Duplicates",
    "FlowControl",
    "FreeListRule",
    "Groups",
    "InFlight",
    "Leaving",
    "Levels",
    "PagedIn",
    "Passes",
    "Reading",
    "Room",
    "Transient",
]

Detached: TypeAlias = Literal["refused", "accepted"]
Counters: TypeAlias = Literal["exact", "drifting"]
Passes: TypeAlias = Literal["again", "once"]
CacheOff: TypeAlias = Literal["placed", "unplaced"]
PagedIn: TypeAlias = Literal["checked", "replaced"]
Leaving: TypeAlias = Literal["clears", "keeps"]
InFlight: TypeAlias = Literal["yields", "stays"]
Classes: TypeAlias = Literal["merged", "apart"]
Levels: TypeAlias = Literal["apart", "together"]
Room: TypeAlias = Literal["strict", "percent"]
FlowControl: TypeAlias = Literal["needed", "full"]
Transient: TypeAlias = Literal["file", "memory"]
Groups: TypeAlias = Literal["cached", "buckets", "simple"]


@dataclass(frozen=True, slots=True)
class CursorParameters:
    """Sizes, then rules; the defaults are the design without known defects.

    `memory` is how many bytes of messages a queue may have in memory, 0 for any number; a message
    counts at least `minimum` bytes beside its body. `page` is how many are paged in at most in one
    pass. A cursor takes nothing more into memory from `water_mark` percent on. The audit remembers
    `depth` ids of each of `producers`, in words of `word` bits. `lag` is how many additions or
    acknowledgements the index may lag behind the journal. A data file ends after `data` bytes.

    The defects of 5.1.0:

    * `audit`: the arithmetic of 5.1.0 calls every id below its window a duplicate (AMQ-1742).
    * `read`: what the store's loop does at a message for which there is no room. It stops there
      (`stop`, AMQ-2149), goes on behind it (`advance`, 5.1.0), or does what the analysis proposes,
      as it is meant (`document`) or as it is `printed`.
    * `detached`: whether a subscription takes a message when it has left meanwhile (AMQ-1738).
    * `counters`: a cursor's size drifts, and a negative one is read as empty (AMQ-1984).

    Further rules of 5.1.0 that matter beside them:

    * `duplicates`: what the audit leaves out uses up a batch (5.1, 5.2), or not.
    * `passes`: a pass that moved something is followed by another, or by none before the next
      event.
    * `cache`: whether the store's position is set behind what is cached when the cache goes off
      (AMQ-2020).
    * `paged`: whether a message is paged in that already is (AMQ-1957).
    * `leaving`: whether the cursor lets go of what it has when the last consumer leaves (AMQ-2016).
    * `in_flight`: whether what a consumer has can make room for what could be delivered: its
      content can be read again by its id.
    * `classes`: persistent and other messages come in the order of their arrival, or each class in
      its own.
    * `levels`: each level of priority has a store of its own, or they share one and are in order
      within a page.
    * `room`: there is room if the message still fits, or if the percentage before is below the
      mark.
    * `free_list`: see `linked_container`.

    Neither right nor wrong: `flow` says which publishes wait for memory, those that have no other
    place or all; `transient` where messages are that need not outlive a crash; `groups` who
    remembers which consumer has a group of messages.
    """

    memory: int = 64 * 1024 * 1024
    minimum: int = 1024
    page: int = 200
    water_mark: int = 70
    depth: int = 10_000
    producers: int = 64
    word: int = 64
    lag: int = 4096
    data: int = 32 * 1024 * 1024
    audit: AuditRules = "5.2"
    read: Reading = "stop"
    detached: Detached = "refused"
    counters: Counters = "exact"
    duplicates: Duplicates = "free"
    passes: Passes = "again"
    cache: CacheOff = "placed"
    paged: PagedIn = "checked"
    leaving: Leaving = "clears"
    in_flight: InFlight = "yields"
    classes: Classes = "merged"
    levels: Levels = "apart"
    room: Room = "strict"
    free_list: FreeListRule = "whole"
    flow: FlowControl = "needed"
    transient: Transient = "file"
    groups: Groups = "cached"

    def may_park(self) -> bool:
        """Whether there can be a publish that waits for memory."""
        return self.memory > 0 and (self.flow == "full" or self.transient == "memory")


REPAIRED: Final = CursorParameters()
RELEASE_5_1: Final = CursorParameters(
    page=100,
    water_mark=90,
    depth=2048,
    producers=1024,
    audit="5.1",
    read="advance",
    detached="accepted",
    counters="drifting",
    duplicates="counted",
    passes="once",
    cache="unplaced",
    paged="replaced",
    in_flight="stays",
    classes="apart",
    levels="together",
    room="percent",
    free_list="two",
    groups="buckets",
    flow="full",
)

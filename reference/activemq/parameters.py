"""The sizes of an ActiveMQ queue, and the rules in which its releases differ.

Owns their meaning, and their values in 5.1.0 and in the design without known defects. Rules combine
freely, so that each defect of 5.1.0 can be studied by itself.

Sources: the analysis of ActiveMQ's queue (5.1); the releases from 5.1.0 to 5.3.0. The ids are the
ActiveMQ issues that changed a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from brokerproof.reference.activemq.bit_array import AuditRules

FreeListRule: TypeAlias = Literal["whole", "two"]
Reading: TypeAlias = Literal["stop", "advance", "document", "printed"]
"""The loop that reads a batch: `advance` is 5.1.0's, which passes an entry without room; `stop` is
5.3.0's; `document` is the analysis's fix as intended, `printed` as printed."""
Duplicates: TypeAlias = Literal["free", "counted"]
"""Whether a duplicate counts as recovered and uses up the batch (5.1 and 5.2), or not."""
Detached: TypeAlias = Literal["refused", "accepted"]
Pages: TypeAlias = Literal["room", "inflight"]
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

    `memory` is the limit for messages in memory, in bytes, 0 for none; a message counts at least
    `minimum` bytes beside its body. A pass pages in at most `page` messages. From `water_mark`
    percent on, a cursor takes no more into memory. The audit remembers `depth` ids of each of
    `producers`, in words of `word` bits. The index may lag `lag` additions or acknowledgements
    behind the journal. A data file ends after `data` bytes.

    The defects of 5.1.0:

    * `audit`: the arithmetic of 5.1.0 calls every id below its window a duplicate (AMQ-1742).
    * `read`: the store's loop at a message without room. It stops there (`stop`, AMQ-2149), goes on
      behind it (`advance`, 5.1.0), or follows the analysis's fix, as intended (`document`) or as
      `printed`.
    * `detached`: whether a subscription is given a message after it has left (AMQ-1738).

    Further rules of 5.1.0 that matter beside them:

    * `duplicates`: whether a message rejected by the audit uses up the batch (5.1, 5.2).
    * `passes`: whether a pass that moved something is followed by another, or waits for an event.
    * `cache`: whether the store's position is set behind the cached messages when the cache goes
      off, and the cache comes back when nothing is pending (AMQ-2020, AMQ-1984).
    * `pages`: whether a pass pages in what consumers have room for (`room`), or `page` and the
      number of deliveries without acknowledgement, less what is paged in (`inflight`). A delivery
      counts after its consumer has left, too.
    * `paged`: whether a message that is paged in already is paged in again (AMQ-1957).
    * `leaving`: whether the cursor drops its messages in memory when the last consumer leaves
      (AMQ-2016).
    * `in_flight`: whether messages held by consumers give up memory for deliverable ones: their
      content can be read again by its id.
    * `classes`: whether persistent and other messages share the order of arrival, or each class has
      its own.
    * `levels`: whether each priority level has its own store, or all share one and are ordered
      within a page.
    * `room`: whether there is room if the message still fits, or if the percentage before it is
      below the mark.
    * `free_list`: see `linked_container`.

    Neither right nor wrong: `flow` says which publishes wait for memory, all or those without
    another place. `transient` says where messages are that need not outlive a crash. `groups` is
    the map from message groups to consumers.
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
    pages: Pages = "room"
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
        """Return whether a publish may have to wait for memory."""
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
    pages="inflight",
    lag=0,
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

"""The models by name, each with the default scope of its exploration.

Owns the list of models for the name of each documented system too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brokerproof.models.activemq import (
    cursor_audit,
    cursor_memory,
    cursor_page_in,
    cursor_progress,
    cursor_room,
)
from brokerproof.models.contract import core as contract
from brokerproof.models.contract import jobs as job_contract
from brokerproof.models.contract import lawful_differences as lawful_contract
from brokerproof.models.contract import whole as whole_contract
from brokerproof.models.contract.core_state import Group
from brokerproof.models.contract.ledger.core import LedgerOfContract
from brokerproof.models.contract.ledger.whole_promises import WholeLedgerOfContract
from brokerproof.models.language.core.model import Model
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.qpid import (
    moving_place,
    paired_pointer,
    pointer_queue,
    pointer_queue_clock,
    pointer_queue_progress,
)
from brokerproof.models.qpid.pull import pull_queue
from brokerproof.models.qpid.threads import entry_states, node_list, queue_runner
from brokerproof.models.rabbitmq import paging_index, paging_places, paging_reduction, paging_syncs


@dataclass(frozen=True)
class Listed:
    """A model and the scope of its exploration: some hundred thousand states, or a few million.

    `ledger` is the same model with more state, which remembers what happened, for proofs alone.
    """

    model: type[Model]
    scope: Scope
    ledger: type[Model] | None = None


_SMALL: Final = {
    "level": 0,
    "fifo": 1,
    "rank": 0,
    "not_before": 0,
    "expires": 1,
    "horizon": 1,
    "size": 1,
    "to_head": 0,
    "to_tail": 0,
    "replaces": 0,
    "ties": 1,
    "returns_to_place": 1,
    "when_idle": 0,
    "exclusive": 0,
    "is_sorted_by_key": 0,
    "concerned": 1,
    "subscribed": 1,
    "wants": 1,
}
"""What the scopes of the contract fix: orders, times and options that multiply the states."""

_DIFFERENCES: Final = (
    *("one_by_one", "snapshots", "shows_held", "purges_held"),
    *("tells_deletions", "by_persistence", "persists"),
)

_NO_WINDOWS: Final = {
    f"{action}.{each}": 0
    for action in ("set_credit", "set_pool")
    for each in ("limited", "limit", "byte_limited", "byte_limit")
}
"""The scope of job queues has none: windows are those of the whole contract."""

CATALOGUE: dict[str, Listed] = {
    "contract": Listed(
        contract.Contract,
        Scope(
            {contract.Queue: 1, contract.Channel: 1, contract.Consumer: 1, contract.Entry: 2},
            range(3),
        ),
        LedgerOfContract,
    ),
    "whole-contract": Listed(
        whole_contract.WholeContract,
        Scope(
            {contract.Queue: 1, contract.Channel: 1, contract.Consumer: 1, contract.Entry: 1},
            range(2),
            _SMALL,
        ),
        WholeLedgerOfContract,
    ),
    "lawful-contract": Listed(
        lawful_contract.LawfulContract,
        Scope(
            {contract.Queue: 1, contract.Channel: 1, contract.Consumer: 1, contract.Entry: 1},
            range(2),
            {
                **_SMALL,
                **dict.fromkeys(_DIFFERENCES, 1),
            },
        ),
    ),
    "job-contract": Listed(
        job_contract.JobContract,
        Scope(
            {
                contract.Queue: 2,
                contract.Channel: 1,
                contract.Consumer: 1,
                Group: 1,
                contract.Entry: 2,
            },
            range(3),
            {
                **_SMALL,
                **dict.fromkeys(_DIFFERENCES, 0),
                **_NO_WINDOWS,
                "purges_held": 1,
                "home": 1,
                "grave": 0,
                "tolerance": 0,
                "visits": 1,
                "tells_returns": 1,
                "ordered": 1,
                "length": 1,
                "drops_head": (0, 1),
                "lease": (0, 1),
                "most": (0, 1),
                "buries_exhausted": (0, 1),
                "buries_rejected": (0, 1),
                "in_group": (1, 0),
                "home_of": 1,
                "survives": (1, 0),
                "deletes_itself": (1, 0),
                "closes_itself": 0,
            },
        ),
    ),
    "pointer-queue": Listed(
        pointer_queue.PointerQueue,
        Scope({pointer_queue.Entry: 4, pointer_queue.Subscription: 2}, range(1)),
    ),
    "pointer-queue-clock": Listed(
        pointer_queue_clock.TimedQueue,
        Scope({pointer_queue.Entry: 3, pointer_queue.Subscription: 2}, range(1), {"wants": 1}),
    ),
    "cursor-audit": Listed(
        cursor_audit.CursorAudit,
        Scope(
            {cursor_audit.Index: 6, cursor_audit.Word: 3},
            range(1),
            {"word": (0, 0, 1, 1, 2, 2), "reaches": (1, 1, 0, 0, 1, 1, 0, 0, 1)},
        ),
    ),
    "cursor-memory": Listed(
        cursor_memory.CursorMemory,
        Scope({cursor_memory.Message: 4}, range(16), {"limit": 4, "size": (2, 1, 5, 2)}),
    ),
    "cursor-page-in": Listed(
        cursor_page_in.CursorPageIn,
        Scope(
            {cursor_page_in.Message: 4, cursor_page_in.Consumer: 2, cursor_page_in.Channel: 1},
            range(1),
        ),
    ),
    "cursor-progress": Listed(
        cursor_progress.CursorProgress,
        Scope(
            {cursor_page_in.Message: 3, cursor_page_in.Consumer: 2, cursor_page_in.Channel: 1},
            range(4),
            {"page": 2, "slides": cursor_room.window(3, words=1, bits=2)},
        ),
    ),
    "cursor-room": Listed(
        cursor_room.CursorRoom,
        Scope(
            {cursor_page_in.Message: 4, cursor_page_in.Consumer: 2, cursor_page_in.Channel: 1},
            range(5),
            {"slides": cursor_room.window(4, words=1, bits=2)},
        ),
    ),
    "queue-runner": Listed(
        queue_runner.QueueRunner, Scope({queue_runner.Change: 2, queue_runner.Runner: 2}, range(1))
    ),
    "entry-states": Listed(
        entry_states.EntryStates,
        Scope(
            {entry_states.Entry: 1, entry_states.Consumer: 2, entry_states.Worker: 2},
            range(1),
            {"anybody": 0, "nothing": 0, "idle": 0},
        ),
    ),
    "pull-queue": Listed(
        pull_queue.PullQueue,
        Scope(
            {
                pointer_queue.Entry: 3,
                pointer_queue.Subscription: 2,
                pointer_queue_progress.Channel: 1,
            },
            range(3),
            {"wants": 1, "fifo": 0, "level": (2, 1, 0)},
        ),
    ),
    "node-list": Listed(
        node_list.NodeList,
        Scope(
            {node_list.Node: 4, node_list.Walker: 1, node_list.Remover: 1},
            range(4),
            {"no_remover": 0, "head": 0},
        ),
    ),
    "paired-pointer": Listed(
        paired_pointer.PairedPointer,
        Scope({pointer_queue.Entry: 3, moving_place.Seeker: 2, moving_place.Opener: 1}, range(1)),
    ),
    "paging-index": Listed(
        paging_index.PagingIndex,
        Scope({paging_index.Position: 2, paging_index.Segment: 2}, range(-2, 3)),
    ),
    "paging-places": Listed(
        paging_places.PagingPlaces,
        Scope(
            {paging_places.Message: 4, paging_places.Segment: 3},
            range(1),
            {"persistent": (1, 0, 0, 1)},
        ),
    ),
    "paging-reduction": Listed(
        paging_reduction.PagingReduction,
        Scope({}, range(-3, 7), {"most": 3, "batch": 2, "segment_size": 1}),
    ),
    "paging-syncs": Listed(
        paging_syncs.PagingSyncs,
        Scope(
            {paging_places.Message: 3, paging_places.Segment: 3},
            range(1),
            {"persistent": (1, 0, 1)},
        ),
    ),
}


_OF_QPID = ("pointer-queue", "paired-pointer", "whole-contract", "entry-states", "node-list")

SYSTEMS: dict[str, tuple[str, ...]] = {
    "qpid-push": (*_OF_QPID, "pointer-queue-clock", "queue-runner"),
    "qpid-pull": (*_OF_QPID, "pull-queue"),
    "rabbitmq-paging": (*("paging-places", "paging-reduction"), *("paging-index", "paging-syncs")),
    "activemq-cursor": (
        *("cursor-page-in", "cursor-room", "cursor-progress"),
        *("cursor-audit", "cursor-memory"),
    ),
}
"""The models of a documented system, by its name."""

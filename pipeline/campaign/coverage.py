"""Coverage of the contract: which of its transitions a candidate's claims make possible.

Owns the claims that each action needs. The oracle counts how often each was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from brokerproof.checks.oracle.contracts import goes_beyond_the_core
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.verdicts import meet
from brokerproof.pipeline.explain.history_report import COVERAGE_FILE
from brokerproof.spec.protocol.capabilities import Capabilities

_TAKES: Final = "modes:acknowledge|modes:automatic"
_HOLDS: Final = "modes:acknowledge|get"

OF_THE_CORE: Final[Mapping[str, tuple[str, ...]]] = {
    "publish": (),
    "consume": ("modes",),
    "cancel": ("modes",),
    "acknowledge": (_HOLDS,),
    "reject": (_HOLDS,),
    "release": (_HOLDS,),
    "settle_again": (_HOLDS,),
    "close_channel": ("modes|get",),
    "deliver": (_TAKES,),
    "get": ("get",),
    "get_nothing": ("get",),
    "browse": ("browse",),
    "quiesce": (),
}
"""The actions of the contract's core that an observer can see, and the claims they need."""

BEYOND_THE_CORE: Final[Mapping[str, tuple[str, ...]]] = {
    "set_credit": ("modes",),
    "set_pool": ("credit:channel",),
    "purge": ("purge",),
    "release_at_close": ("release_position:head|release_position:tail", _HOLDS),
    "leave": ("delete", "modes"),
    "delete": ("delete",),
    "advance": ("clock",),
    "crash": ("durable",),
    "deliver_by_rank": ("consumer_priority", _TAKES),
    "flush": ("flush",),
    "consumer_closed": ("auto_close|delete", "modes"),
    "queue_deleted": ("auto_delete", "modes"),
    "quiesce_by_size": ("credit:bytes|credit:channel",),
    "nothing_is_left_to_close": (),
    "parked_is_taken": ("parks",),
    "publish_still_waits": ("parks",),
}
"""The actions of the whole contract only, which applies if the claims exceed the core."""

NOT_SEEN: Final[Mapping[str, str]] = {
    "rest": "only proofs speak of it: it is what a broker could do, not what one does",
    "final_drain": "it gives a broken requirement its name, after the run",
    "crash_at_work": "no broker goes down in the midst of an operation here",
    "drop_in_a_crash": "no broker goes down in the midst of an operation here",
}
"""Actions that no run takes, each with the reason."""


@dataclass(frozen=True)
class Coverage:
    """How often an action was certainly taken, possibly taken, and seen although not allowed."""

    action: str
    taken: int
    unknown: int
    impossible: int


def coverage(claims: Capabilities, actions: Mapping[tuple[str, Fate], int]) -> tuple[Coverage, ...]:
    """Return the coverage of each action that is possible with these claims, or was seen."""
    needs = dict(OF_THE_CORE)
    if goes_beyond_the_core(claims):
        needs |= BEYOND_THE_CORE
    met = {action for action, _ in actions}
    return tuple(
        Coverage(
            action,
            actions.get((action, "ok"), 0),
            actions.get((action, "unknown"), 0),
            actions.get((action, "impossible"), 0),
        )
        for action, needed in needs.items()
        if action in met or meet(claims, needed)
    )


def in_one_line(covered: tuple[Coverage, ...]) -> str:
    """Return how much was covered, and all that was not.

    >>> in_one_line((Coverage("publish", 3, 0, 0), Coverage("get", 0, 1, 0)))
    '1 of 2 actions were taken: publish 3; never get (perhaps 1)'
    """
    taken = [f"{each.action} {each.taken:,}" for each in covered if each.taken]
    never = [
        each.action + (f" (perhaps {each.unknown:,})" if each.unknown else "")
        for each in covered
        if not each.taken
    ]
    line = f"{len(taken)} of {len(covered)} actions were taken: {', '.join(taken) or 'none'}"
    return line + (f"; never {', '.join(never)}" if never else "")


def write(covered: tuple[Coverage, ...], folder: Path) -> None:
    """Write the coverage as Parquet."""
    table = pa.table(
        {
            "action": pa.array([each.action for each in covered], pa.string()),
            "taken": pa.array([each.taken for each in covered], pa.int64()),
            "unknown": pa.array([each.unknown for each in covered], pa.int64()),
            "impossible": pa.array([each.impossible for each in covered], pa.int64()),
        }
    )
    unfinished = folder / f".{COVERAGE_FILE}.unfinished"
    pq.write_table(table, unfinished, compression="zstd")
    unfinished.replace(folder / COVERAGE_FILE)

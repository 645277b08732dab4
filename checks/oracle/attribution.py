"""Attribution: which requirement a breach is attributed to. All tables for it are in this file.

A breach usually falsifies several guards of the contract, and one mistake shows in many traces.
Three questions are answered in this order:

1. Which placement? An event that could have happened at several moments was impossible at each.
   `least` chooses the explanation with the fewest guards, the latest of equals. The weakest is that
   the message was not there *yet*, or its consumer no longer.
2. Late, held or gone? For `LATE_OR_GONE` the final drain check decides (`final_drain.py`).
3. Which root cause? One mistake breaks several requirements of one of the `KINDS`. A trace decides
   if no shorter form of it breaks another requirement of its kind (`root_cause.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerproof.models.language.read.pointwise import Blame

_WAITED = ("lease-ends", "lease-is-over", "dead-letter-arrives", "delayed-release-returns")

LATE_OR_GONE = frozenset(
    (
        "fifo-order",
        "priority-order",
        "release-rewinds",
        "browser-in-order",
        "browser-sees-all",
        "get-finds",
        "quiescence",
        "credit-used",
        "flush-delivers",
        "sorted-order",
        "returns-where-claimed",
        "auto-close-at-the-end",
        *_WAITED,
    )
)
"""Requirements about an available message that was not delivered when it should have been."""

MISSED = frozenset(
    (
        "nothing-lost",
        "close-releases",
        "browser-takes-nothing",
        "settled-once",
        "purge-leaves-acquired",
        "survives-restart",
        *_WAITED,
    )
)
"""What the final drain check reports for a message that is missing altogether."""

KINDS: tuple[frozenset[str], ...] = (
    LATE_OR_GONE | MISSED,
    frozenset(
        (
            "nothing-twice",
            "settled-once",
            "browser-sees-available",
            "purge-drops",
            "delete-drops",
            "last-value-only",
            "gone-when-expired",
            "transient-is-lost",
            "settlement-survives-crash",
            "lease-holds",
            "lease-is-over",
            "lease-renewed",
            "head-is-dropped",
            "delivery-limit-kept",
        )
    ),
    frozenset(("browser-once", "browser-once-by-priority", "browser-never-rewound")),
)
"""Requirements that one mistake breaks together: messages not delivered, delivered wrongly, or
shown again."""

TURNS = frozenset(
    ("fifo-order", "priority-order", "release-rewinds", "sorted-order", "returns-where-claimed")
)
"""Requirements on the order of delivery: if several name the same entries, they mean one fault."""

TOLD_TOO_LATE: Blame = {"only-to-subscribers": ()}
"""The blame for an event that would be lawful, if its consumer had not left before it was told."""

NOT_YET_OR_NO_LONGER = frozenset(("nothing-invented", "only-to-subscribers"))
"""The blame for an event placed before its message was published, or after its consumer left."""


def least(blames: Iterable[Blame]) -> Blame:
    """Return the best of several explanations: the smallest, the last of equals.

    If an event could have happened at several moments, a reason of `NOT_YET_OR_NO_LONGER` at one of
    them says less than any reason at another.
    """
    best: Blame = {}
    for blame in blames:
        if blame and "" not in blame and (not best or _weight(blame) <= _weight(best)):
            best = blame
    return best


def _weight(blame: Blame) -> tuple[bool, int]:
    overtaken: set[int] = set()
    count = 0
    for label, entries in blame.items():
        if label in TURNS and entries and overtaken >= {*entries}:
            continue
        if label in TURNS:
            overtaken |= {*entries}
        count += 1
    return not NOT_YET_OR_NO_LONGER.isdisjoint(blame), count

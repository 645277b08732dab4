"""Attribution: which promise a moment that broke one is put down to. Every table of it is here.

A moment usually speaks against several guards of the contract, and one mistake is seen in many
traces. Three questions are asked, in this order:

1. Which placement? An event could have happened at several moments and was impossible at each;
   `least` chooses the explanation with the fewest guards, the latest of equals. That a message was
   not there *yet*, or its consumer no longer, says least.
2. Late, held or gone? Of the promises in `LATE_OR_GONE` a census decides (`final_drain.py`).
3. Whose fault? Promises of one of the `KINDS` are broken together by one mistake; the trace that
   cannot be shortened without mending all of its kind decides (`root_cause.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerproof.models.language.read.pointwise import Blame

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
    )
)
"""Promises about an available message that was not given when it should have been."""

MISSED = frozenset(
    (
        "nothing-lost",
        "close-releases",
        "browser-takes-nothing",
        "settled-once",
        "purge-leaves-acquired",
        "survives-restart",
    )
)
"""What a census says of a message that is not there at all."""

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
        )
    ),
    frozenset(("browser-once", "browser-once-by-priority", "browser-never-rewound")),
)
"""Promises that one mistake breaks together: not given what is there; given what is not; shown
again."""

TURNS = frozenset(
    ("fifo-order", "priority-order", "release-rewinds", "sorted-order", "returns-where-claimed")
)
"""Promises about whose turn it is: several of them that name the same entries say one thing."""

TOLD_TOO_LATE: Blame = {"only-to-subscribers": ()}
"""What is wrong where an event would be lawful, but its consumer's leaving should have told it."""

NOT_YET_OR_NO_LONGER = frozenset(("nothing-invented", "only-to-subscribers"))
"""What is wrong with an event that is tried before its message was published, or too late."""


def least(blames: Iterable[Blame]) -> Blame:
    """Return the best of several explanations: the smallest, the last of equals.

    Where an event could have happened at several moments, that it is out of place at one of them
    says less than what is wrong with it at another.
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

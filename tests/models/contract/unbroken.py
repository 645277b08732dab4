"""The weaker guards of the whole contract that break no promise, each with the reason.

Owns the reasons alone. Each guard forbids what it did before: `prove --attack` says so of all but
`NEARLY_THE_SAME`: these differ where a consumer holds no message and yet some bytes. No run comes
there, but that a sum of sizes is 0 without a message is no statement of first-order logic.
"""

from __future__ import annotations

_GIVEN = ("deliver", "get", "deliver_by_rank")
_PUSHED = ("deliver", "deliver_by_rank")
_AT_REST = ("quiesce", "quiesce_by_size")
_BY_SIZE = ("quiesce_by_size",)

_AHEAD = (
    "without (to_head & ~(PUBLISHED = origin[f]) & (PUBLISHED = origi ...",
    "without to_head",
    "without (PUBLISHED = origin[f])",
)
_BEHIND = (
    "without (~(to_head & ~(PUBLISHED = origin[entry]) & (PUBLISHED = ...",
    "without ~(PUBLISHED = origin[entry])",
    "(stamp[f] + 1) < stamp[entry]",
)

_UNBROKEN: tuple[tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    (
        "A consumer that holds no message holds no bytes, so a message within the window fits.",
        _PUSHED,
        {
            "byte-credit-not-exceeded": (
                "without (byte_limit[consumer] < size[entry])",
                "byte_limit[consumer] <= size[entry]",
            ),
            "channel-credit-not-exceeded": (
                "without (byte_pool[channel[consumer]] < size[entry])",
                "byte_pool[channel[consumer]] <= size[entry]",
            ),
        },
    ),
    (
        "The orders of the core forbid the same wherever returned messages have a known place.",
        _GIVEN,
        {
            "returns-where-claimed": (
                *("dropped", *_AHEAD, *_BEHIND),
                *("now[home[f]] <= not_before[f]", "(now[home[f]] + 1) < expires[f]"),
                *("without to_tail", "without to_head (2)"),
                *("without ~(PUBLISHED = origin[f])", "without ~(PUBLISHED = origin[entry]) (2)"),
            ),
            "sorted-order": (*_AHEAD, *_BEHIND),
        },
    ),
    (
        "`returns-where-claimed` and `release-rewinds` forbid the same of returned messages.",
        _GIVEN,
        {
            "fifo-order": (
                *_AHEAD,
                *("without returns_to_place", "without to_tail", "without to_head (2)"),
            ),
            "priority-order": (
                "without returns_to_place",
                "without to_tail",
                "without to_head (2)",
            ),
        },
    ),
    (
        "A message that keeps its place, or is of another level, is placed by no stamp.",
        _GIVEN,
        {"release-rewinds": (*_AHEAD, *_BEHIND), "priority-order": (*_AHEAD, *_BEHIND)},
    ),
    (
        "What a browser was shown is behind its place, or may be repeated.",
        ("browse",),
        {"browser-once-by-priority": ("without behind[consumer, entry]",)},
    ),
    (
        "A browser fills no window.",
        ("browse",),
        {
            "credit-not-exceeded": ("unsettled[consumer] <= limit[consumer]",),
            "byte-credit-not-exceeded": (
                "without (byte_limit[consumer] < size[entry])",
                "byte_limit[consumer] <= size[entry]",
                "(byte_limit[consumer] + 1) < (unsettled_bytes[consumer] + size[entry])",
                "without (0 = unsettled[consumer])",
            ),
            "channel-credit-not-exceeded": (
                "without (byte_pool[channel[consumer]] < size[entry])",
                "byte_pool[channel[consumer]] <= size[entry]",
                "in_pool[channel[consumer]] <= pool[channel[consumer]]",
                (
                    "(byte_pool[channel[consumer]] + 1) < "
                    "(bytes_in_pool[channel[consumer]] + size[entry])"
                ),
            ),
        },
    ),
    (
        "`credit-used` is only about consumers with a window.",
        _AT_REST,
        {"credit-used": ("without ~limited[c]",)},
    ),
    (
        "The same of a message before it, where the consumer may wait.",
        _BY_SIZE,
        {"credit-used": ("without ~limited[c] (2)",)},
    ),
    (
        "A browser fills no window, and it may or may not see large messages.",
        _AT_REST,
        {
            "browser-sees-all": (
                "(unsettled[c] + 1) < limit[c]",
                "without (when_idle & (0 = unsettled[c]) & (0 < byte_limit[c]) &  ...",
                "byte_limit[c] <= (unsettled_bytes[c] + size[f])",
                "1 < byte_limit[c] (2)",
                "(byte_limit[c] + 1) < size[f]",
                "(in_pool[channel[c]] + 1) < pool[channel[c]]",
                "without (when_idle & (0 = in_pool[channel[c]]) & (0 < byte_pool[ ...",
                "byte_pool[channel[c]] <= (bytes_in_pool[channel[c]] + size[f])",
                "1 < byte_pool[channel[c]] (2)",
                "(byte_pool[channel[c]] + 1) < size[f]",
                "without ~(ACKNOWLEDGE = mode[c])",
            )
        },
    ),
    (
        "A browser has the same windows at the message before which it may wait.",
        _BY_SIZE,
        {
            "browser-sees-all": (
                "(unsettled[c] + 1) < limit[c] (2)",
                "without (when_idle & (0 = unsettled[c]) & (0 < byte_limit[c]) &  ... (2)",
                "byte_limit[c] <= (unsettled_bytes[c] + size[g])",
                "1 < byte_limit[c] (4)",
                "(byte_limit[c] + 1) < size[g]",
                "(in_pool[channel[c]] + 1) < pool[channel[c]] (2)",
                "without (when_idle & (0 = in_pool[channel[c]]) & (0 < byte_pool[ ... (2)",
                "byte_pool[channel[c]] <= (bytes_in_pool[channel[c]] + size[g])",
                "1 < byte_pool[channel[c]] (4)",
                "(byte_pool[channel[c]] + 1) < size[g]",
                "without ~(ACKNOWLEDGE = mode[c]) (2)",
            )
        },
    ),
    (
        "No consumer waits at a message for which it has room.",
        _BY_SIZE,
        dict.fromkeys(("quiescence", "credit-used", "browser-sees-all"), ("without ~(f = g)",)),
    ),
    (
        "A consumer that takes messages is no browser.",
        _BY_SIZE,
        dict.fromkeys(
            ("quiescence", "credit-used"), ("without ~((BROWSE = mode[c]) & behind[c, g])",)
        ),
    ),
    (
        "A flushed consumer has room for the message, and is no browser.",
        ("flush",),
        {
            "flush-delivers": (
                "without ~(f = g)",
                "without ~((BROWSE = mode[consumer]) & behind[consumer, g])",
            )
        },
    ),
)

UNBROKEN = {
    f"{action}: {label}: {change}": reason
    for reason, actions, guards in _UNBROKEN
    for label, changes in guards.items()
    for change in changes
    for action in actions
}
"""The reason by the name of the weaker guard."""

NEARLY_THE_SAME = {
    *(name for name, reason in UNBROKEN.items() if reason == _UNBROKEN[0][0]),
    "browse: byte-credit-not-exceeded: without (0 = unsettled[consumer])",
}
"""Those that are proved to forbid the same only where counters are what they count."""

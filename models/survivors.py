"""Why the mutants that nothing refutes are harmless, by model and reason.

`brokerproof prove --attack` fails where a survivor has no reason here, and where a reason is given
for what is no survivor any more. Names are those that the attack prints.
"""

from __future__ import annotations

from collections.abc import Mapping

_POINTER_QUEUE = {
    "The pointer goes back further, or once more, than it must: steps are lost, no promise is.": (
        "insert: released: without ~rewound[s]",
        "deliver: rewound: stays as it was",
        "deliver: rewound: without rewound[who]",
        "deliver: rewound: without ~(entry = released[who])",
        "browse: rewound: stays as it was",
        "browse: rewound: without ~(entry = released[who])",
        "pass_over: rewound: stays as it was",
        "pass_over: guard 2: (last_seen[who] before entry) or equal",
        "release: released: without ~browser[s]",
        "release: released: without ~rewound[s]",
    ),
    "Where the pointer of one that has left stands makes no difference: it will start anew.": (
        "insert: rewound: without rewound[s]",
        "insert: released: without active[s]",
        "pass_over: guard 1: dropped",
        "release: rewound: without active[s]",
        "release: released: without active[s]",
    ),
    "What is skipped is acquired: the pointer would have passed over it in a step of its own.": (
        "deliver: guard 2: without (ACQUIRED = status[g])",
        "browse: guard 2: without (ACQUIRED = status[g])",
        "pass_over: guard 2: without (ACQUIRED = status[g])",
    ),
    "A subscription that forgets what it holds settles less; no client owes a settlement.": (
        "deliver: holds: stays as it was",
        "deliver: holds: without holds[s, e]",
        "acknowledge: holds: without (entry = e)",
        "release: holds: without (entry = e)",
    ),
    "What a subscription still holds from earlier does not touch its pointer.": (
        "subscribe: guard 2: dropped",
    ),
    "Read by an invariant alone, which says less then; the contract's own memory says it too.": (
        "subscribe: overtaken: stays as it was",
        "insert: overtaken: without overtaken[s]",
        "browse: shown: stays as it was",
        "browse: shown: without shown[s, e]",
    ),
    "A browser forgets an arrival ahead of it: what it is owed in the end is no step here.": (
        "release: rewound: without rewound[s]",
    ),
}

_CONTRACT = {
    "The gate itself does this and never asks for what the guard excludes: no broker is judged.": (
        "publish: guard 1: dropped",
        "consume: guard 1: dropped",
        "cancel: guard 1: dropped",
        "acknowledge: guard 1: dropped",
        "reject: guard 1: dropped",
        "release: guard 1: dropped",
        "settle_again: guard 1: dropped",
        "deliver: guard 1: dropped",
        "get: guard 1: without ~(BROWSE = mode[who])",
        "browse: guard 1: dropped",
    ),
    "What is held and what is done with differ for the settlements that the gate itself sends.": (
        "acknowledge: status: stays as it was",
        "acknowledge: status: ACQUIRED instead of DEQUEUED",
        "reject: status: stays as it was",
        "reject: status: ACQUIRED instead of DEQUEUED",
        "deliver: status: DEQUEUED even if (ACKNOWLEDGE = mode[who])",
        "deliver: status: DEQUEUED instead of ACQUIRED",
        "get: status: DEQUEUED even if (ACKNOWLEDGE = mode[who])",
        "get: status: DEQUEUED instead of ACQUIRED",
    ),
    "It shows once the entry has come back: browser-sees-all would ask too much then.": (
        "consume: excused: stays as it was",
        "consume: excused: without (ACQUIRED = status[e])",
        "consume: excused: without (DEQUEUED = status[e])",
        "deliver: excused: stays as it was",
        "get: excused: stays as it was",
    ),
    "It excuses more, which shows once the entry has come back: browser-sees-all asks less then.": (
        "consume: excused: without (who = c)",
        "deliver: excused: without consuming[c]",
        "get: excused: without consuming[c]",
    ),
    "Nothing but a browser's own row is ever read.": (
        "deliver: excused: without (BROWSE = mode[c])",
        "get: excused: without (BROWSE = mode[c])",
    ),
    "A new arrival has not been shown, so nothing is behind that it may repeat.": (
        "publish: may_repeat: without (entry = e)",
    ),
    "Coming back is only asked of what is behind the browser's place.": (
        "release: came_back: without behind[c, e]",
        "close_channel: came_back: without behind[c, e]",
    ),
    "The windows of those who take at once, and of gets, are never read from this counter.": (
        "deliver: unsettled: without (ACKNOWLEDGE = mode[who])",
        "get: unsettled: stays as it was",
        "get: unsettled: without (ACKNOWLEDGE = mode[who])",
        "get: unsettled: 2 instead of 1",
    ),
    "A browser that has begun to use its window and one that has not are owed the same.": (
        "browse: served: stays as it was",
    ),
    "A question that the gate asks itself, never a step of a broker: when to stop waiting.": (
        "rest: guard 1: dropped",
        "rest: guard 1: without ~limited[c]",
        "rest: guard 1: without ((unsettled[c] < limit[c]) if (ACKNOWLEDGE = mode[c]) el ...",
        "rest: guard 1: (unsettled[c] + 1) < limit[c]",
        "rest: guard 1: 1 < limit[c]",
        "rest: guard 1: without ~(BROWSE = mode[c])",
        "rest: guard 1: without ~(behind[c, f] & ~may_repeat[c, f])",
        "rest: guard 1: without (~came_back[c, f] & ~fifo[home[f]])",
        "rest: guard 1: without behind[c, f]",
        "rest: guard 1: without ~may_repeat[c, f]",
    ),
}


def _by_name(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: reason for reason, names in table.items() for name in names}


SURVIVORS: dict[str, dict[str, str]] = {
    "contract": _by_name(_CONTRACT),
    "pointer-queue": _by_name(_POINTER_QUEUE),
}

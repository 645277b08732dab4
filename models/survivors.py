"""Why the mutants that nothing refutes are harmless, by model and reason.

`brokerproof prove --attack` fails where a survivor has no reason here, and where a reason is given
for what is no survivor any more. Names are those that the attack prints. Here are the models that
are attacked where none is named; the reasons of others are with the model (`harmless`).
"""

from __future__ import annotations

from brokerproof.models.survivors_of_threads import (
    CONSUMER_NOTIFICATION,
    QUEUE_RUNNER,
    WAITING_TURNS,
    by_name,
)

_POINTER_QUEUE = {
    "The pointer goes back further, or once more, than it must: steps are lost, no promise is.": (
        "deliver: rewound: stays as it was",
        "deliver: rewound: without rewound[who]",
        "deliver: rewound: without ~(entry = released[who])",
        "pass_over: guard 2: (last_seen[who] before entry) or equal",
        "release: released: without ~rewound[s]",
        "get: rewound: stays as it was",
        "get: rewound: without rewound[who]",
        "get: rewound: without ~(entry = released[who])",
        "close_channel: guard 1: without (which = channel[c])",
        "close_channel: released: without ~rewound[s]",
    ),
    "Where the pointer of one that has left stands makes no difference: it will start anew.": (
        "pass_over: guard 1: dropped",
        "release: rewound: without active[s]",
        "release: released: without active[s]",
        "close_channel: rewound: without active[s]",
        "close_channel: rewound: without ~(which = channel[s])",
        "close_channel: released: without active[s]",
        "close_channel: released: without ~(which = channel[s])",
        "look_back: rewound: without active[s]",
        "look_back: released: without active[s]",
    ),
    "What is available and not ahead of the pointer is just arriving, and then it is the first.": (
        "deliver: guard 2: without (last_seen[who] before entry)",
        "deliver: guard 2: (last_seen[who] before entry) or equal",
        "get: guard 2: without (last_seen[who] before entry)",
        "get: guard 2: (last_seen[who] before entry) or equal",
    ),
    "What is skipped is acquired: the pointer would have passed over it in a step of its own.": (
        "deliver: guard 2: without (ACQUIRED = status[g])",
        "pass_over: guard 2: without (ACQUIRED = status[g])",
        "get: guard 2: without (ACQUIRED = status[g])",
    ),
    "What a subscription still holds from earlier does not touch its pointer.": (
        "subscribe: guard 2: dropped",
    ),
    "Read by an invariant alone, which says less then; the contract's own memory says it too.": (
        "subscribe: overtaken: stays as it was",
        "look_back: overtaken: without (AVAILABLE = status[entry])",
        "look_back: overtaken: without browser[s]",
        "browse: shown: stays as it was",
        "browse: shown: without shown[s, e]",
    ),
    "Nobody is subscribed at first, and who subscribes begins anew.": (
        "initially: shown: anything",
        "initially: shown: true instead of false",
        "initially: rewound: anything",
        "initially: rewound: true instead of false",
    ),
}

_CONTRACT = {
    "The gate itself does this and never asks for what the guard excludes: no broker is judged.": (
        "consume: guard 1: dropped",
        "cancel: guard 1: dropped",
        "settle_again: guard 1: dropped",
        "deliver: guard 1: dropped",
        "get: guard 1: without ~(BROWSE = mode[who])",
        "browse: guard 1: dropped",
    ),
    "It excuses more, which shows once the entry has come back: browser-sees-all asks less then.": (
        "consume: excused: without (who = c)",
        "deliver: excused: without consuming[c]",
        "get: excused: without consuming[c]",
    ),
    "Nothing but a browser's own row is ever read.": (
        "deliver: excused: without (BROWSE = mode[c])",
        "get: excused: without (BROWSE = mode[c])",
        "consume: excused: without (BROWSE = mode[c])",
    ),
    "Coming back is only asked of what is behind the browser's place.": (
        "release: came_back: without behind[c, e]",
        "close_channel: came_back: without behind[c, e]",
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
    "The gate makes the order of the entries by level itself, one by one, in `checks/book.py`.": (
        "axiom order-is-by-level: dropped",
    ),
}


SURVIVORS: dict[str, dict[str, str]] = {
    "contract": by_name(_CONTRACT),
    "pointer-queue": by_name(_POINTER_QUEUE),
    "waiting-turns": by_name(WAITING_TURNS),
    "queue-runner": by_name(QUEUE_RUNNER),
    "consumer-notification": by_name(CONSUMER_NOTIFICATION),
}

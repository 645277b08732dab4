"""The equivalent mutants by model, with the reason why no proof refutes them.

`brokerproof prove --attack` fails if a surviving mutant has no reason here, or if a reason names a
mutant that is refuted or gone. Names are those that the command prints. This file has the models
that the command mutates by default; other models keep theirs beside them (`equivalent_mutants`).
"""

from __future__ import annotations

from brokerproof.models.qpid.threads.equivalent_mutants import QUEUE_RUNNER, by_name

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
    "The theorems about histories need it, and `test_bindings` holds the gate's facts to it.": (
        "publish: guard 2: dropped",
        "axiom order-is-by-level: dropped",
    ),
}

_PAGING_CONFIRMS = {
    "Whether a message is ready or pending makes no difference to what has to be there.": (
        "publish: where: PENDING instead of READY",
        "fetch: where: stays as it was",
        "fetch: where: READY instead of PENDING",
        "requeue: where: stays as it was",
        "requeue: where: PENDING instead of READY",
        "crash: where: PENDING instead of READY",
    ),
    "Nothing is promised of what is not persistent, and it is never confirmed here.": (
        "page: guard 1: without ~persistent[m]",
        "page: written: stays as it was",
        "page: indexed: stays as it was",
        "crash: where: without persistent[m]",
    ),
    "What is settled may come back after a crash in any case: no settlement is waited for.": (
        "settle: acked: stays as it was",
    ),
    "The store says once more what is so, of what is synced or gone.": (
        "settle: tells_ignored: without written[m]",
        "settle: tells_ignored: without ~content_synced[m]",
        "sync_store: tells_written: without ~content_synced[m]",
    ),
    "What was said is said again: it is confirmed once more, which nobody minds.": (
        "hear_written: tells_written: stays as it was",
        "hear_ignored: tells_ignored: stays as it was",
        "drain_confirmed: to_confirm: stays as it was",
        "crash: to_confirm: stays as it was",
    ),
    "What waits with its content known to be synced is in the index, and not synced there.": (
        "sync_index: content_known: without indexed[m]",
        "sync_index: content_known: without ~index_synced[m]",
    ),
    "Of what has not come back, the disk may still have anything: it is gone, and stays so.": (
        "crash: content_synced: stays as it was",
        "crash: content_synced: without (index_synced[m] | (indexed[m] & indexed[m]))",
        (
            "crash: content_synced: without "
            "((written[m] & (content_synced[m] | stored[m])) | (acked ..."
        ),
        "crash: content_synced: without persistent[m]",
        "crash: content_synced: without ~(acked[m] & settled[m])",
        "crash: content_synced: without indexed[m]",
        "crash: content_synced: without indexed[m] (2)",
        "crash: content_synced: without written[m]",
        "crash: content_synced: without (content_synced[m] | stored[m])",
        "crash: content_synced: without stored[m]",
        "crash: content_synced: without acked[m]",
        "crash: content_synced: without content_synced[m] (2)",
        "crash: content_synced: without stored[m] (2)",
        "crash: indexed: without (index_synced[m] | (indexed[m] & indexed[m]))",
        "crash: indexed: without ((written[m] & (content_synced[m] | stored[m])) | (acked ...",
        "crash: indexed: without persistent[m]",
        "crash: indexed: without ~(acked[m] & settled[m])",
        "crash: indexed: without indexed[m]",
        "crash: indexed: without indexed[m] (2)",
        "crash: indexed: without written[m]",
        "crash: indexed: without (content_synced[m] | stored[m])",
        "crash: indexed: without acked[m]",
        "crash: indexed: without content_synced[m] (2)",
        "crash: indexed: without stored[m] (2)",
        "crash: index_synced: without (index_synced[m] | (indexed[m] & indexed[m]))",
        "crash: index_synced: without ((written[m] & (content_synced[m] | stored[m])) | (acked ...",
        "crash: index_synced: without persistent[m]",
        "crash: index_synced: without ~(acked[m] & settled[m])",
        "crash: index_synced: without indexed[m]",
        "crash: index_synced: without indexed[m] (2)",
        "crash: index_synced: without written[m]",
        "crash: index_synced: without (content_synced[m] | stored[m])",
        "crash: index_synced: without stored[m]",
        "crash: index_synced: without acked[m]",
        "crash: index_synced: without content_synced[m] (2)",
        "crash: index_synced: without stored[m] (2)",
    ),
    "It excuses a message from being told, and its promise alone reads it.": (
        "initially: forgotten: anything",
        "initially: forgotten: true instead of false",
    ),
}

_PAGING_LENGTHS = {
    "The limit is there so that an exploration ends; the proof is for any.": (
        "publish: guard 1: dropped",
        "publish: guard 1: total[IT] <= most",
        "requeue: guard 2: dropped",
        "requeue: guard 2: (most + 1) < (total[IT] + ((to_q4 + to_q3) + to_delta))",
        "recover: guard 1: without ~(most < (in_delta + in_q3))",
        "recover: guard 1: (most + 1) < (in_delta + in_q3)",
    ),
    "That q4 is fetched from first is a matter of the order, which lengths do not see.": (
        "fetch_from_q3: guard 1: without (0 = length[Q4])",
        "fetch_last: guard 1: without (0 = length[Q4])",
        "fetch_last_and_reload: guard 1: without (0 = length[Q4])",
        "fetch_last_and_reload_all: guard 1: without (0 = length[Q4])",
        "put_back_into_q4: guard 1: without (0 = length[Q4])",
        "put_back_and_reload: guard 1: without (0 = length[Q4])",
        "put_back_and_reload_all: guard 1: without (0 = length[Q4])",
    ),
    "Read while q3 has more than one, delta is used up sooner, which empties nothing before it.": (
        "fetch_last_and_reload: guard 1: without (1 = length[Q3])",
        "fetch_last_and_reload_all: guard 1: without (1 = length[Q3])",
        "put_back_and_reload: guard 1: without (1 = length[Q3])",
        "put_back_and_reload_all: guard 1: without (1 = length[Q3])",
        "put_back_and_reload_all: guard 1: dropped",
        "put_back_and_reload_all: guard 1: without ~(0 = length[DELTA])",
    ),
    "It puts one of q3 into q4, as paging back would: q1 has become q4 before.": (
        "put_back_into_q4: guard 1: without (1 = length[Q3])",
        "put_back_into_q4: guard 1: without (0 < length[Q1])",
        "put_back_into_q4: guard 1: 0 <= length[Q1]",
    ),
    "A move of nothing, and one that does not happen, leave everything as it was.": (
        "put_back_into_q4: length: stays as it was",
        "put_back_and_reload: guard 1: 0 <= read",
        "put_back_and_reload: length: stays as it was",
        "put_back_and_reload_all: length: stays as it was",
        "page_q1: length: stays as it was",
        "page_q4: length: stays as it was",
        "page_q3: guard 1: 0 <= count",
        "page_q3: length: stays as it was",
        "page_q2: guard 1: 0 <= count",
        "page_q2: length: stays as it was",
    ),
    "What returns to q3 or delta beside something there fills nothing that has to be empty.": (
        "requeue: guard 3: dropped",
        "requeue: guard 3: without (0 = to_q3)",
        "requeue: guard 4: dropped",
    ),
}


EQUIVALENT_MUTANTS: dict[str, dict[str, str]] = {
    "contract": by_name(_CONTRACT),
    "paging-confirms": by_name(_PAGING_CONFIRMS),
    "paging-lengths": by_name(_PAGING_LENGTHS),
    "pointer-queue": by_name(_POINTER_QUEUE),
    "queue-runner": by_name(QUEUE_RUNNER),
}

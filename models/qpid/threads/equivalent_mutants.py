"""The equivalent mutants of the protocols between threads, by model and reason.

The models leave open how often a thread looks, how long a run is, which of several threads is
faster, and what a client asks for, so mutants of these are equivalent.
"""

from __future__ import annotations

from collections.abc import Mapping


def by_name(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the reason for each mutant, from a table of the mutants of each reason."""
    return {name: reason for reason, names in table.items() for name in names}


QUEUE_RUNNER = {
    "Others make and announce their changes at once: the runner that is started sees them too.": (
        "count: announcing: TRIES always, not only if (c = c)",
        "start: announcing: IS_DONE always, not only if (c = c)",
        "leave_it: announcing: IS_DONE always, not only if (c = c)",
        "leave_it: guard 1: dropped",
    ),
    "A runner that is put in the slot while it runs begins anew, and walks before it ends.": (
        "start: guard 3: dropped",
    ),
    "The executor's own step is left out.": (
        "start: running: BEGINS instead of IS_HANDED_OVER",
        "reschedule: running: BEGINS instead of IS_HANDED_OVER",
    ),
    "It waits for the slot instead of leaving, and finds done what another runner has done.": (
        "leave_it: announcing: stays as it was",
        "leave_it: announcing: TRIES instead of IS_DONE",
        "step_aside: running: stays as it was",
        "step_aside: running: TAKES instead of IS_IDLE",
        "step_aside: running: WANTS_MORE instead of IS_IDLE",
        "leave_the_rest: running: stays as it was",
        "leave_the_rest: running: TAKES instead of IS_IDLE",
        "leave_the_rest: running: WANTS_MORE instead of IS_IDLE",
    ),
    "What was counted is older than it might be: there is one walk more at worst.": (
        "begin: running: TAKES instead of READS",
    ),
    "Whoever has counted a change and not tried the slot yet starts a runner itself.": (
        "end: guard 3: without (TRIES = announcing[c])",
    ),
    "Nobody else walks, and what another looks at is set anew when it does.": (
        "take: looks_at: ~(CHANGES = announcing[c]) always, not only if (r = r)",
    ),
    "How long a walk is that delivers is open: it goes on in the slot, or begins anew there.": (
        "go_on: running: stays as it was",
        "go_on: running: IS_HANDED_OVER instead of GIVES_BACK",
        "go_on: running: BEGINS instead of GIVES_BACK",
        "go_on: running: WALKS instead of GIVES_BACK",
        "use_up: running: stays as it was",
        "use_up: running: IS_HANDED_OVER instead of GIVES_BACK",
        "use_up: running: BEGINS instead of GIVES_BACK",
        "use_up: running: WALKS instead of GIVES_BACK",
    ),
    "How many walks without a delivery are made is open, as long as there is one.": (
        "begin: left: TWO always, not only if (r = r)",
        "begin: left: ONE instead of TWO",
        (
            "read: left: (TWO if (exists c: (((TRIES = announcing[c]) | (IS_DONE = announcing[c])) "
            "& ~counted[r, c])) else left[r]) always, not only if (r = r)"
        ),
        "read: left: ONE instead of TWO",
        "complete: guard 2: dropped",
        "go_again: running: stays as it was",
        "go_again: running: WALKS instead of GIVES_BACK",
        "go_again: left: ONE always, not only if (r = r)",
        "go_on: left: TWO always, not only if (r = r)",
        "go_on: left: ONE instead of TWO",
    ),
    "Another runner begins anew; that it ends is only asked of scopes with one runner.": (
        "begin: spent: without spent[r]",
    ),
    "Changes and runners that are under way at first are like those that come later.": (
        "initially: announcing: COUNTS instead of CHANGES",
        "initially: running: READS instead of IS_IDLE",
        "initially: running: WANTS_MORE instead of IS_IDLE",
    ),
    "It is set when a runner begins.": (
        "initially: left: anything",
        "initially: left: ONE instead of NONE",
        "initially: left: TWO instead of NONE",
        "initially: spent: anything",
        "initially: spent: true instead of false",
    ),
}

ENTRY_STATES = {
    "An entry that is there at first is like one that arrives before anything else.": (
        "initially: state: AVAILABLE instead of ABSENT",
    ),
    "Of an entry that no consumer had before, nobody asks whose it was.": (
        "enqueue: was_owner: stays as it was",
        "acquire: was_owner: stays as it was",
        "unlock: was_owner: without (owner[at[w]] = for_whom[w])",
        "lock: was_owner: owner[at[w]] always, not only if (STEALABLE = state[at[w]])",
        "take_for_queue: was_owner: stays as it was",
        "delete: was_owner: stays as it was",
        "dispose: was_owner: stays as it was",
        "initially: was_owner: anything",
    ),
    "When an entry's time is over is not the queue's to say.": (
        "expire: expired: stays as it was",
        "expire: expired: without expired[e]",
    ),
    "It is read of a thread that settles alone, or set by the same thread before it is read.": (
        "look: releases: stays as it was",
        "take_for_queue: for_whom: stays as it was",
        "take_for_queue: for_queue: without ~(w = w)",
        "take_for_queue: releases: stays as it was",
        "steal: for_whom: stays as it was",
        "steal: for_queue: without ~(w = w)",
        "steal: releases: stays as it was",
    ),
    "Whether the queue drops what it takes, or puts it back, is its own affair.": (
        "take_for_queue: doing: (LOOKS_TO_DELETE if (w = w) else doing[w]) even if (w = w)",
        "take_for_queue: doing: LOOKS_TO_RELEASE always, not only if releases",
        "take_for_queue: doing: LOOKS_TO_DELETE even if releases",
        "take_for_queue: doing: LOOKS_TO_DELETE instead of LOOKS_TO_RELEASE",
        "take_for_queue: doing: LOOKS_TO_RELEASE instead of LOOKS_TO_DELETE",
    ),
    "It is false by the guard, and false of all others who give something.": (
        "look: saw_expired: expired[e] always, not only if (w = w)",
    ),
    "Who was too late, or gives up, has nothing in hand.": (
        "miss: guard 2: dropped",
        "miss: doing: stays as it was",
        "miss: doing: ACQUIRES instead of NOTHING",
        "miss: doing: UNLOCKS instead of NOTHING",
    ),
    "What was sent and is not made stealable cannot be stolen: no promise is lost.": (
        "send: doing: NOTHING instead of UNLOCKS",
    ),
    "One consumer at most has it unsettled; what that one has lost it settles for nothing.": (
        "settle: unsettled: without (c = c)",
        "tell: guard 1: without unsettled[c, e]",
        "tell: unsettled: stays as it was",
        "tell: unsettled: without (c = c)",
    ),
    "Which of the two a client asked for is told by nothing but what is noted here.": (
        "settle: releases: stays as it was",
        "settle: releases: (~(w = w) & releases[w]) even if (w = w)",
        "settle: releases: without ~(w = w)",
    ),
    "What is about to be deleted need not be marked.": (
        "lock: redelivered: without redelivered[at[w]]",
    ),
    "What a consumer has lost the queue deletes: so this thread looks once more, for nothing.": (
        "release_nothing: doing: LOCKS instead of NOTHING",
    ),
    "It is locked once more, for the same consumer.": (
        "look_again_to_release: doing: LOCKS instead of LOOKS_TO_RELEASE",
    ),
    "What a thread has in hand nobody else gets meanwhile: its owner is the one that was seen.": (
        "delete: guard 1: without (~((UNSTEALABLE = state[at[w]]) | (STEALABLE = state[at[ ...",
        "delete: guard 1: without (UNSTEALABLE = state[at[w]])",
        "delete: guard 1: without (STEALABLE = state[at[w]])",
        (
            "look_again: guard 1: without ~((UNSTEALABLE = state[at[w]]) | (STEALABLE = "
            "state[at[w]]))"
        ),
        "release: guard 1: without (~((UNSTEALABLE = state[at[w]]) | (STEALABLE = state[at[ ...",
        "release: guard 1: without (UNSTEALABLE = state[at[w]])",
        "release: guard 1: without (STEALABLE = state[at[w]])",
        (
            "look_again_to_release: guard 1: without ~((UNSTEALABLE = state[at[w]]) | "
            "(STEALABLE = state[at[w]]))"
        ),
    ),
    "It is set before it is read, or read of what has arrived alone.": (
        "initially: owner: anything",
        "initially: was: anything",
        "initially: was: AVAILABLE instead of ABSENT",
        "initially: was: THE_QUEUES instead of ABSENT",
        "initially: was: UNSTEALABLE instead of ABSENT",
        "initially: was: STEALABLE instead of ABSENT",
        "initially: was: DEQUEUED instead of ABSENT",
        "initially: was: DELETED instead of ABSENT",
        "initially: expired: anything",
        "initially: redelivered: anything",
        "initially: redelivered: true instead of false",
        "initially: at: anything",
        "initially: for_whom: anything",
        "initially: for_queue: anything",
        "initially: for_queue: true instead of false",
        "initially: releases: anything",
        "initially: releases: true instead of false",
        "initially: saw: anything",
        "initially: saw: AVAILABLE instead of ABSENT",
        "initially: saw: THE_QUEUES instead of ABSENT",
        "initially: saw: UNSTEALABLE instead of ABSENT",
        "initially: saw: STEALABLE instead of ABSENT",
        "initially: saw: DEQUEUED instead of ABSENT",
        "initially: saw: DELETED instead of ABSENT",
        "initially: saw_owner: anything",
        "initially: saw_expired: anything",
        "initially: saw_expired: true instead of false",
        "initially: put_back_for: anything",
        "initially: giver: anything",
        "initially: hand: anything",
        "initially: keeper: anything",
        "initially: disposer: anything",
    ),
}

NODE_LIST = {
    "Whoever links finds by the swap that nothing is behind: all before that is looking.": (
        "link: guard 1: dropped",
    ),
    "The hint may lag or go back: any linked node will do, since the swap looks itself.": (
        "read_tail: appending: LINKS instead of READS_NEXT",
        "read_tail: saw_tail: tail[IT] always, not only if (n = n)",
        "read_next: appending: LINKS even if has_next[saw_tail[n]]",
        "read_next: appending: STARTS instead of HELPS",
        "read_next: appending: LINKS instead of HELPS",
        "help: tail: stays as it was",
        "help: tail: saw_next[n] always, not only if (tail[IT] = saw_tail[n])",
        "help: tail: tail[IT] even if (tail[IT] = saw_tail[n])",
        "help: appending: LINKS instead of STARTS",
        "link: appending: COUNTS instead of MOVES_TAIL",
        "find_another_linked: appending: READS_NEXT instead of STARTS",
        "move_tail: tail: stays as it was",
        "move_tail: tail: n always, not only if (tail[IT] = saw_tail[n])",
        "move_tail: tail: tail[IT] even if (tail[IT] = saw_tail[n])",
    ),
    "It is false by the guard, and false of all others who have found something.": (
        "find: saw_marked: deleted[following[who]] always, not only if (who = w)",
    ),
    "A walk that unlinks less, or looks again, returns the same: what stays linked is marked.": (
        "unlink: next: beyond[who] always, not only if (next[at[who]] = following[who])",
        "pass_by: at: stays as it was",
    ),
    "Whether a walk that is over is followed by another is open.": (
        "rest: walking: stays as it was",
        "rest: walking: HAS_ENDED instead of RESTS",
    ),
    "It is set before it is read.": (
        "initially: next: anything",
        "initially: saw_next: anything",
        "initially: target: anything",
        "initially: marked_by: anything",
        "initially: saw_marked: anything",
        "initially: saw_marked: true instead of false",
    ),
    "A thread that starts in the middle has read the head alone, which is linked.": (
        "initially: appending: READS_NEXT instead of STARTS",
        "initially: appending: HELPS instead of STARTS",
        "initially: appending: LINKS instead of STARTS",
        "initially: walking: READS instead of RESTS",
        "initially: walking: HAS_ENDED instead of RESTS",
    ),
}

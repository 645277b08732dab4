"""The equivalent mutants of the protocols between threads, by model and reason.

The models leave open how often a thread looks, how long a run is, and what a client does with a
delivery, so mutants of these are equivalent.
"""

from __future__ import annotations

from collections.abc import Mapping


def by_name(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the reason for each mutant, from a table of the mutants of each reason."""
    return {name: reason for reason, names in table.items() for name in names}


WAITING_TURNS = {
    "What a target has to do is its own: what goes away by itself cannot be forgotten.": (
        "notify: has_work: without has_work[t]",
    ),
    "Whoever has set the target's mark schedules the connection: nobody else has to.": (
        "mark: notifying: NOTIFIES instead of SCHEDULES",
    ),
    "The last run has cleared the mark by then: nothing is left of it but its last look.": (
        "hand_over: guard 2: dropped",
    ),
    "How many turns a run gives is open: who waits has one in this run or in the next.": (
        "work: working: IS_HANDED_OVER instead of TAKES",
        "work: working: ENDS instead of TAKES",
        "use_up: working: stays as it was",
        "use_up: working: IS_HANDED_OVER instead of ENDS",
        "use_up: working: TAKES instead of ENDS",
    ),
    "It is set before it is read.": (
        "initially: marked_by: anything",
        "initially: notified: anything",
        "initially: turn: anything",
        "initially: scheduler: anything",
        "initially: has_taken: anything",
        "initially: has_taken: true instead of false",
    ),
    "A thread that starts in the middle finds nothing to do, or notifies a target of nothing.": (
        "initially: notifying: MARKS instead of NOTIFIES",
        "initially: notifying: SCHEDULES instead of NOTIFIES",
        "initially: working: LOOKS_AGAIN instead of IS_IDLE",
    ),
}

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
        "leave_the_rest: running: stays as it was",
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
    "Changes and runners that are under way at first are like those that come later.": (
        "initially: announcing: COUNTS instead of CHANGES",
        "initially: running: READS instead of IS_IDLE",
        "initially: running: TAKES instead of IS_IDLE",
        "initially: running: WANTS_MORE instead of IS_IDLE",
    ),
    "It is set when a runner begins.": (
        "initially: incomplete: anything",
        "initially: incomplete: true instead of false",
        "initially: spent: anything",
        "initially: spent: true instead of false",
    ),
}

CONSUMER_NOTIFICATION = {
    "What vanishes, or is taken elsewhere, makes nobody wait.": (
        "enqueue: available: without available[m]",
    ),
    "Who is notified or scheduled for nothing comes, and finds what there is.": (
        "notify: guard 1: without available[m]",
        "come: scheduled: without scheduled[c]",
        "hand_over: guard 2: dropped",
        "end_hand_over: working: SCHEDULES instead of WAITS",
        "ask: scheduled: without (exists m: available[m])",
        "ask: scheduled: without (INTERESTED = listed[c])",
        "initially: scheduled: anything",
        "initially: scheduled: true instead of false",
        "initially: working: SCHEDULES instead of WAITS",
    ),
    "Who looks once more than it was told to, or is notified by itself, loses nobody.": (
        "come: working: COMES always, not only if (c = c)",
        "take: working: stays as it was",
        "take: working: COMES instead of STAYS",
        "take: working: LOOKS instead of STAYS",
        "take: working: ASKS instead of STAYS",
        "stay: working: COMES instead of WAITS",
        "stay: working: LOOKS instead of WAITS",
        "stay: working: ASKS instead of WAITS",
        "schedule_other: working: COMES instead of WAITS",
        "schedule_other: working: LOOKS instead of WAITS",
        "end_hand_over: working: COMES instead of WAITS",
        "end_hand_over: working: LOOKS instead of WAITS",
        "gain_room: working: COMES instead of ASKS",
        "gain_room: working: LOOKS instead of ASKS",
        "gain_room: working: STAYS instead of ASKS",
        "ask: working: COMES instead of WAITS",
        "ask: working: LOOKS instead of WAITS",
        "ask: working: STAYS instead of WAITS",
        "initially: working: COMES instead of WAITS",
        "initially: working: LOOKS instead of WAITS",
    ),
    "When a client has room is its own affair: it goes on, or it leaves the interested.": (
        "return_to_interested: listed: INTERESTED always, not only if (NOTIFIED = listed[c])",
        "take: working: DECLINES always, not only if last",
        "take: working: DECLINES instead of STAYS",
        "take: working: STAYS even if last",
        "take: working: COMES instead of DECLINES",
        "take: working: LOOKS instead of DECLINES",
        "take: working: STAYS instead of DECLINES",
        "take: working: ASKS instead of DECLINES",
        "stay: working: DECLINES instead of WAITS",
        "lose_room: working: stays as it was",
        "lose_room: working: WAITS instead of DECLINES",
        "lose_room: working: COMES instead of DECLINES",
        "lose_room: working: LOOKS instead of DECLINES",
        "lose_room: working: STAYS instead of DECLINES",
        "lose_room: working: ASKS instead of DECLINES",
        "lose_room: paused: without paused[c]",
        "initially: listed: INTERESTED instead of NOT_INTERESTED",
        "initially: paused: anything",
        "initially: paused: true instead of false",
    ),
    "Whoever declines walks over all itself, so those who walk already need not.": (
        "decline: passed_by: without passed_by[c, c]",
        "initially: working: WALKS instead of WAITS",
    ),
    "Who is not interested when it is passed over asks for itself when it is.": (
        "pass_over_other: guard 1: dropped",
        "pass_over_other: passed_by: without (c = c)",
    ),
    "It is set before it is read.": (
        "initially: told: anything",
        "initially: handed_to: anything",
        "initially: passed_by: anything",
        "initially: passed_by: true instead of false",
    ),
    "It notifies nobody wrongly; that it ends is only asked of scopes with one consumer.": (
        "schedule_other: working: stays as it was",
        "schedule_other: working: SCHEDULES instead of WAITS",
        "schedule_other: working: WALKS instead of WAITS",
        "pass_over_other: passed_by: without passed_by[c, c]",
    ),
}

"""The equivalent mutants of the protocols between threads, by model and reason.

The models leave open how often a thread looks, how long a run is, and what a client does with a
delivery, so mutants of these are equivalent.
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

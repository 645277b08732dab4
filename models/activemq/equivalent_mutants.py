"""The equivalent mutants of the models of ActiveMQ's queue, by model and reason.

`cursor_progress` uses the room of `cursor_room`, so it shares most of that model's reasons.
"""

from __future__ import annotations

_STARTS_OVER = (
    "Wherever a read starts, or starts over, it meets what is in memory and leaves it there."
)
_LOOKS = "To look though there is nothing finds nothing."
_GOES_ON = "That the cursor goes on is asked where it makes passes."
_CACHES_AGAIN = "A cache that does not begin again costs a reading of the store."
_HAS_LEFT = "Who has left holds nothing, and is given nothing since it does not take."
_BEGINS = "It is a state that the queue may come to, or one in which nothing can come."

CURSOR_PAGE_IN = {
    _STARTS_OVER: (
        "send_past_cache: behind: stays as it was",
        "send_past_nothing: guard 1: without caches[IT]",
        "send_past_nothing: guard 2: dropped",
        "send_past_nothing: guard 2: without ~spent[n]",
        "send_past_nothing: guard 2: without (n = n)",
        "send_past_nothing: guard 2: without (n before n)",
        "send_past_nothing: behind: stays as it was",
        "pass_over: guard 1: without (forall n: (~(stored[n] & ~behind[n]) | (m = n) | (m bef ...",
        "read: read_last: stays as it was",
        "acknowledge: behind: without read_last[m]",
        "acknowledge: read_last: without behind[m]",
        "acknowledge: read_last: without (forall n: (~behind[n] | (m = n) | (n before m)))",
        "hand: behind: without read_last[m]",
        "hand: read_last: without behind[m]",
        "hand: read_last: without (forall n: (~behind[n] | (m = n) | (n before m)))",
        "get_for_good: behind: without read_last[m]",
        "get_for_good: read_last: without behind[m]",
        "get_for_good: read_last: without (forall n: (~behind[n] | (m = n) | (n before m)))",
    ),
    "What is read again while it is in the batch takes room twice: that is counted elsewhere.": (
        "read: guard 1: without batch[m]",
    ),
    _GOES_ON: ("pass_over: behind: stays as it was",),
    _CACHES_AGAIN: ("cache_again: caches: stays as it was",),
    _HAS_LEFT: (
        "close: attached: stays as it was",
        "close: attached: without attached[c]",
    ),
    "A window is set anew when a consumer comes.": ("open_window: guard 1: dropped",),
    "In which order a channel returns what it has is asked of the step that closes at once.": (
        "return_at_close: guard 1: dropped",
        (
            "return_at_close: guard 1: without (forall n: ~((exists c: (holds[c, n] & "
            "(channel[who] = c ..."
        ),
    ),
    "Of what has left the store nobody asks whether it was given.": (
        "hand: given: stays as it was",
        "get_for_good: given: stays as it was",
    ),
    _BEGINS: (
        "initially: spent: true instead of false",
        "initially: attached: anything",
        "initially: attached: true instead of false",
        "initially: caches: anything",
        "initially: caches: false instead of true",
        "initially: below: true instead of false",
    ),
}

_WITH_ROOM = {
    _STARTS_OVER: (
        "send_past_cache: behind: stays as it was",
        "send_past_nothing: guard 2: without caches[IT]",
        "send_past_nothing: guard 3: dropped",
        "send_past_nothing: guard 3: without ~spent[n]",
        "send_past_nothing: guard 3: without (n = n)",
        "send_past_nothing: guard 3: without (n before n)",
        "send_past_nothing: behind: stays as it was",
        "pass_over: guard 2: without (forall n: (~(stored[n] & ~behind[n]) | (m = n) | (m bef ...",
        "read: read_last: stays as it was",
        "acknowledge: behind: without read_last[m]",
        "acknowledge: read_last: without behind[m]",
        "acknowledge: read_last: without (forall n: (~behind[n] | (m = n) | (n before m)))",
    ),
    "A cache that ends though there is room costs a reading of the store.": (
        "send_past_cache: guard 1: dropped",
        "send_past_cache: guard 1: ((in_batch[IT] + in_pages[IT]) + 1) < capacity",
        "send_past_nothing: guard 1: dropped",
        "send_past_nothing: guard 1: ((in_batch[IT] + in_pages[IT]) + 1) < capacity",
    ),
    _LOOKS: (
        "read: guard 1: without (0 < pending[IT])",
        "read: guard 1: 0 <= pending[IT]",
        "pass_over: guard 1: dropped",
        "pass_over: guard 1: 0 <= pending[IT]",
    ),
    _CACHES_AGAIN: ("cache_again: caches: stays as it was",),
    "Who takes messages, and until when, the contract alone tells.": (
        "attach: guard 1: dropped",
        "attach: takes: stays as it was",
        "attach: takes: without takes[c]",
        "cancel: guard 1: dropped",
        "cancel: takes: stays as it was",
    ),
    _HAS_LEFT: (
        "close: attached: stays as it was",
        "close: attached: without attached[c]",
    ),
    "A content that was given up takes no room that could be given back.": (
        "unload: guard 1: dropped",
    ),
    _BEGINS: (
        "initially: attached: anything",
        "initially: attached: true instead of false",
        "initially: caches: anything",
        "initially: caches: false instead of true",
        "initially: below: true instead of false",
    ),
}
"""The reasons shared by all models that count room."""

CURSOR_ROOM = _WITH_ROOM | {
    _GOES_ON: ("pass_over: behind: stays as it was",),
    _BEGINS: (*_WITH_ROOM[_BEGINS], "initially: spent: true instead of false"),
}

CURSOR_PROGRESS = _WITH_ROOM | {
    _LOOKS: (*_WITH_ROOM[_LOOKS], "pass_over: guard 1: without (0 < pending[IT])"),
    "A message that finds no room waits for room, and that wakes the queue.": (
        "send_past_cache: woken: stays as it was",
    ),
    "To make a pass more than is needed, or to go on with one, finds nothing to do.": (
        "begin: guard 1: without (RESTS = makes[IT])",
        "begin: guard 1: without woken[IT]",
        "begin: woken: stays as it was",
        "end_reading: woken: (counted[IT] + 1) < page",
        "end: makes: READS instead of RESTS",
        "initially: makes: anything",
        "initially: makes: READS instead of RESTS",
        "initially: makes: GIVES instead of RESTS",
        "initially: woken: anything",
        "initially: woken: true instead of false",
    ),
    "What comes while it reads is found before the reading ends.": (
        "end_reading: woken: without woken[IT]",
    ),
    "What is done outside of a pass is not left for one.": (
        "pass_over: guard 1: without (READS = makes[IT])",
        "pass_over: guard 1: without (counted[IT] < page)",
        "pass_over: guard 1: counted[IT] <= page",
        "page_in: guard 1: dropped",
        "give: guard 1: dropped",
    ),
    "Who comes or goes while a pass is made makes it longer.": (
        "attach: guard 2: dropped",
        "cancel: guard 2: dropped",
        "close: guard 1: dropped",
    ),
    "More is read at a time.": (
        "read: counted: stays as it was",
        "read: counted: (counted[IT] + 1) without 1",
    ),
}

CURSOR_AUDIT = {
    "Read by an invariant alone, which says less then.": (
        "ask_first: fell_below: stays as it was",
        "ask_beyond: fell_below: stays as it was",
    ),
    "Of what is below the window nothing is asked.": (
        "ask_below: recorded: stays as it was",
        "roll_back_below: recorded: stays as it was",
    ),
    "Outside of the window there is no bit to be taken back.": (
        "roll_back: guard 1: dropped",
        "roll_back: guard 1: without starts[v]",
        "roll_back: guard 1: without reaches[v, word[i]]",
    ),
    "Where there is no window yet, one that slides begins as well.": (
        "ask_beyond: guard 1: without (exists v: starts[v])",
    ),
}

CURSOR_MEMORY = {
    "To be woken, or to look, once more than is needed takes nothing that does not fit.": (
        "give_up: guard 1: dropped",
        "give_up: asked: stays as it was",
        "leave: asked: stays as it was",
        "begin: guard 1: dropped",
        "begin: guard 1: without woken[IT]",
        "begin: guard 1: without ~takes[IT]",
        "begin: woken: stays as it was",
        "take: guard 1: without takes[IT]",
        "end: guard 1: dropped",
        "initially: asked: anything",
        "initially: asked: true instead of false",
        "initially: woken: anything",
        "initially: woken: true instead of false",
        "initially: takes: anything",
        "initially: takes: true instead of false",
    ),
    "Whoever has asked while the queue takes is still parked when it ends, or needs no more.": (
        "end: asked: without asked[IT]",
    ),
    "What is not given up is taken later: when a publish is refused is open.": (
        "give_up: parked: stays as it was",
    ),
}

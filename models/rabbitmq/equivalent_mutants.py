"""The equivalent mutants of the paging queue, by model and reason.

The models leave open how much of the written data reaches the disk, in which order kinds of
messages leave memory, and how often a thread looks, so mutants of these are equivalent.
"""

from __future__ import annotations

PAGING_INDEX = {
    "What is flushed already has nothing in memory: once more appends or deletes nothing.": (
        "append: guard 1: without ~flushed[s]",
        "delete: guard 1: without ~flushed[s]",
    ),
    "What came and went has nothing to be read: a file may have all of it, or nothing.": (
        "append: filed: NONE instead of PDA",
        "append: filed: NONE instead of PDA (2)",
        "recover: in_ram: PDA instead of NONE",
        "recover: in_ram: PDA instead of NONE (2)",
        (
            "recover: in_ram: (PD if ((PD = journal[p]) & (NONE = filed[p])) else (P if ((P = "
            "journal[p]) & (NONE = filed[p])) else NONE)) even if ((PDA = journal[p]) & (NONE = "
            "filed[p]))"
        ),
        "recover: in_ram: NONE instead of PDA",
    ),
    "It stops when it has flushed, which it may at any time.": (
        "end_flush: phase: IS_DOWN instead of RUNS",
    ),
    "What is down has nothing to lose.": ("crash: guard 1: dropped",),
    "What is written may reach a file early: recovery takes it from the journal all the same.": (
        "crash_in_append: guard 1: dropped",
        "crash_in_append: guard 1: without (FLUSHES = phase[IT])",
        "crash_in_append: guard 1: without ~flushed[s]",
        "crash_in_append: guard 2: dropped",
        "crash_in_append: guard 2: without ~(s = segment[p])",
        (
            "crash_in_append: guard 2: without (~((P = filed[p]) & (D = in_ram[p])) & (((NONE = "
            "filed[p ..."
        ),
        (
            "crash_in_append: guard 2: without (~((NONE = filed[p]) & (PD = in_ram[p])) & "
            "~((NONE = fil ..."
        ),
        "crash_in_append: guard 2: without (PD = in_ram[p])",
        "crash_in_append: guard 2: without (P = in_ram[p])",
        (
            "crash_in_append: guard 2: without (~((PD = filed[p]) & (NONE = in_ram[p])) & ~((P = "
            "filed[ ..."
        ),
        "crash_in_append: guard 2: without (PD = filed[p])",
        "crash_in_append: guard 2: without (P = filed[p]) (2)",
        (
            "crash_in_append: torn: (NONE if (PDA = in_ram[p]) else in_ram[p]) always, not only "
            "if (s = segment[p])"
        ),
    ),
    "Nothing is on its way to the disk then, so nothing changes.": (
        "reach: guard 1: dropped",
        "reach: guard 1: without ~(NONE = torn[p])",
    ),
    "A record that is the last, or all that is left, need not reach the disk.": (
        (
            "reach: filed: (PD if ((P = filed[p]) & ~(PD = torn[p]) & ((DA = torn[p]) | (D = "
            "torn[p]))) else (P if ((NONE = filed[p]) & ((PD = torn[p]) | (~(DA = torn[p]) & "
            "(P = torn[p])))) else filed[p])) even if ((PD = filed[p]) & ~(PD = torn[p]) & "
            "~(DA = torn[p]) & ( ..."
        ),
        "reach: filed: PD instead of PDA",
        "reach: filed: without (D = torn[p])",
        "reach: filed: without (~(DA = torn[p]) & (P = torn[p]))",
        "reach: torn: (A if (DA = torn[p]) else NONE) even if (PD = torn[p])",
        "reach: torn: NONE instead of D",
        "reach: torn: NONE even if (DA = torn[p])",
        "reach: torn: NONE instead of A",
    ),
    "Of what is acknowledged, a file that has nothing says as much as one that has all.": (
        "reach: filed: NONE instead of PDA",
    ),
    "A flush that is under way at first, or a recovery, finds nothing.": (
        "initially: flushed: anything",
        "initially: flushed: true instead of false",
        "initially: phase: anything",
        "initially: phase: FLUSHES instead of RUNS",
        "initially: phase: IS_DOWN instead of RUNS",
    ),
}

PAGING_REDUCTION = {
    "The limit is there so that an exploration ends; the proof is for any.": (
        "come: guard 1: without ((total[IT] + pending[IT]) < most)",
        "come: guard 1: (total[IT] + pending[IT]) <= most",
        "come_to_be_pending: guard 1: without ((total[IT] + pending[IT]) < most)",
        "come_to_be_pending: guard 1: (total[IT] + pending[IT]) <= most",
    ),
    "What the last call has said is so all the more where there is a message less.": (
        "go: worked: stays as it was",
        "go: is_done: stays as it was",
        "settle: worked: stays as it was",
        "settle: is_done: stays as it was",
        "settle_paged: worked: stays as it was",
        "settle_paged: is_done: stays as it was",
    ),
    "Which kind of contents leaves first is open.": (
        "begin: call: PENDING_FIRST always, not only if pending_first",
        "begin: call: QUEUED_FIRST even if pending_first",
        "begin: call: QUEUED_FIRST instead of PENDING_FIRST",
        "begin: call: PENDING_FIRST instead of QUEUED_FIRST",
    ),
    "A kind that has been looked at is looked at once more: nothing of it is left to do.": (
        "end_pending: call: QUEUED_SECOND always, not only if (PENDING_FIRST = call[IT])",
        "end_pending: call: QUEUED_FIRST instead of QUEUED_SECOND",
        "end_pending: call: PENDING_FIRST instead of LOOKS",
        "end_pending: call: QUEUED_SECOND instead of LOOKS",
        "end_queued: call: PENDING_SECOND always, not only if (QUEUED_FIRST = call[IT])",
        "end_queued: call: PENDING_FIRST instead of PENDING_SECOND",
        "end_queued: call: QUEUED_FIRST instead of LOOKS",
        "end_queued: call: PENDING_SECOND instead of LOOKS",
    ),
    "Another content, or another position, leaves in its stead: as many leave, and no more.": (
        "page_q1: guard 1: without (target[IT] < in_ram[IT])",
        "page_q1: guard 1: target[IT] <= in_ram[IT]",
        "page_q4: guard 1: without (target[IT] < in_ram[IT])",
        "page_q4: guard 1: target[IT] <= in_ram[IT]",
        "page_q4: guard 2: without (0 = length[Q1])",
        "push_q2: guard 1: without (0 = pushable[IT])",
    ),
    "A call that is under way at first finds nothing.": (
        "initially: call: anything",
        "initially: call: PENDING_FIRST instead of RESTS",
        "initially: call: QUEUED_SECOND instead of RESTS",
        "initially: call: QUEUED_FIRST instead of RESTS",
        "initially: call: PENDING_SECOND instead of RESTS",
        "initially: call: LOOKS instead of RESTS",
        "initially: call: PUSHES instead of RESTS",
    ),
    "Of an empty queue it is so, whatever is asked of it.": (
        "initially: is_done: anything",
        "initially: is_done: true instead of false",
    ),
    "It is set before it is read.": (
        "initially: target: 1 instead of 0",
        "initially: quota: 1 instead of 0",
        "initially: pushable: anything",
        "initially: pushable: 1 instead of 0",
        "initially: permits: anything",
        "initially: permits: 1 instead of 0",
        "initially: contents_before: anything",
        "initially: contents_before: 1 instead of 0",
        "initially: positions_before: anything",
        "initially: positions_before: 1 instead of 0",
    ),
}


def _fetched(*names: str) -> tuple[str, ...]:
    """Return the mutants of a fetch for a consumer, and the same mutants of a get."""
    return tuple(f"{how}_{name}" for how in ("fetch", "get") for name in names)


PAGING_PLACES = {
    "Nothing else that is live is in these positions: what is left of the words says the same.": (
        *_fetched(
            "last_and_reload: place: without from_start[m]",
            "last_and_reload: place: without before_end[m]",
            (
                "last_and_reload: place: without ~(PENDING = ((PENDING if keeps else GONE) if "
                "(m = m) els ..."
            ),
            "last_and_reload: from_start: without from_start[m]",
            "last_and_reload_all: place: without from_start[m]",
        ),
        "put_back_and_reload: place: without from_start[m]",
        "put_back_and_reload: place: without before_end[m]",
        "put_back_and_reload: place: without ~(PENDING = place[m])",
        "put_back_and_reload: from_start: without from_start[m]",
        "put_back_and_reload_all: place: without from_start[m]",
    ),
    "Of what is not in delta, memory and index say the same: it is read once more.": (
        *_fetched(
            *(
                f"last_and_reload{which}: delivered: without {part}"
                for which in ("", "_all")
                for part in (
                    *("from_start[m]", "before_end[m]", "indexed[m]"),
                    "~((acked[m] | (indexed[m] & stored[m] & ~keeps)) if (m = ...",
                )
            ),
        ),
        *(
            f"put_back_and_reload{which}: delivered: without {part}"
            for which in ("", "_all")
            for part in ("from_start[m]", "before_end[m]", "indexed[m]", "~acked[m]")
        ),
    ),
    "All of delta is in the segment, so any position there will do to find it.": (
        *_fetched(
            "last_and_reload_all: guard 3: without from_start[first]",
            "last_and_reload_all: guard 3: without indexed[first]",
            "last_and_reload_all: guard 3: without ~acked[first]",
            "last_and_reload_all: guard 3: without ~(PENDING = place[first])",
            (
                "last_and_reload_all: guard 3: without (forall n: ~(from_start[n] & "
                "before_end[n] & indexed[n]  ..."
            ),
        ),
        "put_back_and_reload_all: guard 2: without from_start[first]",
        "put_back_and_reload_all: guard 2: without indexed[first]",
        "put_back_and_reload_all: guard 2: without ~acked[first]",
        "put_back_and_reload_all: guard 2: without ~(PENDING = place[first])",
        (
            "put_back_and_reload_all: guard 2: without (forall n: ~(from_start[n] & "
            "before_end[n] & indexed[n]  ..."
        ),
    ),
    "A segment is read that has nothing of delta: it adds nothing, and q3 has something.": (
        "put_back_and_reload: guard 2: without from_start[first]",
        "put_back_and_reload: guard 2: without indexed[first]",
        "put_back_and_reload: guard 2: without ~acked[first]",
        "put_back_and_reload: guard 2: without ~(PENDING = place[first])",
    ),
    "It is read sooner than it must be, behind what is in q4 and q3.": (
        "put_back_into_q4: guard 1: without (forall m: ~(Q4 = place[m]))",
        "put_back_into_q4: guard 2: without (exists m: (Q1 = place[m]))",
        "put_back_and_reload: guard 1: dropped",
        "put_back_and_reload: guard 1: without (forall m: ~(Q4 = place[m]))",
        "put_back_and_reload: guard 1: without (forall n: (~(Q3 = place[n]) | (m = n)))",
        "put_back_and_reload_all: guard 1: dropped",
        "put_back_and_reload_all: guard 1: without (forall m: ~(Q4 = place[m]))",
        "put_back_and_reload_all: guard 1: without (forall n: (~(Q3 = place[n]) | (m = n)))",
    ),
    "What is behind one of q3, or in a later segment, is so of the first of q3 all the more.": (
        ("page_q3: guard 1: without (forall n: (~(Q3 = place[n]) | (head = n) | (head before ..."),
        (
            "requeue_to_q3: guard 2: without (forall n: (~(Q3 = place[n]) | (head = n) | "
            "(head before ..."
        ),
    ),
    "Delta starts behind all of q3, which has something where delta has, and before all of q2.": (
        "page_q2: from_start: stays as it was",
        "page_q2: from_start: without (m = m)",
        "page_q2: from_start: without (m before m)",
        "requeue_to_delta: guard 2: dropped",
        "requeue_to_delta: guard 2: without (Q3 = place[head])",
        (
            "requeue_to_delta: guard 2: without (forall n: (~(Q3 = place[n]) | (head = n) | "
            "(head before ..."
        ),
        "requeue_to_delta: guard 2: without (head before m)",
        "close_channel_beside_q3: stored: without (head before m) (2)",
        "close_channel_beside_q3: delivered: without (head before m)",
        "close_channel_beside_q3: indexed: without (head before m)",
        "close_channel_beside_q3: before_end: without (head before m)",
    ),
    "There may be pending messages between delta's bounds: a reload leaves them out.": (
        "close_channel_beside_q3: before_end: without (which = channel[holder[m]])",
    ),
    "Which content of what is pending leaves first is open, and one that has left stays away.": (
        "limit_ram_acks: guard 1: without in_ram[m]",
        "limit_ram_acks: guard 2: dropped",
    ),
    "What is in the index and not ready was delivered, and is noted already.": (
        ("purge: noted: without ((Q1 = place[m]) | (Q2 = place[m]) | (DELTA = place[m])  ..."),
    ),
    "Whom the queue serves is open: one that always serves the same keeps all of this.": (
        "choose: taker: stays as it was",
    ),
    "It is set before it is read.": (
        "initially: delivered: anything",
        "initially: delivered: true instead of false",
    ),
    "Where no position is free, nothing ever comes.": ("initially: used: true instead of false",),
}

"""Judging a history while it grows: the results that are certain now, and the records to keep.

The rules are those of `stages.py`, on all kept records of a queue. A verdict depends on recorded
and on missing records, so a violation is *raised* only if no record still to come could take it
back. The *clock* of a run, the greatest start of its records, and one allowance, `late`, bound what
can still come:

    When a record that starts at t is there, all records are there that started before t - late, and
    all deliveries that were seen before t - late.

So an operation that takes longer than `late` to be answered, and is recorded then, may be judged as
if it were missing. From this follow two horizons of a queue, beyond which nothing is certain:

* `seen`: clock - late. A later record starts later or, if it is a delivery, was seen later. This
  settles which subscriber certainly held what: a later publish, release or close is later in time.
* `made`: a later delivery also starts later. A delivery's start can be as early as the event that
  made room for it, at worst its subscription, but starts never go back within one consumer. So
  `made` lies before the last start of each consumer still subscribed. A consumer without a window,
  or without deliveries, holds it back until it leaves: a waiting message may be with it.

Suppose that a violation's late event ends at or before `made`. Later deliveries start later, so no
message turns out to have left before that; later ends of waits, returns and settlements lie later
too. Each comparison of the rule stays true, and `trace check` of all records finds the violation
too. Rules that compare no moment at which a delivery was *made* need `seen` only. An overtaken
message must also have been seen by `made`: until then a leaving consumer may turn out to have held
it, or it may go to another stream.

No later record overtakes an event before `made`. Such an event is kept only for the messages that
it overtook, which are seen later, and to be recognised if it comes again. Messages settled for good
are kept for `keep` longer, and violations decided later than that are missed.

Four things stay open for ever: which of two requirements names a violation (`settled-once` for
`nothing-twice`, and the like); a return by a close or crash of a message that is settled later
after all; a loss, which a consumer that leaves unseen takes back, or a get without an answer when
another lost message turns up; and the facts about a queue (a selective consumer, another
declaration). If such a record removes or renames a violation, the violation is *withdrawn*,
provided that all records behind it are kept: always if nothing was forgotten, otherwise if it is
about one kept message. A queue that has forgotten messages does not report an unknown message as
invented.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.dominance import Early, Late, overtaken
from brokerproof.pipeline.intervals.control import Control, Named, named
from brokerproof.pipeline.intervals.streams import ClockStep, ambiguous, contradictions
from brokerproof.pipeline.intervals.subscribers import told_apart
from brokerproof.pipeline.intervals.subscriptions import NUMBERED, Key, Leavings, Subscriptions
from brokerproof.pipeline.intervals.table import FIRST, GIVEN, QUERY, SURE, VIEW, with_columns
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, is_one_of, joint, numbers, ranks
from brokerproof.pipeline.readers.rejected_rows import Category
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.rules.unanswered_gets import beyond_gets
from brokerproof.pipeline.rules.violations import strongest
from brokerproof.pipeline.stages import by_message, by_queue
from brokerproof.pipeline.tables import PLACE, records_of
from brokerproof.spec.histories import NEVER

SEEN_RULES: Final = tuple(each.name for each in RULES.values() if each.by_sight)
"""The rules that compare no moment at which a delivery was made."""

ABOUT_SEVERAL: Final = frozenset(
    each.name for each in RULES.values() if each.sides is not None or each.of_subscriber
)
"""The rules that use more than the records of one message."""

NAMED_BY_WITNESS: Final = tuple(each.name for each in RULES.values() if each.named_by_witness)


class Raised(msgspec.Struct, frozen=True):
    """A raised violation of a queue; `late_end` is when the wrong event had happened."""

    requirement: str
    message: str
    rule: str
    late_end: int


class QueueState(msgspec.Struct, kw_only=True):
    """The state of a queue besides its kept records.

    Attributes:
        made: the horizon, which never goes back.
        pending: whether the queue must be judged again when the clock has moved.
        forgot: whether records of it were forgotten.
        oldest: the least start of its kept records, `NEVER` without any.
        last: the greatest start of a delivery to each of its consumers still subscribed.
        raised: the violations raised about kept messages.
        found, withdrawn: the violations that this judgement raises, and takes back.
        stays: all violations, with their strongest witnesses, once no more records come.
        unjudged: how many of its kept records are of messages that cannot be judged.
        strangers: how many forgotten records of this judgement were about unknown messages.
        clock_back: the greatest step back of a recorder's clock so far.
        clock_step: that step, if this judgement found it.
    """

    run: str
    queue: str
    made: int = -1
    pending: bool = False
    forgot: bool = False
    oldest: int = NEVER
    last: dict[str, int] = {}
    raised: list[Raised] = []
    found: list[dict[str, Any]] = []
    withdrawn: list[Raised] = []
    stays: list[dict[str, Any]] = []
    unjudged: dict[Category, int] = {}
    strangers: int = 0
    clock_back: int = 0
    clock_step: ClockStep | None = None

    @property
    def key(self) -> Key:
        """Its run and name."""
        return self.run, self.queue


@dataclass(frozen=True)
class Subscribers:
    """The consumers of each queue: when each subscribed, and when it had certainly left."""

    of: Mapping[Key, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True)
class Clock:
    """The progress of runs, in their own times.

    Attributes:
        newest: the greatest start of each run.
        late: how much later than it starts, or is seen, something may be recorded.
        keep: how long settled messages are kept, None for ever.
        fresh_from: the least place of the new rows.
        stirred: the runs with new control records.
        finished: whether no more records come.
    """

    newest: Mapping[str, int]
    late: int
    keep: int | None
    fresh_from: int = 0
    stirred: frozenset[str] = frozenset()
    finished: bool = False

    def seen(self, run: str) -> int:
        """Return the `seen` horizon of a run."""
        return NEVER if self.finished else self.newest.get(run, 0) - self.late - 1

    def forgets_before(self, run: str) -> int:
        """Return the time before which settled messages are forgotten."""
        return -1 if self.keep is None or self.finished else self.seen(run) - self.keep


def judged(
    table: pa.Table,
    states: Iterable[QueueState],
    control: Control,
    subscribers: Subscribers,
    clock: Clock,
) -> tuple[pa.Table, list[QueueState]]:
    """Judge some queues; return their kept records and their new states.

    `table` has all kept and new records of these queues. A queue without new records that is not
    pending stays as it is.
    """
    known = {
        each.key: msgspec.structs.replace(
            each, found=[], withdrawn=[], stays=[], strangers=0, clock_step=None
        )
        for each in states
    }
    queue = named(table, "queue")
    for key in queue.keys:
        known.setdefault(key, QueueState(run=key[0], queue=key[1]))
    chosen = _chosen(table, queue, known, clock)
    part, rest = table.filter(pa.array(chosen)), table.filter(pa.array(~chosen))
    if part.num_rows:
        rest = pa.concat_tables([rest, _Part(part, known, control, subscribers, clock).kept()])
    return rest, list(known.values())


def _chosen(table: pa.Table, queue: Named, known: Mapping[Key, QueueState], clock: Clock) -> Marks:
    """Return which rows belong to queues that have to be judged."""
    fresh = np.bincount(
        queue.number, weights=numbers(table, PLACE) >= clock.fresh_from, minlength=len(queue.keys)
    )
    wanted = [
        clock.finished or many > 0 or known[key].pending or key[0] in clock.stirred
        for key, many in zip(queue.keys, fresh.tolist(), strict=True)
    ]
    return np.array(wanted, dtype=np.bool_)[queue.number]


class _Part:
    """All kept records of some queues, which are judged."""

    def __init__(
        self,
        table: pa.Table,
        known: Mapping[Key, QueueState],
        control: Control,
        subscribers: Subscribers,
        clock: Clock,
    ) -> None:
        self._table = table
        self._control = control
        self._clock = clock
        self._queue = named(table, "queue")
        self._states = [known[key] for key in self._queue.keys]
        name, _ = ranks(table.column("message"))
        _, message = np.unique(joint(self._queue.number, name), return_inverse=True)
        self._message: Ints = message.astype(np.int64)
        self._has_name: Marks = name >= 0
        self._seen = np.array([clock.seen(key[0]) for key in self._queue.keys], dtype=np.int64)
        happened = ~is_one_of(table, "outcome", "failed")
        self._published = self._of_message(is_one_of(table, "op", "publish") & happened)
        self._given = is_one_of(table, "op", "deliver") & happened
        self._taken = self._given & ~is_one_of(table, "mode", "browse")
        self._move_horizons(subscribers)

    def _of_message(self, rows: Marks) -> Marks:
        """Return the rows of all messages in the given rows."""
        about = np.bincount(self._message[rows], minlength=int(self._message.max()) + 1) > 0
        return np.asarray(about[self._message] & self._has_name)

    def _move_horizons(self, subscribers: Subscribers) -> None:
        end = numbers(self._table, "end", NEVER)
        rows = self._taken & (end <= self._seen[self._queue.number])
        names = {name for state in self._states for name in subscribers.of.get(state.key, ())}
        apart = told_apart(self._table, self._control).history
        wanted = pc.is_in(apart.column("consumer"), pa.array(sorted(names), pa.string()))
        rows &= wanted.to_numpy()
        of_subscriber = (
            apart.filter(pa.array(rows))
            .group_by(["run", "queue", "consumer"])
            .aggregate([("start", "max")])
            .to_pylist()
        )
        latest = {
            (row["run"], row["queue"], row["consumer"]): row["start_max"] for row in of_subscriber
        }
        for state, seen in zip(self._states, self._seen.tolist(), strict=True):
            last = {}
            for name, (subscribed, gone) in subscribers.of.get(state.key, {}).items():
                if gone > seen - self._clock.late:
                    start = max(subscribed, latest.get((*state.key, name), 0))
                    last[name] = max(start, state.last.get(name, 0))
            state.last = last
            if not self._clock.finished:
                made = min([seen, *(start - 1 for start in last.values())])
                state.made = max(state.made, made)

    def kept(self) -> pa.Table:
        """Judge, update the states, and return the rows that are kept."""
        forgot = np.array([state.forgot for state in self._states], dtype=np.bool_)
        # The facts about these messages have been forgotten, so nothing can be judged of them.
        strange = forgot[self._queue.number] & self._has_name & ~self._published
        self._judge(self._table.filter(pa.array(~strange)))
        over = self._over(forgot)
        for number, state in enumerate(self._states):
            here = self._queue.number == number
            state.strangers = int((here & over & strange).sum())
            state.forgot = state.forgot or bool((here & over).any())
        kept = self._table.filter(pa.array(~over))
        self._forget_raised(kept)
        return kept

    def _judge(self, part: pa.Table) -> None:
        torn = contradictions(part, self._control)
        stage = by_message(part, self._control, ambiguous(torn))
        made = np.array([state.made for state in self._states], dtype=np.int64)
        if self._clock.finished:
            made[:] = NEVER
        at = {state.key: number for number, state in enumerate(self._states)}
        self._follow_clocks(torn, at)
        self._count_unjudged(stage.aside, part, at)
        queue = named(stage.intervals, "queue")
        number = np.array([at[key] for key in queue.keys], dtype=np.int64)[queue.number]
        flags = numbers(stage.intervals, "flags")
        open_ = numbers(stage.intervals, "given_end") > made[number]
        # An unseen delivery may have been in transit to a consumer that leaves later, and return.
        begun = np.where(open_, NEVER, numbers(stage.intervals, "begun_end"))
        flags = np.where(open_, flags & ~(FIRST | SURE), flags)
        intervals = with_columns(stage.intervals, flags=flags, begun_end=begun)
        found = pa.concat_tables([stage.violations, *by_queue(intervals, self._control)])
        wrong = beyond_gets(found, self._control)
        final = self._final(wrong, at, made)
        final &= ~_may_be_renamed(wrong, stage.intervals.filter(pa.array(open_)))
        not_yet = named(wrong.filter(pa.array(~final)), "queue").keys
        given = open_ & ((flags & GIVEN) != 0)
        waiting = {*np.unique(number[given]).tolist(), *(at[key] for key in not_yet)}
        for each, state in enumerate(self._states):
            state.pending = each in waiting
        self._raise(strongest([wrong.filter(pa.array(final))]), at)
        self._withdraw(wrong, part)
        if self._clock.finished:
            for row in strongest([wrong]).to_pylist():
                self._states[at[row["run"], row["queue"]]].stays.append(row)

    def _follow_clocks(self, torn: pa.Table, at: Mapping[Key, int]) -> None:
        """Record the steps back of clocks that are greater than all before them."""
        for row in torn.filter(pc.greater(torn.column("too_early"), 0)).to_pylist():
            state = self._states[at[row["run"], row["queue"]]]
            step = ClockStep(row["too_early"], row[PLACE])
            if step.by > state.clock_back:
                state.clock_back, state.clock_step = step.by, step

    def _count_unjudged(self, aside: pa.Table, part: pa.Table, at: Mapping[Key, int]) -> None:
        """Count the rows of each queue that were rejected with their messages."""
        for state in self._states:
            state.unjudged = {}
        queue, place = named(part, "queue"), numbers(part, PLACE)
        for category in pc.unique(aside.column("category")).to_pylist():
            places = numbers(aside.filter(pc.equal(aside.column("category"), category)), "place")
            of_queue = queue.number[np.isin(place, places)]
            for number, many in zip(*np.unique_counts(of_queue), strict=True):
                self._states[at[queue.keys[int(number)]]].unjudged[category] = int(many)

    def _final(self, wrong: pa.Table, at: Mapping[Key, int], made: Ints) -> Marks:
        """Return which violations no record still to come takes back."""
        queue = named(wrong, "queue")
        number = np.array([at[key] for key in queue.keys], dtype=np.int64)[queue.number]
        by_seen = is_one_of(wrong, "rule", *SEEN_RULES)
        horizon = np.where(by_seen, self._seen[number], made[number])
        return np.asarray(numbers(wrong, "late_end") <= horizon)

    def _raise(self, wrong: pa.Table, at: Mapping[Key, int]) -> None:
        """Add the violations not raised before to the states."""
        before = [{(each.requirement, each.message) for each in s.raised} for s in self._states]
        for row in wrong.to_pylist():
            number = at[row["run"], row["queue"]]
            if (row["requirement"], row["message"]) not in before[number]:
                state = self._states[number]
                names = ("requirement", "message", "rule", "late_end")
                state.found.append(row)
                state.raised.append(Raised(*(row[name] for name in names)))

    def _withdraw(self, wrong: pa.Table, part: pa.Table) -> None:
        """Take back violations that are no longer found, if all records behind them are kept."""
        columns = (
            wrong.column(name).to_pylist() for name in ("run", "queue", "requirement", "message")
        )
        found = set(zip(*columns, strict=True))
        kept: set[tuple[str, str, str]] | None = None
        for state in self._states:
            gone = [r for r in state.raised if (*state.key, r.requirement, r.message) not in found]
            if gone and kept is None:
                kept = _messages_of(part)
            state.withdrawn = [
                each
                for each in gone
                if not state.forgot
                or (each.rule not in ABOUT_SEVERAL and (*state.key, each.message) in (kept or ()))
            ]
            taken_back = set(state.withdrawn)
            state.raised = [each for each in state.raised if each not in taken_back]

    def _over(self, forgot: Marks) -> Marks:
        """Return the rows that are forgotten from now on."""
        if self._clock.keep is None or self._clock.finished:
            return np.zeros(self._table.num_rows, dtype=np.bool_)
        before = [self._clock.forgets_before(state.run) for state in self._states]
        start = numbers(self._table, "start")
        newest = np.maximum(start, numbers(self._table, "end"))
        newest_of = np.full(int(self._message.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(newest_of, self._message, newest)
        final = is_one_of(self._table, "op", "acknowledge", "reject")
        final &= is_one_of(self._table, "outcome", "ok")
        done = self._of_message(final | (self._taken & is_one_of(self._table, "mode", "automatic")))
        done &= self._of_message(self._taken)
        done |= forgot[self._queue.number] & ~self._published
        last = np.where(self._has_name, newest_of[self._message], newest)
        too_old = last < np.array(before, dtype=np.int64)[self._queue.number]
        return np.asarray(too_old & (done | ~self._has_name))

    def _forget_raised(self, kept: pa.Table) -> None:
        """Forget the raised violations of forgotten messages, and record the oldest kept start."""
        queue = named(kept, "queue")
        oldest = np.full(len(queue.keys), NEVER, dtype=np.int64)
        np.minimum.at(oldest, queue.number, numbers(kept, "start"))
        of_queue = dict(zip(queue.keys, oldest.tolist(), strict=True))
        names: set[tuple[str, str, str]] | None = None
        for state in self._states:
            state.oldest = of_queue.get(state.key, NEVER)
            before = self._clock.forgets_before(state.run)
            if any(each.late_end < before for each in state.raised):
                names = _messages_of(kept) if names is None else names
                state.raised = [
                    each
                    for each in state.raised
                    if each.late_end >= before or (*state.key, each.message) in names
                ]


def _may_be_renamed(wrong: pa.Table, unseen: pa.Table) -> Marks:
    """Return which violations may get a stronger witness, with another requirement.

    Of two messages that one overtook, the witness is the one that left last, and the requirement
    depends on whether that one had returned. `unseen` are the intervals with unknown ends.
    """
    result = np.zeros(wrong.num_rows, dtype=np.bool_)
    both = pa.concat_tables([each.select(["run", "queue"]) for each in (wrong, unseen)])
    queue = named(both, "queue").number
    flags, begun = numbers(unseen, "flags"), numbers(unseen, "begun_end")
    by_witness = is_one_of(wrong, "rule", *NAMED_BY_WITNESS)
    for requirement, of_others in (("priority-order", 0), ("release-rewinds", FIRST)):
        others = np.flatnonzero((flags & (FIRST | VIEW | QUERY)) == of_others)
        rows = np.flatnonzero(by_witness & is_one_of(wrong, "requirement", requirement))
        of_unseen = Early(queue[wrong.num_rows + others], begun[others], np.zeros_like(others))
        late = numbers(wrong, "late_start")[rows]
        which = overtaken(of_unseen, Late(queue[rows], late, np.full(rows.size, -1)))
        result[rows[which != NO_ROW]] = True
    return result


def _messages_of(table: pa.Table) -> set[tuple[str, str, str]]:
    columns = (table.column(name).to_pylist() for name in ("run", "queue", "message"))
    return set(zip(*columns, strict=True))


def subscribers_of(control: pa.Table, *, by_deletion: bool = True) -> Subscribers:
    """Return the consumers in the control records.

    Browsers are left out, since they take nothing. A consumer has left when its cancel was
    answered, its channel was closed, the broker stopped or, with `by_deletion`, its queue was
    deleted.
    """
    records = (record for batch in control.to_batches() for record in records_of(batch))
    found: dict[Key, dict[str, tuple[int, int]]] = {}
    for each in Subscriptions(Leavings.of(records), by_deletion=by_deletion):
        if each.record.mode != "browse":
            of_queue = found.setdefault((each.record.run, each.record.queue or ""), {})
            of_queue[each.name] = (each.start, each.left)
    return Subscribers(found)


def still_needed(control: pa.Table, oldest: Mapping[str, int]) -> pa.Table:
    """Return the control records that matter to kept or coming records.

    `oldest` is the least start of the kept records of each run. A control record that ended before
    that is not needed, nor the subscription of a consumer that had left by then. The deletion of a
    queue does not end a subscription here: its channel may close later, and then shows which
    deliveries were unseen.
    """
    subscribers = subscribers_of(control, by_deletion=False).of
    keep = [_matters(row, subscribers, oldest.get(row["run"], 0)) for row in control.to_pylist()]
    return control.filter(pa.array(keep, pa.bool_()))


def _matters(
    row: Mapping[str, Any], subscribers: Mapping[Key, Mapping[str, tuple[int, int]]], oldest: int
) -> bool:
    match row["op"]:
        case "declare":
            return True
        case "consume":
            of_queue = subscribers.get((row["run"], row["queue"]), {})
            names = (row["consumer"], f"{row['consumer']}{NUMBERED}")
            left = [
                gone
                for name, (start, gone) in of_queue.items()
                if start == row["start"] and (name == names[0] or name.startswith(names[1]))
            ]
            return max(left, default=NEVER) >= oldest
        case _:
            return row["end"] is None or row["outcome"] != "ok" or row["end"] >= oldest


def states_of(told: Sequence[bytes]) -> list[QueueState]:
    """Return the states that were written."""
    return [msgspec.msgpack.decode(each, type=QueueState) for each in told]

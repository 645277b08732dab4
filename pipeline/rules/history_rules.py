"""The rules on recorded histories: one record each, in the order in which they claim a violation.

A record has all about its rule but the kernel: the formula, the rows that it compares, the
requirements that it can show broken, when each of them was exercised, the sentences of a report,
the shortest run that shows the same, and the row of `docs/reference/history-rules.md`.
`models/contract/history.py` has the formulas, and `single_messages.py`, `several_messages.py`,
`windows.py` and `stalls.py` the kernels. A new rule needs its record here, a kernel if none of
these is its own, and its theorem in `models/contract/history_of_contract.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from brokerproof.models.contract.history import (
    BEGUN,
    GIVEN_BEFORE_PUBLISHED,
    HELD_BY_TWO,
    OVERTAKES_AN_EQUAL,
    OVERTAKES_AN_EQUAL_IN_A_STREAM,
    OVERTAKES_WHAT_RETURNED,
    PUBLISHED,
    SHOWN_WHILE_HELD,
    TAKEN_WHILE_ANOTHER_WAITED,
    TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
    TAKEN_WHILE_SOME_WAITED,
    Rule,
)
from brokerproof.pipeline.intervals.table import (
    ARRIVED,
    ARRIVES,
    BEGINNINGS,
    CAME_BACK,
    CRASHES,
    DELETIONS,
    DRAINED,
    DROPS,
    ENDED,
    FIRST,
    FLAGS,
    GIVEN,
    JOINED,
    JOINED_URGENT,
    LEFT,
    ORDERED,
    PLACED,
    PUBLISHES,
    PURGES,
    QUERY,
    RETURNED,
    SETTLEMENTS,
    SURE,
    TAKEN,
    UNDRAINED,
    UNRECORDED,
    VIEW,
    WAITED,
)
from brokerproof.pipeline.names import Marks
from brokerproof.pipeline.rules.coverage import Cases


@dataclass(frozen=True)
class Side:
    """The rows that may be early or late: those with all flags of one of `either`.

    Rows with a flag of `without` are none of them.
    """

    either: tuple[int, ...] = (0,)
    without: int = VIEW | QUERY

    def has(self, flags: Any) -> Any:
        """Return whether a row is on this side, by its flags: a number, or a column of them."""
        return functools.reduce(
            operator.or_, ((flags & (all_of | self.without)) == all_of for all_of in self.either)
        )


@dataclass(frozen=True)
class Sides:
    """The early and the late rows of a queue that a rule compares.

    Attributes:
        level: what the priority level of the early row must be, compared with that of the late one;
            `higher` is for queues with priorities only.
        same_subscriber: whether both must have gone to the same subscriber.
    """

    early: Side
    late: Side
    level: Literal["any", "equal", "higher"] = "any"
    same_subscriber: bool = False


@dataclass(frozen=True)
class Case:
    """A requirement that a rule can show broken.

    Attributes:
        run: the steps of the shortest run that shows the same, in the words of `least_runs.py`.
        exercised: which deliveries, intervals or gets are cases of the requirement; stated once for
            each requirement. One without it is never said to be kept.
        excused: which of these the recording leaves open, by the cause; the first one counts.
        when: what makes a violation one of this requirement, in words; empty for the usual one.
        early: flags of the early row that make it so.
        late: flags of the late row that make it so.
    """

    requirement: str
    run: str
    exercised: Callable[[Cases], Marks] | None = None
    excused: Mapping[str, Callable[[Cases], Marks]] = field(default_factory=dict)
    when: str = ""
    early: int = 0
    late: int = 0

    def applies(self, early: Any, late: Any) -> Any:
        """Return whether the flags of the compared rows, numbers or columns, are its own."""
        return ((early & self.early) == self.early) & ((late & self.late) == self.late)


@dataclass(frozen=True)
class HistoryRule:
    """A rule on recorded histories.

    Attributes:
        expected: what a sound broker would have done; the words for `{…}` are in `explanations.py`.
        seen: what the recording shows instead.
        cases: the requirements; of those whose condition holds, the last one counts.
        formula: the comparisons, if the models have them.
        sides: the rows compared, for rules about several messages of a queue.
        each_moment: whether the formula must hold at each moment of the late row's span.
        wrong: what the rule finds, in words, if the formula does not say it.
        asked_of: the rows compared, in words.
        by_sight: whether it compares no moment at which a delivery was made.
        by_order: whether it needs a queue of known order.
        by_time: whether it is checked only with a limit on the wait of a message.
        by_count: whether all messages of its queue that were never given are needed to show it.
        of_subscriber: whether it uses all deliveries of the subscriber that is its witness.
    """

    name: str
    expected: str
    seen: str
    cases: tuple[Case, ...]
    formula: Rule | None = None
    sides: Sides | None = None
    each_moment: bool = False
    wrong: str = ""
    asked_of: str = ""
    by_sight: bool = False
    by_order: bool = False
    by_time: bool = False
    by_count: bool = False
    of_subscriber: bool = False

    def case(self, requirement: str) -> Case:
        """Return the case of a requirement."""
        return next(each for each in self.cases if each.requirement == requirement)

    @property
    def concerns_a_get(self) -> bool:
        """Whether its late row is a get that found nothing."""
        return self.sides is not None and self.sides.late == _GET

    @property
    def concerns_a_drained_queue(self) -> bool:
        """Whether its late row is the observation that a queue was drained."""
        return self.sides is not None and self.sides.late == _DRAINED_QUEUE

    @property
    def named_by_witness(self) -> bool:
        """Whether its requirement is that of the strongest witness of all overtaken messages."""
        return self.sides is not None and self.sides.level == "higher" and len(self.cases) > 1

    @property
    def compares_begins(self) -> bool:
        """Whether its early row must have begun to wait before something."""
        return self.formula is not None and any(of is BEGUN for of, _ in self.formula.early_first)

    @property
    def roles(self) -> tuple[int, int]:
        """The roles of its early and its late rows in a slice of a queue."""
        assert self.formula is not None
        assert self.sides is not None
        if self.each_moment:
            return WAITED | (JOINED_URGENT if self.sides.level == "higher" else JOINED), ENDED
        if len(self.formula.early_first) > 1:
            return RETURNED, TAKEN
        [(of_early, _)] = self.formula.early_first
        return (ARRIVED, ARRIVES) if of_early is PUBLISHED else (WAITED, TAKEN)


LEFT_BEHIND: Final = "left-behind"
BEYOND_GETS: Final = "more-lost-than-gets-took"
"""The rule whose findings are counted: some are those that gets without an answer explain."""

_MESSAGES: Final = Side()
_FIRST_WAITS: Final = Side((FIRST | ORDERED,))
_TAKEN_FIRST: Final = Side((FIRST | ORDERED | GIVEN,))
_IN_A_STREAM: Final = Side((FIRST | ORDERED | GIVEN | SURE,), without=QUERY)
_PLACE_IS_KNOWN: Final = (ORDERED | PLACED, ORDERED | FIRST)
_LESS_URGENT: Final = Side((ORDERED | GIVEN | PLACED, ORDERED | GIVEN | FIRST | SURE))
_GET: Final = Side((QUERY,), without=DRAINED)
_DRAINED_QUEUE: Final = Side((QUERY | DRAINED,), without=0)

_OVERTAKEN: Final = "{witness}, which waited ahead of it, to be given before {message}"
_WAITED: Final = "{subscriber} got {message} {late}; {witness} waited {early}"
_ALWAYS_ONE: Final = "from {there_by} on there always was one: {chain}"

_PUBLISH: Final = "declare; publish m"
_TAKE: Final = "consume late; give m late"
_INVENTED: Final = f"declare; {_TAKE}"
_DRAIN: Final = "consume all freely; drain"
_LOST_IN_A_CRASH: Final = f"declare durable; publish m persistent; crash; restart; {_DRAIN}"
_OVERTAKE: Final = f"declare; publish w; publish m; {_TAKE}"
_OVERTAKE_RETURNED: Final = "declare; publish w; publish m; return w; give m late"
_OVERTAKE_URGENT: Final = f"declare levels; publish w urgent; publish m; {_TAKE}"
_HOLD: Final = f"{_PUBLISH}; consume first; give m first"
_HOLD_TWICE: Final = f"{_PUBLISH}; consume first twice; give m first"
_TAKE_TOO: Final = "consume other; give m other redelivered"
_SHOW: Final = f"{_PUBLISH}; browse; give m browser"
_REWINDS: Final = Case(
    "release-rewinds", _OVERTAKE_RETURNED, when="if it had returned", early=CAME_BACK
)

_EXCUSES_OF_LOSSES: Final = {
    cause: lambda c, cause=cause: c.missing_by(cause)
    for cause in (PURGES, DELETIONS, CRASHES, DROPS, LEFT)
}
_EXCUSES_OF_ORDER: Final = {
    PUBLISHES: lambda c: c.published_unsurely,
    BEGINNINGS: lambda c: c.given_without_a_beginning,
    UNRECORDED: lambda c: c.may_be_seen_again,
}

_RULES: Final = (
    HistoryRule(
        "given-before-published",
        "{message} to be given after it was published",
        "{subscriber} got it {late}, and it was published {early}",
        (Case("nothing-invented", _INVENTED, lambda c: c.seen),),
        GIVEN_BEFORE_PUBLISHED,
        asked_of="a delivery or a view, and the publish of its message",
        by_sight=True,
    ),
    HistoryRule(
        "never-published",
        "what is given to have been published",
        "{subscriber} got {message} {late}, and it was never published",
        (Case("nothing-invented", _INVENTED),),
        wrong="a delivery of a message without a publish",
        by_sight=True,
    ),
    HistoryRule(
        "held-by-two",
        "{message} not to be given again while {witness} had it, or had settled it",
        "{had_by} got it {early}, and {subscriber} got it again {late}",
        (
            Case(
                "nothing-twice",
                f"{_HOLD_TWICE}; {_TAKE_TOO}",
                lambda c: c.taken,
                {
                    SETTLEMENTS: lambda c: c.settled_unsurely,
                    CRASHES: lambda c: c.undone_by_a_crash,
                },
            ),
            Case(
                "settled-once",
                f"{_HOLD_TWICE}; acknowledge m; release m again; {_TAKE_TOO}",
                when="if the early one was settled more than once",
            ),
            Case(
                "settlement-survives-crash",
                f"declare durable; publish m persistent; consume first; give m first; "
                f"acknowledge m; crash; restart; {_TAKE_TOO}",
                lambda c: c.settled_before_a_crash,
                when="if the early one was settled, and a crash came between them",
            ),
        ),
        HELD_BY_TWO,
        asked_of="two deliveries, one seen right after the other",
        by_sight=True,
    ),
    HistoryRule(
        "told-as-new",
        "{message} to be told as redelivered",
        "{had_by} got it {early}; {subscriber} got it again {late}, and it was told as new",
        (
            Case(
                "redelivered-flag",
                f"{_PUBLISH}; return m; give m late",
                lambda c: c.may_have_returned,
                {FLAGS: lambda c: c.without_a_flag, CRASHES: lambda c: c.with_either_flag},
            ),
        ),
        wrong="a delivery that began after another was seen, and before which the message may have "
        "come back, told as not redelivered, with no crash since the first; a message that cannot "
        "have come back breaks `nothing-twice` only",
    ),
    HistoryRule(
        "shown-while-held",
        "{message} to be shown to no browser while {witness} had it",
        "{had_by} got it {early}, and {subscriber} was shown it {late}",
        (Case("browser-sees-available", f"{_HOLD}; browse; give m browser", lambda c: c.shown),),
        SHOWN_WHILE_HELD,
        asked_of="a view, and a delivery to another subscriber",
        by_sight=True,
    ),
    HistoryRule(
        "shown-again",
        "{message} to be shown to {witness} once",
        "{subscriber} was shown it {early}, and again {late}",
        (
            Case("browser-once", f"{_SHOW}; give m browser", lambda c: c.shown_in_order),
            Case(
                "browser-never-rewound",
                f"{_SHOW}; consume first; give m first; release m; give m browser redelivered",
                when="if it may have returned to its place",
            ),
        ),
        wrong="a second view by one browser of a queue that is first in, first out; where returns "
        "go elsewhere, only if the message cannot have returned between the views",
        by_sight=True,
        by_order=True,
    ),
    HistoryRule(
        LEFT_BEHIND,
        "{message} to be given, or to be there still",
        "it came to the queue {early}; {late} nothing more was to be had",
        (
            Case(
                "nothing-lost",
                f"{_PUBLISH}; {_DRAIN}",
                lambda c: c.passed("drained"),
                _EXCUSES_OF_LOSSES,
            ),
            Case(
                "browser-takes-nothing",
                f"{_SHOW}; {_DRAIN}",
                when="too, if a browser was shown it since it began to wait",
            ),
            Case(
                "close-releases",
                f"{_HOLD}; close first; {_DRAIN}",
                when="if it had returned without a settlement",
            ),
            Case(
                "settled-once",
                f"{_HOLD}; cancel first; release m; acknowledge m again; {_DRAIN}",
                when="if it had returned from a delivery settled more than once",
            ),
            Case(
                "survives-restart",
                _LOST_IN_A_CRASH,
                lambda c: c.passed("crash") & c.on_disk,
                _EXCUSES_OF_LOSSES | {UNDRAINED: lambda c: c.missing_undrained},
                when="if there was a crash",
            ),
        ),
        wrong="`begun < drained` and `drained < left`",
    ),
    HistoryRule(
        BEYOND_GETS,
        "as many messages to be missing as gets had no answer, and {message} to be there",
        "it came to the queue {early}; {late} nothing more was to be had, and each get without an "
        "answer took one message at most",
        (
            Case("nothing-lost", f"{_PUBLISH}; {_DRAIN}"),
            Case("survives-restart", _LOST_IN_A_CRASH, when="if there was a crash"),
        ),
        wrong="the same of a message that was never given, beyond those that gets without an "
        "answer can have taken, one each",
        by_count=True,
    ),
    HistoryRule(
        "found-nothing",
        "the get to find {witness}",
        "{subscriber} found nothing {late}; {witness} was there by {there_by} and {until}",
        (Case("get-finds", "declare; publish w; get", lambda c: c.found_nothing),),
        TAKEN_WHILE_ANOTHER_WAITED,
        Sides(_MESSAGES, _GET),
        asked_of="a get that found nothing, and any message",
    ),
    HistoryRule(
        "left-behind-of-several",
        "a message to be there while the queue is drained",
        f"nothing more was to be had {{late}}; {_ALWAYS_ONE}",
        (Case("nothing-lost", f"chain; {_DRAIN}"),),
        TAKEN_WHILE_SOME_WAITED,
        Sides(_MESSAGES, _DRAINED_QUEUE),
        each_moment=True,
        wrong="a queue found drained while some message was there at each moment",
        asked_of="any messages of its queue",
    ),
    HistoryRule(
        "found-nothing-of-several",
        "the get to find a message",
        f"{{subscriber}} found nothing {{late}}; {_ALWAYS_ONE}",
        (Case("get-finds", "chain; get"),),
        TAKEN_WHILE_SOME_WAITED,
        Sides(_MESSAGES, _GET),
        each_moment=True,
        wrong="a get that found nothing while some message was there at each moment",
        asked_of="any messages of its queue",
    ),
    HistoryRule(
        "kept-after-a-purge",
        "{message} to be gone with the purge",
        "the queue was purged {early}, and {subscriber} got it {late}",
        (Case("purge-drops", f"{_PUBLISH}; purge; {_TAKE}", lambda c: c.passed("purge")),),
        wrong="`begun < purge` and `purge < left`, and it was given",
    ),
    HistoryRule(
        "kept-after-a-deletion",
        "{message} to be gone with its queue",
        "the queue was deleted {early}, and {subscriber} got it {late}",
        (
            Case(
                "delete-drops",
                f"{_PUBLISH}; delete; declare; {_TAKE}",
                lambda c: c.passed("delete"),
            ),
        ),
        wrong="`begun < deletion` and `deletion < left`, and it was given",
    ),
    HistoryRule(
        "kept-after-a-crash",
        "{message}, which was not on disk, to be gone with the crash",
        "the broker crashed {early}, and {subscriber} got it {late}",
        (
            Case(
                "transient-is-lost",
                f"{_PUBLISH}; crash; restart; declare; {_TAKE}",
                lambda c: c.passed("crash") & ~c.may_survive,
            ),
        ),
        wrong="`begun < crash` and `crash < left`, and it was given, though it was not persistent, "
        "or not in a durable queue",
    ),
    HistoryRule(
        "more-than-the-window",
        "{witness} to hold no more than its window{window} lets through",
        "{message} was given to {had_by} {late}, with which it held {held}",
        (
            Case(
                "credit-not-exceeded",
                "declare; publish held; publish m; consume late full; give held late; give m late",
                lambda c: c.limited,
            ),
        ),
        wrong="a subscriber had seen more than its window allows, less what it had begun to settle",
        by_sight=True,
        of_subscriber=True,
    ),
    HistoryRule(
        "overtakes-in-a-stream",
        _OVERTAKEN,
        "{subscriber} {got} {message} {late}, and {witness} after that",
        (
            Case("fifo-order", _OVERTAKE),
            Case(
                "browser-in-order",
                "declare; publish w; publish m; browse; give m browser",
                lambda c: c.shown_in_order,
                when="for views",
                late=VIEW,
            ),
        ),
        OVERTAKES_AN_EQUAL_IN_A_STREAM,
        Sides(_IN_A_STREAM, _IN_A_STREAM, "equal", same_subscriber=True),
        asked_of="first deliveries of one level to one subscriber; first views by one browser",
        by_order=True,
    ),
    HistoryRule(
        "overtakes-what-waits-in-a-stream",
        _OVERTAKEN,
        "{subscriber} got {message} {late}, and {witness}, which waited {early}, after that",
        (Case("priority-order", _OVERTAKE_URGENT), _REWINDS),
        TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
        Sides(
            Side(tuple(each | GIVEN | SURE for each in _PLACE_IS_KNOWN)),
            _LESS_URGENT,
            "higher",
            same_subscriber=True,
        ),
        asked_of="a more urgent early one, to the same subscriber",
        by_order=True,
    ),
    HistoryRule(
        "overtakes-an-equal",
        _OVERTAKEN,
        _WAITED,
        (
            Case(
                "fifo-order", _OVERTAKE, lambda c: c.given & c.first & c.ordered, _EXCUSES_OF_ORDER
            ),
        ),
        OVERTAKES_AN_EQUAL,
        Sides(_FIRST_WAITS, _TAKEN_FIRST, "equal"),
        asked_of="first waiting intervals of one level",
        by_order=True,
    ),
    HistoryRule(
        "overtakes-what-waits",
        _OVERTAKEN,
        _WAITED,
        (
            Case(
                "priority-order",
                _OVERTAKE_URGENT,
                lambda c: c.given & c.by_level & c.ordered,
                _EXCUSES_OF_ORDER,
            ),
            _REWINDS,
        ),
        TAKEN_WHILE_ANOTHER_WAITED,
        Sides(Side(_PLACE_IS_KNOWN), _LESS_URGENT, "higher"),
        asked_of="a more urgent early one",
        by_order=True,
    ),
    HistoryRule(
        "overtakes-what-returned",
        _OVERTAKEN,
        "{subscriber} got {message} {late}; {witness} had returned, and waited {early}",
        (
            Case("fifo-order", _OVERTAKE),
            Case(
                "release-rewinds",
                _OVERTAKE_RETURNED,
                lambda c: ~c.first & c.placed & c.ordered & c.begun,
                when="if an earlier delivery of it was seen",
                early=CAME_BACK,
            ),
        ),
        OVERTAKES_WHAT_RETURNED,
        Sides(
            Side((ORDERED | PLACED,), without=FIRST | VIEW | QUERY),
            Side((ORDERED | PLACED | GIVEN,)),
            "equal",
        ),
        asked_of="an early one of the same level that had returned to its place",
        by_order=True,
    ),
    HistoryRule(
        "overtakes-some-that-wait",
        "one that is more urgent to be given before {message}",
        f"{{subscriber}} got {{message}} {{late}}; {_ALWAYS_ONE}",
        (Case("priority-order", f"chain m; {_TAKE}"),),
        TAKEN_WHILE_SOME_WAITED,
        Sides(_FIRST_WAITS, _LESS_URGENT, "higher"),
        each_moment=True,
        wrong="a delivery, while a more urgent message was there at each moment",
        asked_of="messages that never returned",
        by_order=True,
    ),
    HistoryRule(
        "stalled",
        "{message} to be given to {witness} within the time that was set",
        "it was there, and {had_by}{room} free to take it, {late}",
        (Case("quiescence", f"{_PUBLISH}; consume w freely; drain", lambda c: c.served & c.begun),),
        wrong="a message certainly waited (`begun.end` to `left.start`) for longer than the bound, "
        "while a consumer of its queue was certainly free",
        by_time=True,
        of_subscriber=True,
    ),
)

RULES: Final = {each.name: each for each in _RULES}
"""The rules by name; if two find the same violation, it belongs to the one listed first."""

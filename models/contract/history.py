"""Rules on recorded histories: which times of messages no correct run can have.

A recording gives the span of each event, not its moment. A rule is broken only if it is broken for
all moments in these spans, so it compares the end of one span with the start of another. It relates
two waiting intervals of messages, a late and an early one, and has three readings: terms, for which
`history_of_contract.py` proves that no run of the contract breaks it; numbers, for the naive
evaluator of each pair; and columns, for the kernels of the pipeline, which never look at a pair.

Source of the rules about order: Bouajjani, Emmi, Enea, Hamza, On Reducing Linearizability to State
Reachability (ICALP 2015): the incorrect histories of a queue with distinct values are those with
one of a few patterns of two or three operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, TypeAlias

Number: TypeAlias = Any
"""A time: a term, a number, or a column of them. All have the same operators."""

Truth: TypeAlias = Any
"""A truth value: a term, or the result of a comparison of numbers or columns."""


@dataclass(frozen=True)
class Span:
    """The times between which an event happened, both included."""

    start: Number
    end: Number

    def before(self, other: Span) -> Truth:
        """Whether this event had certainly happened before the other began."""
        return self.end < other.start


@dataclass(frozen=True)
class WaitingInterval:
    """One waiting interval of a message, from its arrival or return to its next return.

    Attributes:
        published: when the message arrived.
        begun: when it began to wait: at its arrival or, later, at its return.
        left: when it stopped waiting, by a delivery or a drop; both ends are `NEVER` if it never
            did.
        given: a delivery of the message, or a get that found nothing.
        place: the delivery's place in the stream of its consumer, both ends the same.
        back: when the delivered message returned; both ends are `NEVER` if it did not.
    """

    published: Span
    begun: Span
    left: Span
    given: Span
    place: Span
    back: Span

    def at(self, moment: Number) -> WaitingInterval:
        """Return the same interval with its delivery at this moment."""
        return replace(self, given=Span(moment, moment))


Of: TypeAlias = Callable[[WaitingInterval], Span]

PUBLISHED: Final[Of] = attrgetter("published")
BEGUN: Final[Of] = attrgetter("begun")
LEFT: Final[Of] = attrgetter("left")
GIVEN: Final[Of] = attrgetter("given")
PLACE: Final[Of] = attrgetter("place")
BACK: Final[Of] = attrgetter("back")


@dataclass(frozen=True)
class Rule:
    """A rule: the listed precedences between a late and an early interval are all certain.

    Attributes:
        early_first: pairs of an event of the early interval and the event of the late one after it.
        late_first: pairs of an event of the late interval and the event of the early one after it.
    """

    early_first: tuple[tuple[Of, Of], ...]
    late_first: tuple[tuple[Of, Of], ...]

    def shown_by(self, late: WaitingInterval, early: WaitingInterval) -> Truth:
        """Whether the two intervals break the rule."""
        truths = [of(early).before(than(late)) for of, than in self.early_first]
        truths += [of(late).before(than(early)) for of, than in self.late_first]
        first, *others = truths
        for truth in others:
            first = first & truth
        return first

    def shown_at_each_moment(self, late: WaitingInterval, early: Sequence[WaitingInterval]) -> bool:
        """Whether the rule is broken for each moment at which the late delivery may have been made.

        The early interval need not be the same at each moment. For numbers only. A rule that is
        broken at one moment stops being broken only where an early interval may have ended, so the
        start of the span and these ends are all the moments to check.
        """
        span = late.given
        ends = {each.left.start for each in early if span.start < each.left.start <= span.end}
        return all(
            any(self.shown_by(late.at(moment), each) for each in early)
            for moment in (span.start, *ends)
        )


OVERTAKES_AN_EQUAL: Final = Rule(((PUBLISHED, PUBLISHED),), ((GIVEN, LEFT),))
"""Of two messages of one level, the one that was published later was delivered first.

`left` is when the early one was delivered for the first time.
"""

OVERTAKES_AN_EQUAL_IN_A_STREAM: Final = Rule(((PUBLISHED, PUBLISHED),), ((PLACE, PLACE),))
"""The same for the deliveries to one consumer, whose order is known even if their times overlap."""

TAKEN_WHILE_ANOTHER_WAITED: Final = Rule(((BEGUN, GIVEN),), ((GIVEN, LEFT),))
"""A delivery or an empty get happened while the early message waited all the time."""

TAKEN_WHILE_SOME_WAITED: Final = TAKEN_WHILE_ANOTHER_WAITED
"""The same, shown at each moment, though with a different early message at different moments.

A delivery or an empty get happened while at each moment some early message waited: the queue was
never empty.
"""

TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM: Final = Rule(((BEGUN, GIVEN),), ((PLACE, PLACE),))
"""The same if the early message went to the same consumer, later."""

OVERTAKES_WHAT_RETURNED: Final = Rule(((PUBLISHED, PUBLISHED), (BEGUN, GIVEN)), ((GIVEN, LEFT),))
"""A message was delivered while a message that had returned to a place ahead of it waited."""

GIVEN_BEFORE_PUBLISHED: Final = Rule((), ((GIVEN, PUBLISHED),))
"""A message was seen before it can have been published; both intervals are its own."""

HELD_BY_TWO: Final = Rule(((GIVEN, BACK),), ((GIVEN, BACK),))
"""A message was delivered twice, and neither can have returned before the other delivery."""

SHOWN_WHILE_HELD: Final = Rule(((GIVEN, GIVEN),), ((GIVEN, BACK),))
"""A browser was shown, as the late one, a message that a consumer held all the time."""

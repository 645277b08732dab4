"""What a recorded history must not show: rules on the times of its messages, each said once.

A recording does not say when something happened, only between which times: a publish between its
start and its end, a delivery between the earliest moment at which it can have been made and the
moment at which it was seen. What is wrong is what is wrong wherever in these spans the moments
were, so a rule compares the end of one span with the start of another and nothing else.

A rule is about two passages of messages, a late one and an early one, and is a list of what was
certainly before what. It is read in three ways. With the terms of a model, `history_of_contract.py`
proves that no run of the contract shows it, for any number of messages, wherever in the spans the
steps were taken. With numbers, the naive evaluator asks it of each pair of a history. And the
kernels of the pipeline take the columns that it compares, and never look at a pair.

Source of the rules about order: Bouajjani, Emmi, Enea, Hamza, On Reducing Linearizability to State
Reachability (ICALP 2015), where the wrong histories of a queue with distinct values are those that
show one of a few patterns of two or three operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, TypeAlias

Number: TypeAlias = Any
"""A time: a term, a number, or a column of them. All have the same operators."""

Truth: TypeAlias = Any
"""Whether something is so: a term, or what a comparison of numbers or columns makes."""


@dataclass(frozen=True)
class Span:
    """The times between which something happened, both included."""

    start: Number
    end: Number

    def before(self, other: Span) -> Truth:
        """Whether this had certainly happened when the other began."""
        return self.end < other.start


@dataclass(frozen=True)
class Passage:
    """One passage of a message through its queue, from its arrival or return to the next return.

    Attributes:
        published: when the message arrived.
        begun: when it began to wait: that is when it arrived or, later, when it returned.
        left: when it stopped waiting, because it was given to somebody or dropped; of one that
            waits for ever both ends are `NEVER`.
        given: a delivery of the message, or a get that found nothing.
        place: the delivery's place in the stream of its taker, both ends the same.
        back: when what was given returned; both ends are `NEVER` where it did not.

    """

    published: Span
    begun: Span
    left: Span
    given: Span
    place: Span
    back: Span

    def at(self, moment: Number) -> Passage:
        """Return the same passage, where its delivery is known to have been at this moment."""
        return replace(self, given=Span(moment, moment))


Of: TypeAlias = Callable[[Passage], Span]

PUBLISHED: Final[Of] = attrgetter("published")
BEGUN: Final[Of] = attrgetter("begun")
LEFT: Final[Of] = attrgetter("left")
GIVEN: Final[Of] = attrgetter("given")
PLACE: Final[Of] = attrgetter("place")
BACK: Final[Of] = attrgetter("back")


@dataclass(frozen=True)
class Rule:
    """What is wrong between a late passage and an early one: all of these, each certainly.

    Attributes:
        early_first: pairs of one thing of the early passage, and what of the late one it preceded.
        late_first: pairs of one thing of the late passage, and what of the early one it preceded.

    """

    early_first: tuple[tuple[Of, Of], ...]
    late_first: tuple[tuple[Of, Of], ...]

    def shown_by(self, late: Passage, early: Passage) -> Truth:
        """Whether the two show what is wrong."""
        truths = [of(early).before(than(late)) for of, than in self.early_first]
        truths += [of(late).before(than(early)) for of, than in self.late_first]
        first, *others = truths
        for truth in others:
            first = first & truth
        return first

    def shown_at_each_moment(self, late: Passage, early: Sequence[Passage]) -> bool:
        """Whether, whenever in its span the late one was given, it and an early one show the rule.

        That need not be the same early one at each moment. For numbers only: a rule that is shown
        at one moment and not at a later one is not shown when some early passage may have ended, so
        the start of the span and those are all the moments that have to be looked at.
        """
        span = late.given
        ends = {each.left.start for each in early if span.start < each.left.start <= span.end}
        return all(
            any(self.shown_by(late.at(moment), each) for each in early)
            for moment in (span.start, *ends)
        )


OVERTAKES_AN_EQUAL: Final = Rule(((PUBLISHED, PUBLISHED),), ((GIVEN, LEFT),))
"""Of two messages of one level, the one that was published later was given first.

`left` is when the early one was given for the first time.
"""

OVERTAKES_AN_EQUAL_IN_A_STREAM: Final = Rule(((PUBLISHED, PUBLISHED),), ((PLACE, PLACE),))
"""So it is in the deliveries to one taker, whose order is known even where their times overlap."""

TAKEN_WHILE_ANOTHER_WAITED: Final = Rule(((BEGUN, GIVEN),), ((GIVEN, LEFT),))
"""Something was given, or nothing was found, while the early message waited all the time."""

TAKEN_WHILE_SOME_WAITED: Final = TAKEN_WHILE_ANOTHER_WAITED
"""So it is where this is shown at each moment, though by no early message at all of them.

Something was given, or nothing was found, while early messages took turns in waiting: what they
have in common is that the queue was never without one.
"""

TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM: Final = Rule(((BEGUN, GIVEN),), ((PLACE, PLACE),))
"""So it is where the early message went to the same taker, later."""

OVERTAKES_WHAT_RETURNED: Final = Rule(((PUBLISHED, PUBLISHED), (BEGUN, GIVEN)), ((GIVEN, LEFT),))
"""A message was given while one that returned to its place ahead of it waited all the time."""

GIVEN_BEFORE_PUBLISHED: Final = Rule((), ((GIVEN, PUBLISHED),))
"""A message was seen before anybody can have published it; both passages are its own."""

HELD_BY_TWO: Final = Rule(((GIVEN, BACK),), ((GIVEN, BACK),))
"""A message was given twice, and neither can have returned before the other was given."""

SHOWN_WHILE_HELD: Final = Rule(((GIVEN, GIVEN),), ((GIVEN, BACK),))
"""A browser was shown, as the late one, what somebody held all the time."""

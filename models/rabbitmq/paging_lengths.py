"""The lengths of the five places, and nothing else: which are empty where others are.

Sources: those of `paging_places`, whose moves these are, as they change lengths. How many a move
takes is a parameter, any number within what the document's text guarantees: at least one message is
read when delta is not blank, and at least one stays in q3 when others leave for delta. So the
document's two arguments, that the queue is empty where q4 and q3 are, and that q2 is where q3 runs
out beside a blank delta, are arithmetic.

What lengths cannot see is the order: a queue that publishes to q4 always keeps all of this, and
only `paging_places` refutes it. The total has a limit here, any number at all, since an exploration
needs one.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Int,
    Map,
    Model,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.language.core.terms import integer

Q1_BESIDE_Q3 = "where-q1-has-messages-so-has-q3"
Q2_BESIDE_DELTA = "where-q2-has-messages-so-has-delta"
DELTA_BESIDE_Q3 = "where-delta-has-messages-so-has-q3"
EMPTY = "the-queue-is-empty-where-q4-and-q3-are"
RUNS_OUT = "where-q3-runs-out-beside-a-blank-delta-q2-is-empty"
NOT_NEGATIVE = "no-length-is-negative"
SUM = "the-length-is-the-sum"


class Part(Enumeration):
    """A place where messages are ready."""

    Q1: ClassVar[Part]
    Q2: ClassVar[Part]
    DELTA: ClassVar[Part]
    Q3: ClassVar[Part]
    Q4: ClassVar[Part]


class Whole(Enumeration):
    """What has the length of the whole: there is one."""

    IT: ClassVar[Whole]


class PagingLengths(Model):
    """How many messages are in each place of a paging queue."""

    most: Int

    length: Map[Part, Int]
    total: Map[Whole, Int]

    @initial
    def empty(self) -> None:
        """Nothing is ready."""
        self.length.fill(0)
        self.total.fill(0)

    # The words.

    def sum_of(self, *parts: Part) -> Int:
        """Return how many are in these places together."""
        found = self.length[parts[0]]
        for part in parts[1:]:
            found = found + self.length[part]
        return found

    def is_blank(self) -> Bool:
        """Whether nothing is in delta."""
        return self.length[Part.DELTA] == 0

    def has_only_one_in_q3(self) -> Bool:
        """Whether the next fetch takes the last of q3."""
        return (self.length[Part.Q4] == 0) & (self.length[Part.Q3] == 1)

    def _gains(self, part: Part, count: Int | int) -> None:
        self.length[part] = self.length[part] + count

    def _loses(self, part: Part, count: Int | int) -> None:
        self.length[part] = self.length[part] - count

    def _leaves(self) -> None:
        self.total[Whole.IT] = self.total[Whole.IT] - 1

    # Arriving and leaving.

    @action
    def publish(self) -> None:
        """A message goes to q1, or to q4 where nothing is in q3."""
        require(self.total[Whole.IT] < self.most)
        beside_q3 = self.length[Part.Q3] > 0
        self._gains(Part.Q1, ite(beside_q3, integer(1), 0))
        self._gains(Part.Q4, ite(beside_q3, integer(0), 1))
        self.total[Whole.IT] = self.total[Whole.IT] + 1

    @action
    def fetch_from_q4(self) -> None:
        """One of q4 is fetched."""
        require(self.length[Part.Q4] > 0)
        self._loses(Part.Q4, 1)
        self._leaves()

    @action
    def fetch_from_q3(self) -> None:
        """One of q3 is fetched, and another is left."""
        require((self.length[Part.Q4] == 0) & (self.length[Part.Q3] > 1))
        self._loses(Part.Q3, 1)
        self._leaves()

    @action
    def fetch_last(self) -> None:
        """The last of q3 is fetched, and delta is blank: q1 becomes q4."""
        require(self.has_only_one_in_q3() & self.is_blank())
        self._loses(Part.Q3, 1)
        self._q1_becomes_q4()
        self._leaves()

    @action
    def fetch_last_and_reload(self, read: Int) -> None:
        """The last of q3 is fetched: some of delta is read into q3."""
        require(self.has_only_one_in_q3() & self.is_some_of_delta(read))
        self._loses(Part.Q3, 1)
        self._reloads(read)
        self._leaves()

    @action
    def fetch_last_and_reload_all(self) -> None:
        """The last of q3 is fetched: all of delta is read into q3, and q2 joins it."""
        require(self.has_only_one_in_q3() & ~self.is_blank())
        self._loses(Part.Q3, 1)
        self._reloads_all()
        self._leaves()

    def is_some_of_delta(self, read: Int) -> Bool:
        """Whether so many are something of delta, and not all of it."""
        return (read > 0) & (read < self.length[Part.DELTA])

    def _q1_becomes_q4(self) -> None:
        self._gains(Part.Q4, self.length[Part.Q1])
        self.length[Part.Q1] = 0

    def _reloads(self, read: Int) -> None:
        self._gains(Part.Q3, read)
        self._loses(Part.DELTA, read)

    def _reloads_all(self) -> None:
        self._gains(Part.Q3, self.sum_of(Part.DELTA, Part.Q2))
        self.length[Part.DELTA] = 0
        self.length[Part.Q2] = 0

    # Dropping from the front: the first that is not dropped is put back.

    @action
    def put_back_into_q4(self) -> None:
        """The last of q3 is put back when q1 has become q4: it goes there."""
        require(self.has_only_one_in_q3() & self.is_blank() & (self.length[Part.Q1] > 0))
        self._loses(Part.Q3, 1)
        self._q1_becomes_q4()
        self._gains(Part.Q4, 1)

    @action
    def put_back_and_reload(self, read: Int) -> None:
        """The last of q3 is put back when some of delta has been read: it goes before that."""
        require(self.has_only_one_in_q3() & self.is_some_of_delta(read))
        self._reloads(read)

    @action
    def put_back_and_reload_all(self) -> None:
        """The same where all of delta has been read, and q2 has joined it."""
        require(self.has_only_one_in_q3() & ~self.is_blank())
        self._reloads_all()

    # Leaving memory.

    @action
    def page_q1(self) -> None:
        """The first of q1 goes to q3, or to q2 where something is in delta."""
        require(self.length[Part.Q1] > 0)
        blank = self.is_blank()
        self._loses(Part.Q1, 1)
        self._gains(Part.Q3, ite(blank, integer(1), 0))
        self._gains(Part.Q2, ite(blank, integer(0), 1))

    @action
    def page_q4(self) -> None:
        """The last of q4 goes to q3."""
        require(self.length[Part.Q4] > 0)
        self._loses(Part.Q4, 1)
        self._gains(Part.Q3, 1)

    @action
    def page_q3(self, count: Int) -> None:
        """Some of q3 go to delta; those in the first one's segment stay, so one does."""
        require((count > 0) & (count < self.length[Part.Q3]))
        self._loses(Part.Q3, count)
        self._gains(Part.DELTA, count)

    @action
    def page_q2(self, count: Int) -> None:
        """Some of q2 go to delta."""
        require((count > 0) & (count <= self.length[Part.Q2]))
        self._loses(Part.Q2, count)
        self._gains(Part.DELTA, count)

    # Returning, and leaving for good.

    @action
    def requeue(self, to_q4: Int, to_q3: Int, to_delta: Int) -> None:
        """Messages return: all to q4 where nothing is in q3, and none to a blank delta."""
        returning = to_q4 + to_q3 + to_delta
        require((to_q4 >= 0) & (to_q3 >= 0) & (to_delta >= 0))
        require(self.total[Whole.IT] + returning <= self.most)
        require(implies(self.length[Part.Q3] == 0, (to_q3 == 0) & (to_delta == 0)))
        require(implies(self.is_blank(), to_delta == 0))
        self._gains(Part.Q4, to_q4)
        self._gains(Part.Q3, to_q3)
        self._gains(Part.DELTA, to_delta)
        self.total[Whole.IT] = self.total[Whole.IT] + returning

    @action
    def purge(self) -> None:
        """All that is ready is dropped."""
        self.length.fill(0)
        self.total.fill(0)

    @action
    def recover(self, in_delta: Int, in_q3: Int) -> None:
        """The queue starts anew: what it has is in delta, but for the segment read from there."""
        require((in_delta >= 0) & (in_q3 >= 0) & (in_delta + in_q3 <= self.most))
        require(implies(in_q3 == 0, in_delta == 0))
        self.length.fill(0)
        self.length[Part.DELTA] = in_delta
        self.length[Part.Q3] = in_q3
        self.total[Whole.IT] = in_delta + in_q3

    # What holds.

    @invariant(NOT_NEGATIVE)
    def no_length_is_negative(self) -> Bool:
        """No place has less than nothing (A5)."""
        return forall(Part, lambda part: self.length[part] >= 0)

    @invariant(SUM)
    def total_is_the_sum(self) -> Bool:
        """What the queue says of its length is the sum of all places (I1)."""
        return self.total[Whole.IT] == self.sum_of(Part.Q1, Part.Q2, Part.DELTA, Part.Q3, Part.Q4)

    @invariant(Q1_BESIDE_Q3)
    def q1_beside_q3(self) -> Bool:
        """Where something is in q1, something is in q3 (A1)."""
        return implies(self.length[Part.Q1] > 0, self.length[Part.Q3] > 0)

    @invariant(Q2_BESIDE_DELTA)
    def q2_beside_delta(self) -> Bool:
        """Where something is in q2, something is in delta (A2)."""
        return implies(self.length[Part.Q2] > 0, self.length[Part.DELTA] > 0)

    @invariant(DELTA_BESIDE_Q3)
    def delta_beside_q3(self) -> Bool:
        """Where something is in delta, something is in q3 (A3)."""
        return implies(self.length[Part.DELTA] > 0, self.length[Part.Q3] > 0)

    @invariant(EMPTY)
    def empty_where_q4_and_q3_are(self) -> Bool:
        """If nothing is in q4 and q3, nothing is ready: the document's first argument (A4)."""
        nothing_there = (self.length[Part.Q3] == 0) & (self.length[Part.Q4] == 0)
        return nothing_there == (self.total[Whole.IT] == 0)

    @invariant(RUNS_OUT)
    def q2_is_empty_where_q3_runs_out(self) -> Bool:
        """The document's second argument: then q1 may become q4 (F1, F2)."""
        return implies(self.has_only_one_in_q3() & self.is_blank(), self.length[Part.Q2] == 0)

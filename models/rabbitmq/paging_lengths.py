"""The lengths of the five places: which are empty if others are.

Sources: those of `paging_places`; the moves are the same, reduced to their effect on lengths. The
number that a move takes is any number within the document's guarantees: a reload reads at least one
message of a delta that is not blank, and at least one message stays in q3. The document's two
arguments are then arithmetic: the queue is empty if q4 and q3 are, and q2 is empty if q3 runs out
beside a blank delta.

Lengths do not show the order: only `paging_places` refutes a queue that always publishes to q4. The
total is at most `most`, any number, so that an exploration ends.
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
    """A place for ready messages."""

    Q1: ClassVar[Part]
    Q2: ClassVar[Part]
    DELTA: ClassVar[Part]
    Q3: ClassVar[Part]
    Q4: ClassVar[Part]


class Whole(Enumeration):
    """The whole queue with its length; there is exactly one."""

    IT: ClassVar[Whole]


class PagingLengths(Model):
    """The number of messages in each place of a paging queue."""

    most: Int

    length: Map[Part, Int]
    total: Map[Whole, Int]

    @initial
    def empty(self) -> None:
        """No message is ready."""
        self.length.fill(0)
        self.total.fill(0)

    # Terms.

    def sum_of(self, *parts: Part) -> Int:
        """Return the number of messages in these places together."""
        found = self.length[parts[0]]
        for part in parts[1:]:
            found = found + self.length[part]
        return found

    def is_blank(self) -> Bool:
        """Whether delta is empty."""
        return self.length[Part.DELTA] == 0

    def has_only_one_in_q3(self) -> Bool:
        """Whether the next fetch takes the last message of q3."""
        return (self.length[Part.Q4] == 0) & (self.length[Part.Q3] == 1)

    def _gains(self, part: Part, count: Int | int) -> None:
        self.length[part] = self.length[part] + count

    def _loses(self, part: Part, count: Int | int) -> None:
        self.length[part] = self.length[part] - count

    def _leaves(self) -> None:
        self.total[Whole.IT] = self.total[Whole.IT] - 1

    # Arrivals and fetches.

    @action
    def publish(self) -> None:
        """A message goes to q1, or to q4 if q3 is empty."""
        require(self.total[Whole.IT] < self.most)
        beside_q3 = self.length[Part.Q3] > 0
        self._gains(Part.Q1, ite(beside_q3, integer(1), 0))
        self._gains(Part.Q4, ite(beside_q3, integer(0), 1))
        self.total[Whole.IT] = self.total[Whole.IT] + 1

    @action
    def fetch_from_q4(self) -> None:
        """A message of q4 is fetched."""
        require(self.length[Part.Q4] > 0)
        self._loses(Part.Q4, 1)
        self._leaves()

    @action
    def fetch_from_q3(self) -> None:
        """A message of q3 is fetched, and others stay there."""
        require((self.length[Part.Q4] == 0) & (self.length[Part.Q3] > 1))
        self._loses(Part.Q3, 1)
        self._leaves()

    @action
    def fetch_last(self) -> None:
        """The last message of q3 is fetched, and delta is blank: q1 becomes q4."""
        require(self.has_only_one_in_q3() & self.is_blank())
        self._loses(Part.Q3, 1)
        self._q1_becomes_q4()
        self._leaves()

    @action
    def fetch_last_and_reload(self, read: Int) -> None:
        """The last message of q3 is fetched: a part of delta is read into q3."""
        require(self.has_only_one_in_q3() & self.is_some_of_delta(read))
        self._loses(Part.Q3, 1)
        self._reloads(read)
        self._leaves()

    @action
    def fetch_last_and_reload_all(self) -> None:
        """The last message of q3 is fetched: all of delta is read into q3, and q2 joins it."""
        require(self.has_only_one_in_q3() & ~self.is_blank())
        self._loses(Part.Q3, 1)
        self._reloads_all()
        self._leaves()

    def is_some_of_delta(self, read: Int) -> Bool:
        """Whether the number is a part of delta: not zero, and not all."""
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

    # Drops from the front: the first message that is not dropped is put back.

    @action
    def put_back_into_q4(self) -> None:
        """The last message of q3 is put back into q4, because q1 has become q4."""
        require(self.has_only_one_in_q3() & self.is_blank() & (self.length[Part.Q1] > 0))
        self._loses(Part.Q3, 1)
        self._q1_becomes_q4()
        self._gains(Part.Q4, 1)

    @action
    def put_back_and_reload(self, read: Int) -> None:
        """The last message of q3 is put back before the part of delta that was read."""
        require(self.has_only_one_in_q3() & self.is_some_of_delta(read))
        self._reloads(read)

    @action
    def put_back_and_reload_all(self) -> None:
        """The last message of q3 is put back before all of delta, which q2 has joined."""
        require(self.has_only_one_in_q3() & ~self.is_blank())
        self._reloads_all()

    # Paging out.

    @action
    def page_q1(self) -> None:
        """The first message of q1 goes to q3, or to q2 if delta is not blank."""
        require(self.length[Part.Q1] > 0)
        blank = self.is_blank()
        self._loses(Part.Q1, 1)
        self._gains(Part.Q3, ite(blank, integer(1), 0))
        self._gains(Part.Q2, ite(blank, integer(0), 1))

    @action
    def page_q4(self) -> None:
        """The last message of q4 goes to q3."""
        require(self.length[Part.Q4] > 0)
        self._loses(Part.Q4, 1)
        self._gains(Part.Q3, 1)

    @action
    def page_q3(self, count: Int) -> None:
        """Messages of q3 go to delta; at least the first stays, with its segment."""
        require((count > 0) & (count < self.length[Part.Q3]))
        self._loses(Part.Q3, count)
        self._gains(Part.DELTA, count)

    @action
    def page_q2(self, count: Int) -> None:
        """Messages of q2 go to delta."""
        require((count > 0) & (count <= self.length[Part.Q2]))
        self._loses(Part.Q2, count)
        self._gains(Part.DELTA, count)

    # Returns, purges and restarts.

    @action
    def requeue(self, to_q4: Int, to_q3: Int, to_delta: Int) -> None:
        """Messages return: all to q4 if q3 is empty, and none to a blank delta."""
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
        """All ready messages are dropped."""
        self.length.fill(0)
        self.total.fill(0)

    @action
    def recover(self, in_delta: Int, in_q3: Int) -> None:
        """The queue restarts: its messages are in delta, except the first segment, in q3."""
        require((in_delta >= 0) & (in_q3 >= 0) & (in_delta + in_q3 <= self.most))
        require(implies(in_q3 == 0, in_delta == 0))
        self.length.fill(0)
        self.length[Part.DELTA] = in_delta
        self.length[Part.Q3] = in_q3
        self.total[Whole.IT] = in_delta + in_q3

    # Invariants.

    @invariant(NOT_NEGATIVE)
    def no_length_is_negative(self, part: Part) -> Bool:
        """No length is negative (A5)."""
        return self.length[part] >= 0

    @invariant(SUM)
    def total_is_the_sum(self) -> Bool:
        """The queue's length is the sum of the lengths of all places (I1)."""
        return self.total[Whole.IT] == self.sum_of(Part.Q1, Part.Q2, Part.DELTA, Part.Q3, Part.Q4)

    @invariant(Q1_BESIDE_Q3)
    def q1_beside_q3(self) -> Bool:
        """If q1 has a message, so has q3 (A1)."""
        return implies(self.length[Part.Q1] > 0, self.length[Part.Q3] > 0)

    @invariant(Q2_BESIDE_DELTA)
    def q2_beside_delta(self) -> Bool:
        """If q2 has a message, so has delta (A2)."""
        return implies(self.length[Part.Q2] > 0, self.length[Part.DELTA] > 0)

    @invariant(DELTA_BESIDE_Q3)
    def delta_beside_q3(self) -> Bool:
        """If delta has a message, so has q3 (A3)."""
        return implies(self.length[Part.DELTA] > 0, self.length[Part.Q3] > 0)

    @invariant(EMPTY)
    def empty_where_q4_and_q3_are(self) -> Bool:
        """If q4 and q3 are empty, no message is ready: the document's first argument (A4)."""
        nothing_there = (self.length[Part.Q3] == 0) & (self.length[Part.Q4] == 0)
        return nothing_there == (self.total[Whole.IT] == 0)

    @invariant(RUNS_OUT)
    def q2_is_empty_where_q3_runs_out(self) -> Bool:
        """If q3 runs out beside a blank delta, q2 is empty: the second argument (F1, F2)."""
        return implies(self.has_only_one_in_q3() & self.is_blank(), self.length[Part.Q2] == 0)


PagingLengths.equivalent_mutants = """
A limit only ends an exploration; the proof is for any limit.
    publish: guard 1*2; requeue: guard 2*2; recover: guard 1*2
A fetch from q4 before q3 is a matter of order, which lengths do not show.
    fetch_from_q3: guard 1; fetch_last: guard 1; fetch_last_and_reload: guard 1;
    fetch_last_and_reload_all: guard 1; put_back_into_q4: guard 1; put_back_and_reload: guard 1;
    put_back_and_reload_all: guard 1
Delta is read beside more messages of q3: it is used up sooner, and q3 is not emptied.
    fetch_last_and_reload: guard 1; fetch_last_and_reload_all: guard 1;
    put_back_and_reload: guard 1; put_back_and_reload_all: guard 1*3
Any message of q3 may be put into q4 once q1 has become q4.
    put_back_into_q4: guard 1*3
A move of no message, or a move that is left out, changes no length.
    put_back_into_q4: length; put_back_and_reload: guard 1, length; put_back_and_reload_all: length;
    page_q1: length; page_q4: length; page_q3: guard 1, length; page_q2: guard 1, length
Messages that return to q3 or delta fill no place that has to be empty.
    requeue: guard 3*2, guard 4
"""

"""How a paging queue reduces its memory: that it comes to an end, and what is left then.

Source: the document on RabbitMQ's queue (2.8.2), `reduce_memory_use`; the ids are those of later
notes on RabbitMQ. One call is one step. It pages contents of q4, q1 and of what is pending as long
as more are in memory than the target allows, a batch at most; then positions of q3 and q2, if at
least a batch more are in memory than is permitted. The queue calls it again while it reports work.

So each call that reports work must do some: it lowers a measure, which is a whole number and not
negative. Lengths alone are here, and anything may happen to them in between. How many of q3 may
leave for delta is any number that segments allow, of which none holds more than its size; what is
permitted is any number from a segment's size on, whatever formula gives it.
"""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    Model,
    action,
    axiom,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.language.terms import integer
from brokerproof.models.paging_lengths import Part, Whole

__all__ = ["PagingReduction", "Part", "Whole"]

LOWERS = "what-reports-work-lowers-the-measure"
ENDS = "the-measure-is-not-negative"
ENOUGH = "where-nothing-is-reported-memory-is-within-its-target"
FEW = "where-nothing-is-reported-fewer-than-a-batch-are-too-many"
IN_RAM = "what-is-counted-in-memory-is-q1-and-q4"
NOT_NEGATIVE = "no-count-is-negative"

IT = Whole.IT


def smaller(one: Int, other: Int) -> Int:
    """Return the smaller of two."""
    return ite(one < other, one, other)


def at_least_none(count: Int) -> Int:
    """Return the number, or 0 where it is negative."""
    return ite(count > 0, count, 0)


class PagingReduction(Model):
    """The lengths of a paging queue's places, and a target for what is in memory."""

    batch: Int
    segment_size: Int
    most: Int

    length: Map[Part, Int]
    in_ram: Map[Whole, Int]
    ram_acks: Map[Whole, Int]
    limited: Map[Whole, Bool]
    target: Map[Whole, Int]
    permits: Map[Whole, Int]
    worked: Map[Whole, Bool]
    is_done: Map[Whole, Bool]
    measured: Map[Whole, Int]
    measures: Map[Whole, Int]

    @axiom("batches-and-segments-hold-something")
    def hold_something(self) -> Bool:
        """A batch is one message at least, and so is a segment."""
        return (self.batch >= 1) & (self.segment_size >= 1)

    @initial
    def empty(self) -> None:
        """Nothing is there, and memory is not limited."""
        for number in (self.length, self.in_ram, self.ram_acks):
            number.fill(0)
        for number in (self.target, self.permits, self.measured, self.measures):
            number.fill(0)
        for truth in (self.limited, self.worked, self.is_done):
            truth.fill(False)

    def measure(self) -> Int:
        """Return what each work lowers: two for each content in memory, one for each position."""
        contents = self.in_ram[IT] + self.ram_acks[IT]
        return contents + contents + self.length[Part.Q2] + self.length[Part.Q3]

    def everything(self) -> Int:
        """Return how many messages there are, ready or pending with content in memory."""
        lengths = self.length[Part.Q1] + self.length[Part.Q2] + self.length[Part.DELTA]
        return lengths + self.length[Part.Q3] + self.length[Part.Q4] + self.ram_acks[IT]

    # Whatever else happens.

    @action
    def come(self, part: Part) -> None:
        """A message comes to some place."""
        require(self.everything() < self.most)
        self.length[part] = self.length[part] + 1
        self.in_ram[IT] = self.in_ram[IT] + ite(self.counts(part), integer(1), 0)
        self._is_other()

    @action
    def go(self, part: Part) -> None:
        """A message leaves some place."""
        require(self.length[part] > 0)
        self.length[part] = self.length[part] - 1
        self.in_ram[IT] = self.in_ram[IT] - ite(self.counts(part), integer(1), 0)
        self._is_other()

    def counts(self, part: Part) -> Bool:
        """Whether what is in the place is counted as in memory."""
        return (part == Part.Q1) | (part == Part.Q4)

    @action
    def come_to_be_pending(self) -> None:
        """A message is pending, with its content in memory."""
        require(self.everything() < self.most)
        self.ram_acks[IT] = self.ram_acks[IT] + 1
        self._is_other()

    @action
    def settle(self) -> None:
        """Such a message is settled."""
        require(self.ram_acks[IT] > 0)
        self.ram_acks[IT] = self.ram_acks[IT] - 1
        self._is_other()

    @action
    def set_target(self, limited: Bool, target: Int) -> None:
        """Another number of contents may be in memory."""
        require(target >= 0)
        self.limited[IT] = limited
        self.target[IT] = target
        self._is_other()

    def _is_other(self) -> None:
        self.worked[IT] = False
        self.is_done[IT] = False

    # Reducing.

    @action
    def reduce(self, acks_first: Bool, permitted: Int, pushable: Int) -> None:
        """Contents leave memory, and then positions; it is reported if there was work."""
        require(self.limited[IT])
        over = self.in_ram[IT] + self.ram_acks[IT] - self.target[IT]
        quota = smaller(at_least_none(over), self.batch)
        alphas, acks = self.paged(acks_first, quota)
        from_q1 = smaller(alphas, self.length[Part.Q1])
        blank = self.length[Part.DELTA] == 0
        q3 = self.length[Part.Q3] + (alphas - from_q1) + ite(blank, from_q1, 0)
        q2 = self.length[Part.Q2] + ite(blank, integer(0), from_q1)
        require(self.may_be_permitted(permitted, q3) & self.may_be_pushed(pushable, q3))
        surplus = q2 + q3 - permitted
        second = ite(surplus >= self.batch, self.batch, 0)
        from_q3 = smaller(second, pushable)
        from_q2 = self.pushed_of_q2(second, from_q3, q2)
        before = self.measure()

        self.length[Part.Q1] = self.length[Part.Q1] - from_q1
        self.length[Part.Q4] = self.length[Part.Q4] - (alphas - from_q1)
        self.length[Part.Q2] = q2 - from_q2
        self.length[Part.Q3] = q3 - from_q3
        self.length[Part.DELTA] = self.length[Part.DELTA] + from_q2 + from_q3
        self.in_ram[IT] = self.in_ram[IT] - alphas
        self.ram_acks[IT] = self.ram_acks[IT] - acks
        self.permits[IT] = permitted
        self.worked[IT] = (quota > 0) | (second > 0)
        self.is_done[IT] = ~((quota > 0) | (second > 0))
        self.measured[IT] = before
        self.measures[IT] = self.measure()

    def paged(self, acks_first: Bool, quota: Int) -> tuple[Int, Int]:
        """Return how many contents of q1 and q4 leave memory, and how many of what is pending.

        The second gets what the first leaves of the quota; of q1 and q4 none leaves once they are
        within the target by themselves.
        """
        queued = self.length[Part.Q1] + self.length[Part.Q4]
        over = smaller(queued, at_least_none(self.in_ram[IT] - self.target[IT]))
        pending = self.ram_acks[IT]
        alphas = ite(
            acks_first, smaller(quota - smaller(quota, pending), over), smaller(quota, over)
        )
        acks = ite(
            acks_first, smaller(quota, pending), smaller(quota - smaller(quota, over), pending)
        )
        return alphas, acks

    def may_be_permitted(self, permitted: Int, q3: Int) -> Bool:
        """Whether so many positions may stay: at least a segment's, or all of q3 if it has less."""
        least = smaller(q3, self.segment_size)
        return ite(self.target[IT] == 0, permitted == least, permitted >= self.segment_size)

    def may_be_pushed(self, pushable: Int, q3: Int) -> Bool:
        """Whether so many of q3 may be in later segments than its first."""
        some = (pushable < q3) & (pushable >= q3 - self.segment_size)
        return (pushable >= 0) & ite(q3 == 0, pushable == 0, some)

    def pushed_of_q2(self, quota: Int, from_q3: Int, q2: Int) -> Int:
        """Return how many of q2 leave for delta: what q3 leaves of the quota."""
        return smaller(quota - from_q3, q2)

    # What holds.

    @invariant(NOT_NEGATIVE)
    def no_count_is_negative(self) -> Bool:
        """Nothing is less than nothing (A5)."""
        counts = (self.ram_acks[IT] >= 0) & (self.target[IT] >= 0)
        return counts & forall(Part, lambda part: self.length[part] >= 0)

    @invariant(IN_RAM)
    def counted_in_memory(self) -> Bool:
        """Contents in memory are those of q1 and q4 (I6)."""
        return self.in_ram[IT] == self.length[Part.Q1] + self.length[Part.Q4]

    @invariant(LOWERS)
    def work_lowers_the_measure(self) -> Bool:
        """A call that reports work has lowered the measure: it is no livelock (I18)."""
        return implies(self.worked[IT], self.measures[IT] < self.measured[IT])

    @invariant(ENDS)
    def measure_is_not_negative(self) -> Bool:
        """So there is an end to calls that report work (I18)."""
        return self.measure() >= 0

    @invariant(ENOUGH)
    def within_the_target(self) -> Bool:
        """A call that reports nothing leaves no more than the target; of 0, nothing (I17)."""
        nothing = (
            (self.length[Part.Q1] == 0) & (self.length[Part.Q4] == 0) & (self.ram_acks[IT] == 0)
        )
        return implies(
            self.is_done[IT],
            (self.in_ram[IT] + self.ram_acks[IT] <= self.target[IT])
            & implies(self.target[IT] == 0, nothing),
        )

    @invariant(FEW)
    def few_positions(self) -> Bool:
        """It leaves fewer positions beyond those permitted than a batch (I17)."""
        return implies(
            self.is_done[IT],
            self.length[Part.Q2] + self.length[Part.Q3] - self.permits[IT] < self.batch,
        )

"""How a paging queue reduces its memory: the calls end, and memory is then within limits.

Source: the document on RabbitMQ's queue (2.8.2), `reduce_memory_use`; the ids are those of later
notes on RabbitMQ. A batch is the document's `IO_BATCH_SIZE`. A call pages out contents of q4, q1
and pending messages while more are in memory than the target allows, at most a batch. Then it pages
out positions of q3 and q2, at most a batch, if at least a batch more than permitted are in memory.
Each message that leaves is a step; no other event happens within a call. The queue calls again
while a call reports work, and never without a target; each call has its own target.

A call that reports work lowers a measure, a whole number that is not negative. The model has
lengths alone, and any change may happen between calls; `paging_places` says which places are
empty. The number that may leave q3 is any that segments of a limited size allow; the permitted
number is any from a segment's size on, whatever the formula.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Int,
    Map,
    Model,
    Value,
    action,
    axiom,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    ranked,
    require,
)
from brokerproof.models.language.core.terms import integer

LOWERS = "what-reports-work-lowers-the-measure"
ENDS = "the-measure-is-not-negative"
ENOUGH = "where-nothing-is-reported-memory-is-within-its-target"
FEW = "where-nothing-is-reported-fewer-than-a-batch-are-too-many"
IN_RAM = "what-is-counted-in-memory-is-q1-and-q4"
NOT_NEGATIVE = "no-count-is-negative"
SUM = "the-length-is-the-sum"
FINDS = "what-a-call-has-to-do-it-finds"
BATCH = "a-call-moves-a-batch-of-each-at-most"
OVER = "no-more-contents-leave-than-are-over-the-target"
PENDING = "what-is-pending-is-in-memory-or-on-disk"
REPORTS = "a-call-ends-and-reports"
LOOKS = "a-call-comes-to-look-at-positions"

_CONTENTS_LEAVE = ("page_pending", "end_pending", "page_q1", "page_q4", "end_queued")


class Part(Enumeration):
    """A place for ready messages."""

    Q1: ClassVar[Part]
    Q2: ClassVar[Part]
    DELTA: ClassVar[Part]
    Q3: ClassVar[Part]
    Q4: ClassVar[Part]


class Call(Enumeration):
    """The progress of a call; the two kinds of contents go in either order."""

    RESTS: ClassVar[Call]
    PENDING_FIRST: ClassVar[Call]
    QUEUED_SECOND: ClassVar[Call]
    QUEUED_FIRST: ClassVar[Call]
    PENDING_SECOND: ClassVar[Call]
    LOOKS: ClassVar[Call]
    PUSHES: ClassVar[Call]


def smaller(one: Int, other: Int) -> Int:
    """Return the smaller of two numbers."""
    return ite(one < other, one, other)


def ranked_by_the_call(reduction: PagingReduction, pending: Bool | bool = True) -> None:
    """Rank what is left of a call: its parts, then the quota of the present part."""
    pages = reduction.pages_pending() | reduction.pages_queued()
    ranked(
        reduction.is_at(Call.PENDING_FIRST, Call.QUEUED_FIRST),
        pages,
        pages | reduction.is_at(Call.LOOKS),
        reduction.quota,
        pending=pending,
        words="the parts of the call that are left, then the quota of the present part",
    )


class PagingReduction(Model):
    """The lengths of a paging queue's places, and a target for the contents in memory."""

    batch: Int
    segment_size: Int
    most: Int

    length: Map[Part, Int]
    total: Value[Int]
    in_ram: Value[Int]
    ram_acks: Value[Int]
    disk_acks: Value[Int]
    pending: Value[Int]
    target: Value[Int]

    call: Value[Call]
    quota: Value[Int]
    pushable: Value[Int]
    permits: Value[Int]
    worked: Value[Bool]
    is_done: Value[Bool]
    contents_before: Value[Int]
    positions_before: Value[Int]

    @axiom("batches-and-segments-hold-something")
    def hold_something(self) -> Bool:
        """A batch and a segment are at least one message each."""
        return (self.batch >= 1) & (self.segment_size >= 1)

    @initial
    def empty(self) -> None:
        """No message is there, and no call has been made."""
        self.length.fill(0)
        self.total = self.in_ram = self.ram_acks = self.disk_acks = self.pending = 0
        self.target = self.quota = self.pushable = self.permits = 0
        self.contents_before = self.positions_before = 0
        self.call = Call.RESTS
        self.worked = self.is_done = False

    # Terms.

    def is_at(self, *calls: Call) -> Bool:
        """Whether the call is at one of these points."""
        return self.call.is_one_of(*calls)

    def pages_pending(self) -> Bool:
        """Whether contents of pending messages leave now."""
        return self.is_at(Call.PENDING_FIRST, Call.PENDING_SECOND)

    def pages_queued(self) -> Bool:
        """Whether contents of q1 and q4 leave now."""
        return self.is_at(Call.QUEUED_FIRST, Call.QUEUED_SECOND)

    def contents(self) -> Int:
        """Return the number of contents in memory."""
        return self.in_ram + self.ram_acks

    def positions(self) -> Int:
        """Return the number of positions in memory without their contents."""
        return self.length[Part.Q2] + self.length[Part.Q3]

    def measure(self) -> Int:
        """Return the measure: two for each content in memory, one for each position."""
        return self.contents() + self.contents() + self.positions()

    def measured(self) -> Int:
        """Return the measure at the beginning of the call."""
        return self.contents_before + self.contents_before + self.positions_before

    def may_come(self) -> Bool:
        """Whether another message may arrive."""
        return self.is_at(Call.RESTS) & (self.total + self.pending < self.most)

    # Changes between calls.

    @action
    def come(self, part: Part) -> None:
        """A message comes to a place."""
        require(self.may_come())
        self.length[part] += 1
        self.total += 1
        self.in_ram += ite(self.counts(part), integer(1), 0)
        self._is_other()

    @action
    def go(self, part: Part) -> None:
        """A message leaves a place."""
        require(self.is_at(Call.RESTS) & (self.length[part] > 0))
        self.length[part] -= 1
        self.total -= 1
        self.in_ram -= ite(self.counts(part), integer(1), 0)
        self._is_other()

    def counts(self, part: Part) -> Bool:
        """Whether messages in the place count as in memory."""
        return part.is_one_of(Part.Q1, Part.Q4)

    @action
    def come_to_be_pending(self) -> None:
        """A message becomes pending, with its content in memory."""
        require(self.may_come())
        self.pending += 1
        self.ram_acks += 1
        self._is_other()

    @action
    def settle(self) -> None:
        """A pending message with its content in memory is settled."""
        require(self.is_at(Call.RESTS) & (self.ram_acks > 0))
        self.pending -= 1
        self.ram_acks -= 1
        self._is_other()

    @action
    def settle_paged(self) -> None:
        """A pending message with its content on disk alone is settled."""
        require(self.is_at(Call.RESTS) & (self.disk_acks > 0))
        self.pending -= 1
        self.disk_acks -= 1
        self._is_other()

    def _is_other(self) -> None:
        self.worked = self.is_done = False

    # Contents leave memory.

    @action
    def begin(self, pending_first: Bool, target: Int) -> None:
        """A call begins; it has work if more contents are in memory than the target allows."""
        require(self.is_at(Call.RESTS) & (target >= 0))
        over = self.contents() - target
        self.target = target
        self.quota = ite(over > 0, smaller(over, self.batch), 0)
        self.worked = over > 0
        self.is_done = False
        self.contents_before = self.contents()
        self.positions_before = self.positions()
        self.call = ite(pending_first, Call.PENDING_FIRST, Call.QUEUED_FIRST)

    @action
    def page_pending(self) -> None:
        """The content of a pending message leaves memory."""
        require(self.pages_pending() & (self.quota > 0) & (self.ram_acks > 0))
        self.ram_acks -= 1
        self.disk_acks += 1
        self.quota -= 1

    @action
    def end_pending(self) -> None:
        """No pending content has to leave, or the batch is used up: the other kind is next."""
        require(self.pages_pending() & self.has_paged_pending())
        self.call = ite(self.is_at(Call.PENDING_FIRST), Call.QUEUED_SECOND, Call.LOOKS)

    def has_paged_pending(self) -> Bool:
        """Whether no pending content has to leave, or none is left."""
        return (self.quota == 0) | (self.ram_acks == 0)

    def is_over(self) -> Bool:
        """Whether a content of q1 or q4 has to leave: they alone exceed the target."""
        return (self.quota > 0) & (self.in_ram > self.target)

    @action
    def page_q1(self) -> None:
        """A content of q1 leaves memory: to q3, or to q2 if delta is not blank."""
        require(self.pages_queued() & self.is_over() & (self.length[Part.Q1] > 0))
        blank = self.length[Part.DELTA] == 0
        self.length[Part.Q1] -= 1
        self.length[Part.Q2] += ite(blank, integer(0), 1)
        self.length[Part.Q3] += ite(blank, integer(1), 0)
        self._is_paged()

    @action
    def page_q4(self) -> None:
        """A content of q4 leaves memory, to q3, because q1 is empty."""
        require(self.pages_queued() & self.is_over())
        require((self.length[Part.Q1] == 0) & (self.length[Part.Q4] > 0))
        self.length[Part.Q4] -= 1
        self.length[Part.Q3] += 1
        self._is_paged()

    def _is_paged(self) -> None:
        self.in_ram -= 1
        self.quota -= 1

    @action
    def end_queued(self) -> None:
        """Q1 and q4 are within the target, or the batch is used up: the other kind is next."""
        require(self.pages_queued() & self.has_paged_queued())
        self.call = ite(self.is_at(Call.QUEUED_FIRST), Call.PENDING_SECOND, Call.LOOKS)

    def has_paged_queued(self) -> Bool:
        """Whether no content of q1 and q4 has to leave, or none is left."""
        return ~self.is_over() | ((self.length[Part.Q1] == 0) & (self.length[Part.Q4] == 0))

    # Positions leave memory.

    @action
    def look(self, permitted: Int, pushable: Int) -> None:
        """The call has work if at least a batch more positions are in memory than permitted.

        In the document: the test before `BetaDeltaFun` (`push_betas_to_deltas`).
        """
        require(self.is_at(Call.LOOKS))
        require(self.may_be_permitted(permitted))
        require(self.may_be_pushed(pushable))
        too_many = self.positions() - permitted >= self.batch
        self.quota = ite(too_many, self.batch, 0)
        self.worked |= too_many
        self.permits = permitted
        self.pushable = pushable
        self.call = Call.PUSHES

    def may_be_permitted(self, permitted: Int) -> Bool:
        """Whether this number may stay: at least a segment, or all of a shorter q3 without room."""
        least = smaller(self.length[Part.Q3], self.segment_size)
        return ite(self.target == 0, permitted == least, permitted >= self.segment_size)

    def may_be_pushed(self, pushable: Int) -> Bool:
        """Whether this many of q3 may be in later segments than its first."""
        q3 = self.length[Part.Q3]
        some = (pushable < q3) & (pushable >= q3 - self.segment_size)
        return (pushable >= 0) & ite(q3 == 0, pushable == 0, some)

    @action
    def push_q3(self) -> None:
        """A position of q3 leaves memory for delta."""
        require(self.is_at(Call.PUSHES) & (self.quota > 0) & (self.pushable > 0))
        self.pushable -= 1
        self._is_pushed(Part.Q3)

    @action
    def push_q2(self) -> None:
        """A position of q2 leaves memory for delta, because no other of q3 may leave."""
        require(self.is_at(Call.PUSHES) & (self.quota > 0) & (self.pushable == 0))
        require(self.length[Part.Q2] > 0)
        self._is_pushed(Part.Q2)

    def _is_pushed(self, part: Part) -> None:
        self.length[part] -= 1
        self.length[Part.DELTA] += 1
        self.quota -= 1

    @action
    def end(self) -> None:
        """No position has to leave, or none may: the call reports whether it had work."""
        require(self.is_at(Call.PUSHES) & self.pushes_no_more())
        self.is_done = ~self.worked
        self.call = Call.RESTS

    def pushes_no_more(self) -> Bool:
        """Whether no position has to leave, or none may."""
        none = (self.pushable == 0) & (self.length[Part.Q2] == 0)
        return (self.quota == 0) | none

    # Invariants.

    @invariant(NOT_NEGATIVE)
    def no_count_is_negative(self) -> Bool:
        """No count is negative (A5), and q3 keeps one position while others may leave."""
        counts = (self.ram_acks >= 0) & (self.disk_acks >= 0)
        numbers = (self.target >= 0) & (self.quota >= 0)
        pushable = implies(
            self.is_at(Call.PUSHES),
            (self.pushable >= 0) & implies(self.pushable > 0, self.pushable < self.length[Part.Q3]),
        )
        return counts & numbers & pushable & forall(Part, lambda part: self.length[part] >= 0)

    @invariant(IN_RAM)
    def counted_in_memory(self) -> Bool:
        """The count of contents in memory is that of q1 and q4 (I6)."""
        return self.in_ram == self.length[Part.Q1] + self.length[Part.Q4]

    @invariant(SUM)
    def total_is_the_sum(self) -> Bool:
        """No call loses a message, or makes one (I1, I24)."""
        ends = self.length[Part.Q1] + self.length[Part.Q4]
        return self.total == ends + self.positions() + self.length[Part.DELTA]

    @invariant(PENDING)
    def pending_is_somewhere(self) -> Bool:
        """No call loses a pending message, or makes it ready (I24)."""
        return self.pending == self.ram_acks + self.disk_acks

    @invariant(LOWERS)
    def work_lowers_the_measure(self) -> Bool:
        """A call that reports work has lowered the measure: it is no livelock (I18)."""
        return implies(self.is_at(Call.RESTS) & self.worked, self.measure() < self.measured())

    @invariant(ENDS)
    def measure_is_not_negative(self) -> Bool:
        """The measure is not negative, so calls that report work come to an end (I18)."""
        return self.measure() >= 0

    @invariant(FINDS)
    def what_is_to_do_is_found(self) -> Bool:
        """A call that has work has done some, or can do some now or later."""
        over = self.contents() > self.target
        pushes = (self.quota > 0) & ((self.pushable > 0) | (self.length[Part.Q2] > 0))
        to_do = (
            (self.is_at(Call.PENDING_FIRST, Call.QUEUED_FIRST) & over & (self.quota > 0))
            | (self.is_at(Call.QUEUED_SECOND) & self.is_over())
            | (self.is_at(Call.PENDING_SECOND) & (self.quota > 0) & (self.ram_acks > 0))
            | (self.is_at(Call.PUSHES) & pushes)
        )
        few = implies(self.is_at(Call.PUSHES), self.positions() - self.permits < self.batch)
        nothing_to_do = ~over & (self.quota == 0) & few
        return implies(
            ~self.is_at(Call.RESTS),
            ~self.is_done
            & (self.measure() <= self.measured())
            & ite(self.worked, to_do | (self.measure() < self.measured()), nothing_to_do),
        )

    @invariant(BATCH)
    def no_more_than_a_batch(self) -> Bool:
        """A call moves at most a batch of contents and a batch of positions (I17)."""
        lowered = self.measured() - self.measure()
        twice = self.batch + self.batch
        paged = twice - self.quota - self.quota
        return (
            implies(
                self.pages_pending() | self.pages_queued(),
                (self.quota <= self.batch) & (lowered <= paged),
            )
            & implies(self.is_at(Call.LOOKS), lowered <= twice)
            & implies(self.is_at(Call.PUSHES), lowered <= twice + self.batch - self.quota)
        )

    @invariant(OVER)
    def no_more_than_is_over(self) -> Bool:
        """While contents leave, at least as many are left as the target allows."""
        leaves = (self.pages_pending() | self.pages_queued()) & (self.quota > 0)
        return implies(leaves, self.contents() - self.quota >= self.target)

    @invariant(ENOUGH)
    def within_the_target(self) -> Bool:
        """A call without work leaves contents within the target; with target 0, none (I17)."""
        nothing = (self.length[Part.Q1] == 0) & (self.length[Part.Q4] == 0) & (self.ram_acks == 0)
        return implies(
            self.is_done, (self.contents() <= self.target) & implies(self.target == 0, nothing)
        )

    @invariant(FEW)
    def few_positions(self) -> Bool:
        """A call without work leaves fewer than a batch of positions too many (I17)."""
        return implies(self.is_done, self.positions() - self.permits < self.batch)

    # Liveness.

    @leads_to(REPORTS, fair=(*_CONTENTS_LEAVE, "look", "push_q3", "push_q2", "end"))
    def call_reports(self) -> tuple[Bool, Bool]:
        """A call ends, and reports whether it had work."""
        ranked_by_the_call(self)
        reported = self.worked | self.is_done
        return ~self.is_at(Call.RESTS), self.is_at(Call.RESTS) & reported

    @leads_to(LOOKS, fair=_CONTENTS_LEAVE)
    def call_looks(self) -> tuple[Bool, Bool]:
        """After the contents, a call looks at positions."""
        begins = self.is_at(Call.PENDING_FIRST, Call.QUEUED_FIRST)
        ranked_by_the_call(self, pending=self.pages_pending() | self.pages_queued())
        return begins, self.is_at(Call.LOOKS)


PagingReduction.equivalent_mutants = """
A limit only ends an exploration; the proof is for any limit.
    come: guard 1*2; come_to_be_pending: guard 1*2
The report of the last call stays true when a message leaves.
    go: worked, is_done; settle: worked, is_done; settle_paged: worked, is_done
Either kind of content may leave first.
    begin: call*4
Another content or position leaves instead, and no more of them leave.
    page_q1: guard 1*2; page_q4: guard 1*2, guard 2; push_q2: guard 1
A call that is under way at first finds nothing to do.
    initially: call*7
With any target, an empty queue is done.
    initially: is_done*2
The value is set before it is read.
    initially: target, quota, pushable*2, permits*2, contents_before*2, positions_before*2
"""

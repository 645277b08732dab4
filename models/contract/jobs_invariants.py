"""Invariants of the contract for job queues, which hold for every broker that conforms."""

from __future__ import annotations

from brokerproof.models.contract.core_state import Entry, Group, Status
from brokerproof.models.contract.jobs_state import JobContractState
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import Bool, counts, implies, invariant


class JobContractInvariants(JobContractState):
    """Statements about every state of a conforming broker, with leases, limits and groups."""

    @counts("held_of")
    def what_is_held_of_a_group(self, g: Group, e: Entry) -> Bool:
        """The number kept for a group is that of its held messages."""
        return (self.status[e] == Status.ACQUIRED) & self.has_group(e) & (self.group[e] == g)

    @invariant("absent-was-never-delivered")
    def absent_was_never_delivered(self, e: Entry) -> Bool:
        """An unpublished entry was not delivered, so it is no dead letter and did not lapse."""
        new = (self.times[e] == 0) & (self.buried_at[e] == 0) & ~self.lapsed[e]
        return implies(self.status[e] == Status.ABSENT, new) & (self.times[e] >= 0)

    @invariant("no-delivery-beyond-the-limit")
    def no_delivery_beyond_the_limit(self, e: Entry) -> Bool:
        """An entry is delivered at most as often as its queue allows, and then not available."""
        most, there = self.most[self.home[e]], self.status[e] == Status.AVAILABLE
        has_limit = (most > 0) & ~self.is_dead(e)
        return implies(has_limit, self.times[e] <= most) & implies(
            has_limit & there, self.times[e] < most
        )

    @invariant("a-queue-drops-only-if-told-to")
    def drops_only_if_told_to(self, e: Entry) -> Bool:
        """A message is dropped by a queue with a limit only, of length or of deliveries."""
        dropped, exhausted = self.end[e] == End.DROPPED, self.end[e] == End.EXHAUSTED
        return implies(dropped, self.drops_head[self.queue_of(e)]) & implies(
            exhausted, self.most[self.home[e]] > 0
        )

    @invariant("a-lease-ends-in-time")
    def a_lease_ends_in_time(self, e: Entry) -> Bool:
        """The lease of a held entry ends within one lease from now, and not before its first."""
        home = self.home[e]
        in_time = self.due[e] <= self.now[home] + self.lease[self.queue_of(e)]
        return implies(self.is_leased(e), in_time & (self.first_due[e] <= self.due[e]))

    @invariant("a-group-has-one-consumer")
    def a_group_has_one_consumer(self, e: Entry) -> Bool:
        """All held messages of a group are with its owner."""
        held = (self.status[e] == Status.ACQUIRED) & self.has_group(e)
        return implies(held, self.holder[e] == self.owner[self.group[e]])

    @invariant("what-lapsed-is-available")
    def what_lapsed_is_available(self, e: Entry) -> Bool:
        """An entry whose lease has ended is available until it is delivered, or is gone."""
        return implies(self.lapsed[e], self.status[e] != Status.ACQUIRED)

    @invariant("the-dead-were-given-up")
    def the_dead_were_given_up(self, e: Entry) -> Bool:
        """Only a queue with a dead-letter queue has dead letters."""
        home = self.home[e]
        buries = self.buries_exhausted[home] | self.buries_rejected[home]
        return implies(self.is_dead(e), buries & (self.buried_at[e] <= self.times[e])) & (
            self.buried_at[e] >= 0
        )

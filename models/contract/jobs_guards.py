"""Guards and updates that several actions of the contract for job queues share.

Owns what every delivery requires and changes beyond the whole contract, and how messages become
dead letters.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core_state import Consumer, Entry, Mode, Origin, Queue, Status
from brokerproof.models.contract.jobs_invariants import JobContractInvariants
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import TRUE, Bool, exercises, ite, require


class JobContractGuards(JobContractInvariants):
    """The shared parts of the actions of job queues."""

    def _would_be_there(self, consumer: Consumer, f: Entry) -> Bool:
        return (self.status[f] == Status.AVAILABLE) & self.is_due(f) & self.concerns(consumer, f)

    def _is_beyond_its_first_lease(self, f: Entry) -> Bool:
        return self.now[self.home[f]] >= self.first_due[f]

    def _requires_it_to_be_free(self, consumer: Consumer, entry: Entry) -> None:
        """Name the requirement that a delivery breaks while the message is not to be given."""
        now = self.now[self.home[entry]]
        require(~(self.is_held_or_settled(entry) & self.late[entry]), "lease-is-over")
        self._requires_no_lease(entry)
        require(self.end[entry] != End.DROPPED, "head-is-dropped")
        require(self.end[entry] != End.EXHAUSTED, "delivery-limit-kept")
        require(~(self.is_dead(entry) & self.concerned[consumer, entry]), "delivery-limit-kept")
        require(
            ~(
                ~self.is_dead(entry)
                & self.visits[consumer, entry]
                & ~self.concerned[consumer, entry]
            ),
            "dead-letter-only-when-dead",
        )
        require(now >= self.waits_until[entry], "delayed-release-waits")
        require(~self.is_locked(consumer, entry), "group-one-consumer")
        require(self.times[entry] < self.horizon)
        exercises("lease-ends", self.lapsed[entry])
        exercises("dead-letter-arrives", self.is_dead(entry))
        exercises("dead-letter-only-when-dead", self.is_dead(entry))
        exercises("delayed-release-waits", self.waits_until[entry] > 0)
        exercises("delayed-release-returns", self.waits_until[entry] > 0)

    def _requires_no_lease(self, entry: Entry) -> None:
        beyond, holds = self._is_beyond_its_first_lease(entry), self.is_leased(entry)
        require(~(holds & ~self.late[entry] & ~beyond), "lease-holds")
        require(~(holds & ~self.late[entry] & beyond), "lease-renewed")

    def _takes(self, consumer: Consumer, entry: Entry) -> None:
        super()._takes(consumer, entry)
        keeps = self.mode[consumer] == Mode.ACKNOWLEDGE
        self.times[entry] = self.times[entry] + 1
        self.due[entry] = self.now[self.home[entry]] + self.lease[self.queue_of(entry)]
        self.first_due[entry] = self.due[entry]
        # An earlier lease or release has no part in what breaks from here on.
        self.lapsed[entry] = self.late[entry] = False
        self.waits_until[entry] = 0

        group, joins = self.group[entry], keeps & self.has_group(entry)
        self.held_of[group] = ite(joins, self.held_of[group] + 1, self.held_of[group])
        self.owner[group] = ite(joins, consumer, self.owner[group])

    def _leaves_its_group(self, entry: Entry, held: Bool = TRUE) -> None:
        group, leaves = self.group[entry], held & self.has_group(entry)
        self.held_of[group] = ite(leaves, self.held_of[group] - 1, self.held_of[group])

    def _buries_what_is_exhausted(self) -> None:
        """Let each available entry that was delivered often enough leave its queue."""

        def goes(f: Entry) -> Bool:
            return (self.status[f] == Status.AVAILABLE) & self.is_exhausted(f)

        def is_buried(f: Entry) -> Bool:
            return goes(f) & self.buries_exhausted[self.home[f]]

        self._ends(lambda f: goes(f) & ~self.buries_exhausted[self.home[f]], End.EXHAUSTED)
        self._becomes_a_dead_letter(is_buried)

    def _becomes_a_dead_letter(self, is_buried: Callable[[Entry], Bool]) -> None:
        """Move available entries to their dead-letter queues, as if newly published there."""

        def stays(f: Entry, old: Bool) -> Bool:
            return old & ~is_buried(f)

        self.either_flag = self.either_flag.map(stays)
        self.lapsed = self.lapsed.map(stays)
        self.late = self.late.map(stays)
        self.voided = self.voided.map(stays)
        self.came_back = self.came_back.map(lambda _, f, old: old & ~is_buried(f))
        self.shown = self.shown.map(lambda _, f, old: old & ~is_buried(f))
        self.origin = self.origin.map(lambda f, old: ite(is_buried(f), Origin.PUBLISHED, old))
        self.waits_until = self.waits_until.map(lambda f, old: ite(~is_buried(f), old, 0))
        self.buried_at = self.buried_at.map(lambda f, old: ite(is_buried(f), self.times[f], old))

    def _goes_with_everything(self, queue: Queue) -> None:
        super()._goes_with_everything(queue)
        self.held_of = self.held_of.map(lambda g, old: ite(self.home_of[g] != queue, old, 0))

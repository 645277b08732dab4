"""Guards and updates that several actions of the whole contract share, and its invariants.

Owns what every delivery requires and changes beyond the core, and how entries leave for good.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core_state import Consumer, Entry, Mode, Queue, Status
from brokerproof.models.contract.whole_state import End, WholeContractState
from brokerproof.models.language import (
    Bool,
    exercises,
    exists,
    forall,
    implies,
    invariant,
    ite,
    require,
)


class WholeContractGuards(WholeContractState):
    """The invariants of the whole contract, and the shared parts of its actions."""

    @invariant("window-is-never-exceeded")
    def window_is_never_exceeded(self, c: Consumer) -> Bool:
        """A consumer's unsettled messages fit its window, unless the window was lowered since."""
        return implies(
            self.limited[c]
            & ~self.lowered[c]
            & self.consuming[c]
            & (self.mode[c] == Mode.ACKNOWLEDGE),
            self.unsettled[c] <= self.limit[c],
        )

    @invariant("what-is-gone-has-ended", by=("a-queue-drops-only-if-told-to",))
    def gone_has_ended(self, e: Entry) -> Bool:
        """An entry is dequeued exactly if it has an end."""
        return (self.status[e] == Status.DEQUEUED) == (self.end[e] != End.NONE)

    @invariant("a-queue-drops-only-if-told-to")
    def drops_only_if_told_to(self, e: Entry) -> Bool:
        """No queue of the whole contract has a limit of length or of deliveries."""
        return (self.end[e] != End.DROPPED) & (self.end[e] != End.EXHAUSTED)

    @invariant("what-survives-is-not-lost")
    def survivors_are_not_lost(self, e: Entry) -> Bool:
        """A crash loses no message that has to survive it."""
        return implies(self.survives[e], self.end[e] != End.LOST)

    @invariant("what-was-left-had-been-there")
    def what_was_left_had_been_there(self, e: Entry) -> Bool:
        """A purge leaves published messages, and a restart those of them that have to survive."""
        return implies(self.restarted[e], self.survives[e]) & implies(
            self.restarted[e] | self.spared[e], self.status[e] != Status.ABSENT
        )

    def _requires_what_it_selects(self, consumer: Consumer, entry: Entry) -> None:
        require(
            self.wants[consumer, entry] | ~self.concerned[consumer, entry], "selector-respected"
        )

    def _requires_it_to_be_there(self, entry: Entry) -> None:
        """Name the requirement broken by a delivery of a message that is gone or not yet due."""
        now = self.now[self.home[entry]]
        require(now >= self.not_before[entry], "held-until-its-time")
        require(now < self.expires[entry], "gone-when-expired")
        require(self.end[entry] != End.PURGED, "purge-drops")
        require(
            (self.end[entry] != End.DELETED) & (self.end[entry] != End.TAKEN_AWAY), "delete-drops"
        )
        require(self.end[entry] != End.REPLACED, "last-value-only")
        require(self.end[entry] != End.LOST, "transient-is-lost")
        require(self.end[entry] != End.FINAL, "settlement-survives-crash")

    def _requires_its_turn(self, consumer: Consumer, entry: Entry) -> None:
        """Name the orders beyond the core; the core checks its own orders after these."""

        def overtaken(f: Entry) -> Bool:
            return self.is_overtaken(consumer, f, entry)

        def is_moved(f: Entry) -> Bool:
            return (self.to_tail | self.to_head) & (self.has_returned(f) | self.has_returned(entry))

        def is_sorted(f: Entry) -> Bool:
            return self.is_sorted_by_key[self.home[f]]

        require(forall(Entry, lambda f: ~(overtaken(f) & is_moved(f))), "returns-where-claimed")
        require(forall(Entry, lambda f: ~(overtaken(f) & is_sorted(f))), "sorted-order")
        exercises(
            "returns-where-claimed",
            exists(Entry, lambda f: self.later_for(consumer, entry, f) & is_moved(f)),
        )
        exercises(
            "sorted-order",
            exists(Entry, lambda f: self.later_for(consumer, entry, f) & is_sorted(f)),
        )

    def _requires_room(self, consumer: Consumer, entry: Entry) -> None:
        super()._requires_room(consumer, entry)
        require(self.has_bytes_left(consumer, entry), "byte-credit-not-exceeded")
        require(self.has_pool_left(consumer, entry), "channel-credit-not-exceeded")

    def _exercises_a_delivery(self, consumer: Consumer, entry: Entry) -> None:
        exercises("selector-respected", exists(Entry, lambda f: self.is_not_selected(consumer, f)))
        exercises("held-until-its-time", self.not_before[entry] > 0)
        exercises("survives-restart", self.restarted[entry])
        exercises("purge-leaves-acquired", self.spared[entry])

    def _exercises_the_whole_at_rest(self) -> None:
        def some(end: End) -> Bool:
            return exists(Entry, lambda f: self.end[f] == end)

        exercises("purge-drops", some(End.PURGED))
        exercises("delete-drops", some(End.DELETED) | some(End.TAKEN_AWAY))
        exercises("last-value-only", some(End.REPLACED))
        exercises("transient-is-lost", some(End.LOST))
        exercises("settlement-survives-crash", some(End.FINAL))
        exercises(
            "gone-when-expired",
            exists(
                Entry,
                lambda f: (
                    (self.status[f] == Status.AVAILABLE)
                    & (self.now[self.home[f]] >= self.expires[f])
                ),
            ),
        )

    def _takes(self, consumer: Consumer, entry: Entry) -> None:
        super()._takes(consumer, entry)
        keeps = self.mode[consumer] == Mode.ACKNOWLEDGE
        self.end[entry] = ite(keeps, self.end[entry], End.SETTLED)
        self.unsettled_bytes[consumer] = ite(
            keeps, self.unsettled_bytes[consumer] + self.size[entry], self.unsettled_bytes[consumer]
        )
        at, counts = self.channel[consumer], keeps & self.consuming[consumer]
        self.in_pool[at] = ite(counts, self.in_pool[at] + 1, self.in_pool[at])
        self.bytes_in_pool[at] = ite(
            counts, self.bytes_in_pool[at] + self.size[entry], self.bytes_in_pool[at]
        )

    def _gives_back_credit(self, entry: Entry) -> None:
        super()._gives_back_credit(entry)
        consumer = self.holder[entry]
        at, counts = self.channel[consumer], self.consuming[consumer]
        self.unsettled_bytes[consumer] = self.unsettled_bytes[consumer] - self.size[entry]
        self.in_pool[at] = ite(counts, self.in_pool[at] - 1, self.in_pool[at])
        self.bytes_in_pool[at] = ite(
            counts, self.bytes_in_pool[at] - self.size[entry], self.bytes_in_pool[at]
        )

    def _leaves_its_pool(self, consumer: Consumer, there: Bool) -> None:
        """Remove a consumer's messages from its channel's windows if it was `there` until now."""
        at = self.channel[consumer]
        self.in_pool[at] = ite(there, self.in_pool[at] - self.unsettled[consumer], self.in_pool[at])
        self.bytes_in_pool[at] = ite(
            there, self.bytes_in_pool[at] - self.unsettled_bytes[consumer], self.bytes_in_pool[at]
        )

    def _stands_last(self, entry: Entry) -> None:
        """Stamp an entry as its place's latest arrival if returns do not keep the place."""
        at, moves = self.home[entry], self.to_tail | self.to_head
        self.stamp[entry] = ite(moves, self.stamps[at], self.stamp[entry])
        self.stamps[at] = ite(moves, self.stamps[at] + 1, self.stamps[at])

    def _drops_what_was_superseded(self) -> None:
        self._ends(
            lambda f: self.superseded[f] & (self.status[f] == Status.AVAILABLE), End.REPLACED
        )

    def _goes_with_everything(self, queue: Queue) -> None:
        self.gone[queue] = True
        for status, end in (
            (Status.AVAILABLE, End.DELETED),
            (Status.ACQUIRED, End.TAKEN_AWAY),
        ):
            self._ends(self._those_in(queue, status), end)

    def _those_in(self, queue: Queue, status: Status) -> Callable[[Entry], Bool]:
        return lambda f: self.is_in(queue, f) & (self.status[f] == status)

    def _ends(self, goes: Callable[[Entry], Bool], end: End) -> None:
        """Let entries leave their queues for good."""
        self.end = self.end.map(lambda f, old: ite(goes(f), end, old))
        self.status = self.status.map(lambda f, old: ite(goes(f), Status.DEQUEUED, old))

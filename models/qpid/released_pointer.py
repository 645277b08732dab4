"""The place as Qpid keeps it since 0.6: two references, each changed by itself.

Source: Qpid 0.6 to 10.1, `getNextAvailableEntry`, `setLastSeenEntry`, and the loop over `released`
in `requeue` and `checkConsumersNotAheadOfDelivery`.

It breaks the invariant of `moving_place`: the second reference is cleared after the first has
moved, and its value may by then stand for another release. The model is kept as published, to be
refuted.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import Bool, Enumeration, Map, action, initial, ite, require, step
from brokerproof.models.qpid.moving_place import MovingPlace, Opener, Opening, Seeker, Seeking
from brokerproof.models.qpid.pointer_queue import Entry


class Between(Enumeration):
    """The step of a seeker between its accesses to the two references."""

    NOTHING: ClassVar[Between]
    READS_RELEASED: ClassVar[Between]
    CLEARS: ClassVar[Between]


class ReleasedPointer(MovingPlace):
    """Last seen and released in two references."""

    between: Map[Seeker, Between]
    was_rewound: Map[Opener, Bool]
    was_released: Map[Opener, Entry]

    @initial
    def empty(self) -> None:
        """No thread has read the references."""
        super().empty()
        self.between.fill(Between.NOTHING)
        self.was_rewound.fill(False)
        self.was_released.fill(self.head)

    @action
    def read_last(self, seeker: Seeker) -> None:
        """A seeker reads the last seen entry."""
        require((self.seeking[seeker] == Seeking.READS) & (self.between[seeker] == Between.NOTHING))
        self.seen[seeker] = self.last_seen
        self.between[seeker] = Between.READS_RELEASED

    @action
    def read_released(self, seeker: Seeker) -> None:
        """A seeker reads the released entry, in a search or before it records a delivery."""
        gives = self.seeking[seeker] == Seeking.SETTLES
        require(gives | (self.between[seeker] == Between.READS_RELEASED))
        self.knows[seeker] = self.rewound
        self.known[seeker] = self.released
        self.between[seeker] = Between.NOTHING
        self.seeking[seeker] = ite(gives, Seeking.SETS, Seeking.CHOOSES)

    @step(Seeking.MOVES, Seeking.READS)
    def move(self, seeker: Seeker) -> None:
        """The last seen entry becomes an unavailable one if it is still the one that was read."""
        same = self.last_seen == self.seen[seeker]
        self.last_seen = ite(same, self.chosen[seeker], self.last_seen)
        self.between[seeker] = ite(same & self.knows[seeker], Between.CLEARS, Between.NOTHING)

    @step(Seeking.SETS, Seeking.READS)
    def set(self, seeker: Seeker) -> None:
        """The last seen entry becomes the acquired one, whatever it was."""
        self.last_seen = self.chosen[seeker]
        same = self.knows[seeker] & (self.known[seeker] == self.chosen[seeker])
        self.between[seeker] = ite(same, Between.CLEARS, Between.NOTHING)

    @step(Between.CLEARS, Between.NOTHING)
    def clear(self, seeker: Seeker) -> None:
        """The released entry is cleared if it is still the one that was read."""
        self.rewound &= self.released != self.known[seeker]

    @step(Opening.READS)
    def read_as_opener(self, opener: Opener) -> None:
        """An opener reads the released entry, and is done if that is before the opened one.

        The opened one was available, and may have been taken since.
        """
        back = self.rewound & self.at_or_before(self.released, self.opened[opener])
        self.was_rewound[opener] = self.rewound
        self.was_released[opener] = self.released
        self.opening[opener] = ite(back, Opening.OPENS, Opening.LOWERS)

    @step(Opening.LOWERS)
    def lower(self, opener: Opener) -> None:
        """The opened entry becomes the released one if that is still as read; else read again."""
        same = (self.rewound == self.was_rewound[opener]) & (
            ~self.was_rewound[opener] | (self.released == self.was_released[opener])
        )
        self.released = ite(same, self.opened[opener], self.released)
        self.rewound |= same
        self.opening[opener] = ite(same, Opening.OPENS, Opening.READS)

"""The place as one reference to a pair that is replaced as a whole, as in our reference broker.

Source: our own repair of the fault in `released_pointer`; it keeps Qpid's search and its terms.
Every change of the place is a compare-and-set on the identity of the pair that was read, so a new
pair with equal content is never taken for the old one. For this reason an opener replaces the pair
even if the place is far enough back: a seeker that read the old pair may be about to pass the
entry.
"""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    Map,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
    step,
)
from brokerproof.models.qpid.moving_place import MovingPlace, Opener, Opening, Seeker, Seeking
from brokerproof.models.qpid.pointer_queue import Entry, Status


class PairedPointer(MovingPlace):
    """Last seen and released in one reference."""

    seeker_is_current: Map[Seeker, Bool]
    opener_is_current: Map[Opener, Bool]

    @initial
    def empty(self) -> None:
        """No thread has read the pair."""
        super().empty()
        self.seeker_is_current.fill(False)
        self.opener_is_current.fill(False)

    def _replaced(self) -> None:
        self.seeker_is_current.fill(False)
        self.opener_is_current.fill(False)

    @action
    def read(self, seeker: Seeker) -> None:
        """A seeker reads the pair, before a search or before it records a delivery."""
        require(self.seeking[seeker].is_one_of(Seeking.READS, Seeking.SETTLES))
        self.seen[seeker] = self.last_seen
        self.knows[seeker] = self.rewound
        self.known[seeker] = self.released
        self.seeker_is_current[seeker] = True
        self.seeking[seeker] = ite(
            self.seeking[seeker] == Seeking.READS, Seeking.CHOOSES, Seeking.SETS
        )

    @step(Seeking.MOVES, Seeking.READS)
    def move(self, seeker: Seeker) -> None:
        """The place moves onto an unavailable entry if the pair is the one that was read."""
        require(self.seeker_is_current[seeker])
        self.last_seen = self.chosen[seeker]
        self.rewound = False
        self._replaced()

    @action
    def come_too_late(self, seeker: Seeker) -> None:
        """The pair is not the one that was read, so it is read again."""
        require(self.seeking[seeker].is_one_of(Seeking.MOVES, Seeking.SETS))
        require(~self.seeker_is_current[seeker])
        self.seeking[seeker] = ite(
            self.seeking[seeker] == Seeking.MOVES, Seeking.READS, Seeking.SETTLES
        )

    @step(Seeking.SETS, Seeking.READS)
    def set(self, seeker: Seeker, following: Entry) -> None:
        """The place moves onto the acquired entry; a released entry before it stays next."""
        require(self.seeker_is_current[seeker])
        require(self.candidate(seeker, following))
        require(self.at_or_before(following, self.chosen[seeker]))
        is_next = following == self.chosen[seeker]
        stays = self.rewound & (self.released != following)
        self.last_seen = self.chosen[seeker]
        self.rewound = ite(is_next, stays, True)
        self.released = ite(is_next, self.released, following)
        self._replaced()

    @step(Seeking.SETS, Seeking.READS)
    def leave(self, seeker: Seeker) -> None:
        """The next entry is behind the acquired one, or there is none: the place is left."""
        require(
            forall(
                Entry,
                lambda e: implies(self.candidate(seeker, e), self.before(self.chosen[seeker], e)),
            )
        )

    @step(Opening.READS, Opening.LOWERS)
    def read_as_opener(self, opener: Opener) -> None:
        """An opener reads the pair; the entry was available, and may have been taken since."""
        self.opener_is_current[opener] = True

    @step(Opening.LOWERS, Opening.OPENS)
    def lower(self, opener: Opener) -> None:
        """The released entry becomes the earlier of the old and the opened one, in a new pair."""
        require(self.opener_is_current[opener])
        earlier = self.rewound & self.before(self.released, self.opened[opener])
        self.released = ite(earlier, self.released, self.opened[opener])
        self.rewound = True
        self._replaced()

    @step(Opening.LOWERS, Opening.READS)
    def come_too_late_to_lower(self, opener: Opener) -> None:
        """The pair is not the one that was read, so the opener reads it again."""
        require(~self.opener_is_current[opener])

    @invariant("places-are-entries-that-arrived")
    def places_arrived(self) -> Bool:
        """Every entry that is referred to has arrived."""
        return (
            (self.status[self.last_seen] != Status.ABSENT)
            & (self.status[self.released] != Status.ABSENT)
            & forall(Seeker, lambda s: self.status[self.seen[s]] != Status.ABSENT)
            & forall(Seeker, lambda s: self.status[self.known[s]] != Status.ABSENT)
            & forall(Seeker, lambda s: self.status[self.chosen[s]] != Status.ABSENT)
            & forall(Opener, lambda t: self.status[self.opened[t]] != Status.ABSENT)
        )

    @invariant("current-is-what-is")
    def current_is_what_is(self, s: Seeker) -> Bool:
        """A seeker with the current pair knows its content."""
        return implies(
            self.seeker_is_current[s],
            (self.seen[s] == self.last_seen)
            & (self.knows[s] == self.rewound)
            & (self.known[s] == self.released),
        )

    @invariant("what-is-given-is-acquired")
    def given_is_acquired(self, s: Seeker) -> Bool:
        """An entry that a seeker is about to send is acquired."""
        return implies(self.gives(s), self.status[self.chosen[s]] == Status.ACQUIRED)

    @invariant("current-choice-is-first")
    def choice_is_first(self, s: Seeker, e: Entry) -> Bool:
        """No available entry is before one that was chosen by the current pair.

        So a delivery overtakes an entry only if that one came or returned after the pair was read.
        """
        seeks = self.seeking[s]
        chosen = seeks.is_one_of(Seeking.LOOKS, Seeking.ACQUIRES)
        return implies(
            self.seeker_is_current[s] & self.is_for_all(e),
            implies(chosen, self.at_or_before(self.chosen[s], e))
            & implies(seeks == Seeking.MOVES, self.before(self.chosen[s], e)),
        )


REFUSED_BY_THREADS = "No run of the reference's threads is a run of it (`test_place_tie.py`)."
PairedPointer.equivalent_mutants = f"""
{REFUSED_BY_THREADS}
    append: status*3; insert: status*2, opening; give_back: status*3, opening;
    find_it_gone: opening*3; taken_by_another: status*4; dequeue: status*2; choose: seeking*3;
    give_up: seeking*2; skip: seeking*4; find: seeking*4; acquire: status, seeking*7;
    read: seeking*6, seeker_is_current*2; move: rewound*2, opener_is_current*2;
    come_too_late: seeking*8; set: rewound*2, seeking*3, opener_is_current*2;
    leave: seeking*4; read_as_opener: opening*3, opener_is_current; lower: released,
    opening*3; come_too_late_to_lower: opening*3; initially: status*5, seeking*3, opening*2
This model does not say which consumer holds an entry; `entry-states` does.
    append: status; give_back: guard 2*2; taken_by_another: guard 1*2; dequeue: guard 1*2;
    acquire: guard 2*2
An acquired entry may be passed, since its return moves the place back.
    choose: guard 2*3; set: guard 3*3
A place may lie further back than it need: the next search passes the same entries again.
    choose: guard 2*3; set: guard 3*3, guard 4*2, rewound, released; leave: guard 2*16;
    initially: rewound*2, knows*2
A search may end, or go on from another step: its next swap succeeds only with the current pair.
    choose: guard 1*2; give_up: guard 1*2, seeking; find: guard 2*2, guard 1; miss: guard 1*2,
    guard 2*2, seeking*6; move: seeking*5; come_too_late: guard 2, seeking*3; set: seeking*5;
    leave: guard 1*2, seeking*4; skip: guard 1; read: guard 1
A seeker whose pair has been replaced changes nothing.
    read: seen, knows, known
An opener that finds its entry gone may end at any step.
    find_it_gone: guard 1*2
An opener may lower the place from any pair, since the earlier entry stays, or read the pair again.
    insert: opening; give_back: opening; read_as_opener: guard 1*2, opener_is_current;
    lower: guard 1*2, guard 2, opener_is_current*2; come_too_late_to_lower: guard 1*2,
    guard 2; initially: opening, opener_is_current*2
The first pair is the one that all threads would read.
    initially: seeker_is_current*2
Every entry but the head arrives, behind the others or with an opener.
    axiom head-first: dropped
An opener may begin for an entry that is available already: the place only goes back.
    insert: guard 2
"""

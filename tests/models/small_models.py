"""Models that are small and yet use each form of the language, for the tests of its readings."""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Order,
    Relation,
    SetOf,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)


class Item(Family):
    """Something to be counted or moved."""


class Place(Family):
    """Somewhere to be."""


class Phase(Enumeration):
    """How far an item is."""

    IDLE: ClassVar[Phase]
    BUSY: ClassVar[Phase]
    DONE: ClassVar[Phase]


class Counters(Model):
    """Items that count up to their own limits and may hand their counts on."""

    limit: Fixed[Item, Int]
    phase: Map[Item, Phase]
    count: Map[Item, Int]

    @axiom("limits-are-positive")
    def limits_are_positive(self) -> Bool:
        """Something can be counted."""
        return forall(Item, lambda i: self.limit[i] > 0)

    @initial
    def nothing_counted(self) -> None:
        """Every item is idle at zero."""
        self.phase.fill(Phase.IDLE)
        self.count.fill(0)

    @action
    def begin(self, item: Item) -> None:
        """Count only where nothing else does, or where everything else is done."""
        require(self.phase[item] == Phase.IDLE, "only-idle-items-begin")
        require(
            forall(Item, lambda i: self.phase[i] != Phase.BUSY)
            | forall(Item, lambda i: (i == item) | (self.phase[i] == Phase.DONE))
        )
        self.phase[item] = Phase.BUSY

    @action
    def increment(self, item: Item) -> None:
        """One more, and done at the limit."""
        require((self.phase[item] == Phase.BUSY) & (self.count[item] < self.limit[item]), "busy")
        self.count[item] = self.count[item] + 1
        self.phase[item] = ite(self.count[item] == self.limit[item], Phase.DONE, self.phase[item])

    @action
    def hand_on(self, source: Item, target: Item) -> None:
        """All but one of the source's count, where the target has room for one."""
        require((source != target) & (self.count[source] > 0))
        require(self.count[target] < self.limit[target])
        self.count[source] = self.count[source] - 1
        self.count[target] = self.count[target] + 1

    @invariant("count-within-limit")
    def within(self) -> Bool:
        """No count is above its limit or below zero."""
        return forall(Item, lambda i: (self.count[i] >= 0) & (self.count[i] <= self.limit[i]))

    @invariant("one-is-busy-at-a-time")
    def one_busy(self) -> Bool:
        """Two items are never busy together."""
        return forall(
            Item,
            Item,
            lambda i, j: implies(
                (self.phase[i] == Phase.BUSY) & (self.phase[j] == Phase.BUSY), i == j
            ),
        )


class Unlimited(Counters):
    """Counters that leave the integers of any scope."""

    @action
    def overflow(self, item: Item) -> None:
        """One more, whatever the limit."""
        self.count[item] = self.count[item] + 1


class Shelves(Model):
    """Items that move between places, many at once, along the links of each place."""

    lower: Order[Place]
    leads_to: Fixed[Place, Place]
    hub: Place
    careful: Bool

    at: Map[Item, Place]
    shut: Map[Place, Bool]
    touched: Relation[Item, Place]

    @axiom("ways-go-up")
    def ways_go_up(self) -> Bool:
        """No place leads below itself."""
        return forall(Place, lambda p: ~self.lower(self.leads_to[p], p))

    @initial
    def start(self) -> None:
        """All items are at the hub, and only the places above it are shut."""
        self.at.fill(self.hub)
        self.shut = self.shut.map(lambda p, _: self.lower(self.hub, p) & self.careful)
        self.touched = self.touched.map(lambda _i, p, _: p == self.hub)

    @action
    def move_together(self, which: SetOf[Item]) -> None:
        """A set of items goes where their places lead, if no such place is shut."""
        require(exists(Item, lambda i: which[i]), "an-item-moves")
        require(
            forall(Item, lambda i: implies(which[i], ~self.shut[self.leads_to[self.at[i]]])),
            "not-into-shut-places",
        )
        self.at = self.at.map(lambda i, here: ite(which[i], self.leads_to[here], here))
        self.touched = self.touched.map(lambda i, p, old: old | (self.at[i] == p))

    @action
    def turn(self, item: Item) -> None:
        """Shut or open an item's place, and forget its other visitors."""
        others = exists(Item, lambda i: (i != item) & (self.at[i] == self.at[item]))
        require(implies(self.careful, ~others))
        self.shut[self.at[item]] = ~self.shut[self.at[item]]
        self.touched = self.touched.map(
            lambda i, p, old: ite((i == item) | (p != self.at[item]), old, self.careful)
        )

    @action
    def visit(self, item: Item, place: Place) -> None:
        """An item goes to a place above its own that something leads to."""
        require(self.lower(self.at[item], place))
        require(exists(Place, lambda p: self.lower(p, place) & (self.leads_to[p] == place)))
        self.at[item] = place
        self.touched[item, self.leads_to[place]] = True

    @invariant("never-below-the-hub")
    def above_hub(self) -> Bool:
        """Nothing is below where it began."""
        return forall(Item, lambda i: ~self.lower(self.at[i], self.hub))

    @invariant("the-lowest-item-is-not-alone")
    def not_alone(self) -> Bool:
        """Some items share a place as long as something is shut; this does not hold."""
        return implies(
            exists(Place, lambda p: self.shut[p]),
            exists(Item, Item, lambda i, j: (i != j) & (self.at[i] == self.at[j])),
        )


class Scales(Model):
    """Items are weighed against each other: a surplus of one is the deficit of the other."""

    weight: Fixed[Item, Int]
    more: Map[Item, Int]

    @initial
    def level(self) -> None:
        """Nothing is on the scales."""
        self.more.fill(0)

    @action
    def weigh(self, item: Item, against: Item) -> None:
        """Say how much more the item weighs, unless it is the lighter one."""
        require(self.weight[item] - self.weight[against] >= 0)
        self.more[item] = self.weight[item] - self.weight[against]

    @invariant("no-more-than-its-weight")
    def no_more(self) -> Bool:
        """An item's surplus over another is at most its weight."""
        return forall(
            Item,
            lambda i: implies(
                forall(Item, lambda j: self.weight[j] >= 0), self.weight[i] - self.more[i] >= 0
            ),
        )

"""Message groups: their owners, permitted subscribers, and how many groups a consumer has."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq import groups
from brokerproof.reference.activemq.groups import (
    BucketGroupMap,
    CachedGroupMap,
    GroupMap,
    GroupRule,
    Membership,
    SimpleGroupMap,
    Taking,
    java_hash,
    membership_of,
)
from brokerproof.reference.shared.copies import copied
from brokerproof.spec.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.spec.messages import PropertyValue

MAPS: dict[str, Callable[[], GroupMap]] = {
    "simple": SimpleGroupMap,
    "bucket": BucketGroupMap,
    "cached": CachedGroupMap,
}
FIRST, TAKEN, REFUSED = Taking.TAKEN_FIRST, Taking.TAKEN, Taking.REFUSED


def taken(rule: GroupRule, text: str) -> list[Taking]:
    """Let consumers take messages, such as ``a:g`` or ``b:h-1``: consumer, group and number."""
    said = []
    for each in text.split():
        consumer, _, message = each.partition(":")
        said.append(rule.take(consumer, Membership(message[0], int(message[1:] or 0))))
    return said


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_a_group_belongs_to_the_consumer_that_takes_its_first_message(
    make: Callable[[], GroupMap],
) -> None:
    rule = GroupRule(make())
    assert taken(rule, "a:g b:g a:g2 b:h a:h b:h") == [FIRST, REFUSED, TAKEN, FIRST, REFUSED, TAKEN]
    assert rule.take("b", None) == TAKEN
    assert (rule.count("a"), rule.count("b"), rule.count("c")) == (1, 1, 0)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_the_number_1_begins_a_group_anew_whichever_consumer_has_it(
    make: Callable[[], GroupMap],
) -> None:
    rule = GroupRule(make())
    assert taken(rule, "a:g b:g1 a:g b:g b:g1") == [FIRST, FIRST, REFUSED, TAKEN, FIRST]
    assert (rule.count("a"), rule.count("b")) == (0, 1)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_a_number_below_0_ends_a_group_for_its_owner_alone(make: Callable[[], GroupMap]) -> None:
    rule = GroupRule(make())
    assert taken(rule, "a:g b:g-1 a:g a:g-1") == [FIRST, REFUSED, TAKEN, TAKEN]
    assert rule.count("a") == 0
    assert taken(rule, "b:g-1 a:g b:g") == [FIRST, REFUSED, TAKEN], "without an owner it begins"


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_the_groups_of_a_consumer_that_leaves_are_free(make: Callable[[], GroupMap]) -> None:
    rule = GroupRule(make())
    taken(rule, "a:g a:h b:i")
    rule.remove_consumer("a")
    rule.remove_consumer("nobody")
    assert rule.count("a") == 0
    assert taken(rule, "b:g b:i a:h") == [FIRST, TAKEN, FIRST]
    assert (rule.count("a"), rule.count("b")) == (1, 2)


class Forgetful(CachedGroupMap):
    """Does not name the consumer that has lost a forgotten group, as before AMQ-5483."""

    __slots__ = ()

    def put(self, group: str, owner: str) -> str | None:
        """Make a consumer the owner."""
        before = self._owners.get(group)
        super().put(group, owner)
        return before


def forgotten_groups_do_not_count(owners: CachedGroupMap) -> None:
    """Demand that a forgotten group counts for no consumer; the map has room for two."""
    rule = GroupRule(owners)
    taken(rule, "a:g a:h b:i")
    assert (rule.count("a"), rule.count("b")) == (1, 1)
    assert taken(rule, "b:g a:h") == [FIRST, FIRST], "each is forgotten for the one before"
    assert (rule.count("a"), rule.count("b")) == (1, 1)


def test_the_group_of_whom_one_is_forgotten_counts_one_less() -> None:
    forgotten_groups_do_not_count(CachedGroupMap(2))
    with pytest.raises(AssertionError):
        forgotten_groups_do_not_count(Forgetful(2))


def test_the_group_asked_for_longest_ago_is_forgotten_also_if_it_was_refused() -> None:
    rule = GroupRule(CachedGroupMap(2))
    assert taken(rule, "a:g a:h b:g b:i") == [FIRST, FIRST, REFUSED, FIRST]
    assert taken(rule, "a:g b:h") == [TAKEN, FIRST]


def test_1024_groups_are_remembered_and_no_more() -> None:
    rule = GroupRule(CachedGroupMap())
    for number in range(1025):
        rule.take("a", Membership(f"g{number}"))
    assert rule.count("a") == 1024
    assert rule.take("b", Membership("g1")) == REFUSED
    assert rule.take("b", Membership("g0")) == FIRST


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
    ],
)
def test_the_hash_of_a_text_is_java_s(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_hash_below_0_has_a_bucket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = BucketGroupMap()
    assert java_hash("polygenelubricants") < 0
    assert owners.bucket_of("polygenelubricants") == 0
    monkeypatch.setattr(groups, "java_hash", lambda _: -1)
    assert owners.bucket_of("any") == 1, "downwards it would be the last bucket"


def test_groups_of_one_bucket_have_one_owner_and_are_freed_together() -> None:
    assert java_hash("Aa") == java_hash("BB")
    for owners, shared in ((BucketGroupMap(), True), (SimpleGroupMap(), False)):
        rule = GroupRule(owners)
        rule.take("a", Membership("Aa"))
        assert rule.take("b", Membership("BB")) == (REFUSED if shared else FIRST)
        rule.take("a", Membership("Aa", -1))
        assert rule.take("c", Membership("BB")) == (FIRST if shared else REFUSED)
        assert rule.count("a") == 0


def one_consumer_from_first_to_last(rule: GroupRule, seed: int) -> int:
    """Demand that a group is taken by one consumer between first flag and end (AMQ-I25).

    A plain dictionary keeps the owners separately; returns how many messages were taken.
    """
    draw = random.Random(seed)  # noqa: S311
    owners: dict[str, str] = {}
    count = 0
    for _ in range(200):
        consumer, group = draw.choice("abc"), draw.choice("ghij")
        number = draw.choice((0, 0, 0, 1, 2, -1))
        if draw.randrange(15) == 0:
            rule.remove_consumer(consumer)
            owners = {group: each for group, each in owners.items() if each != consumer}
            continue
        said = rule.take(consumer, Membership(group, number))
        begins = number == 1 or group not in owners
        assert said == (FIRST if begins else TAKEN if owners[group] == consumer else REFUSED)
        count += said != REFUSED
        if begins:
            owners[group] = consumer
        elif said == TAKEN and number < 0:
            del owners[group]
        counts = Counter(owners.values())
        assert [rule.count(each) for each in "abc"] == [counts[each] for each in "abc"]
    return count


class Sticky(GroupRule):
    """Never closes a group."""

    __slots__ = ()

    def take(self, consumer: str, member: Membership | None) -> Taking:
        """Take the message as one in the middle of its group."""
        if member is not None and member.sequence < 0:
            member = member._replace(sequence=0)
        return super().take(consumer, member)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_from_first_to_last_a_group_is_taken_by_one_consumer(make: Callable[[], GroupMap]) -> None:
    assert all(one_consumer_from_first_to_last(GroupRule(make()), seed) for seed in range(20))
    with pytest.raises(AssertionError):
        one_consumer_from_first_to_last(Sticky(make()), 0)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_a_copy_behaves_alike_and_is_independent(make: Callable[[], GroupMap]) -> None:
    rule = GroupRule(make())
    taken(rule, "a:g b:h")
    name = rule.fingerprint()
    copy = copied(rule)
    assert copy.fingerprint() == name
    assert taken(copy, "b:g a:g-1 b:g") == [REFUSED, TAKEN, FIRST]
    assert (copy.count("a"), copy.count("b")) == (0, 2)
    assert (rule.count("a"), rule.count("b")) == (1, 1)
    assert rule.fingerprint() == name
    assert copy.fingerprint() != name


def test_only_where_groups_are_forgotten_the_order_of_asking_is_in_the_fingerprint() -> None:
    for make, matters in ((SimpleGroupMap, False), (BucketGroupMap, False), (CachedGroupMap, True)):
        rules = [GroupRule(make()) for _ in range(2)]
        taken(rules[0], "a:g b:h")
        taken(rules[1], "b:h a:g")
        assert (rules[0].fingerprint() != rules[1].fingerprint()) == matters


@pytest.mark.parametrize("make", [BucketGroupMap, CachedGroupMap])
def test_a_map_without_room_is_refused(make: Callable[[int], GroupMap]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        make(0)


def test_a_message_says_which_group_it_belongs_to() -> None:
    said: dict[Membership | None, list[dict[str, PropertyValue]]] = {
        None: [{}, {"JMSXGroupID": 7}, {"JMSXGroupSeq": 1}],
        Membership("g", 0): [{"JMSXGroupID": "g"}, {"JMSXGroupID": "g", "JMSXGroupSeq": "1"}],
        Membership("g", -1): [{"JMSXGroupID": "g", "JMSXGroupSeq": -1}],
    }
    for member, messages in said.items():
        for properties in messages:
            assert membership_of(Message(id="m", properties=properties)) == member

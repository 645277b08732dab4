"""The audit of messages: the limit of producers, rollbacks, and ids that are texts."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerproof.reference.activemq.audit import DEPTH, MessageAudit, split_id
from brokerproof.reference.shared.copies import copied
from tests.reference.activemq.release_answers import AUDIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokerproof.reference.activemq.bit_array import AuditRules, BitArrayBin

RULES: tuple[AuditRules, ...] = ("5.1", "5.2")
What: TypeAlias = Literal["is_duplicate", "rollback", "is_in_order", "probe", "first"]
Ask: TypeAlias = tuple[What, str, int]
WHATS: tuple[What, ...] = ("is_duplicate", "is_duplicate", *get_args(What))
ASKS = st.lists(
    st.tuples(st.sampled_from(WHATS), st.sampled_from("abcd"), st.integers(0, 9)), max_size=30
)


def asked(audit: MessageAudit, asks: Sequence[Ask]) -> list[object]:
    """Ask an audit, and return its answers."""
    answers: list[object] = []
    for what, producer, index in asks:
        if what == "first":
            answers.append(audit.first_of(producer))
        else:
            answers.append(getattr(audit, what)(producer, index))
    return answers


@pytest.mark.parametrize("rules", RULES)
def test_what_is_recorded_is_a_duplicate_until_it_is_rolled_back(rules: AuditRules) -> None:
    audit = MessageAudit(DEPTH, 4, rules)
    assert [audit.is_duplicate("p", each) for each in (1, 2, 1)] == [False, False, True]
    audit.rollback("p", 1)
    audit.rollback("nobody", 1)
    assert audit.known() == ("p",), "a rollback makes no producer"
    assert [audit.is_duplicate("p", each) for each in (1, 2)] == [False, True]
    assert not audit.is_duplicate("q", 1)


class Cautious(MessageAudit):
    """Leaves the window where it is when an id above it is rolled back."""

    __slots__ = ()

    def rollback(self, producer: str, index: int) -> None:
        """Take back that an id was recorded, if its number is not above all that were."""
        if index <= self.last_of(producer):
            super().rollback(producer, index)


def a_rollback_leaves_the_window(audit: MessageAudit) -> None:
    """Demand that a rollback changes nothing but the bit of its id (AMQ-I13)."""
    assert not audit.is_duplicate("p", 5)
    first = audit.first_of("p")
    audit.rollback("p", 1000)
    assert audit.first_of("p") == first
    assert audit.is_duplicate("p", 5)


@pytest.mark.parametrize(("rules", "first"), [("5.1", 64), ("5.2", 896)])
def test_a_rollback_far_above_the_window_forgets_what_was_seen(
    rules: AuditRules, first: int
) -> None:
    audit = MessageAudit(63, 4, rules)
    assert not audit.is_duplicate("p", 5)
    audit.rollback("p", 1000)
    assert audit.first_of("p") == first
    below_is_seen = rules == "5.1"
    assert [audit.is_duplicate("p", 5) for _ in range(2)] == [below_is_seen, below_is_seen]
    with pytest.raises(AssertionError):
        a_rollback_leaves_the_window(MessageAudit(63, 4, rules))
    a_rollback_leaves_the_window(Cautious(63, 4, rules))


@pytest.mark.parametrize("rules", RULES)
def test_a_rollback_below_the_window_does_nothing(rules: AuditRules) -> None:
    audit = MessageAudit(0, 4, rules, word_bits=2)
    for number in (0, 1, 2):
        audit.is_duplicate("p", number)
    before = audit.fingerprint()
    audit.rollback("p", 0)
    assert audit.fingerprint() == before


@pytest.mark.parametrize("rules", RULES)
def test_an_audit_answers_as_the_release_did(rules: AuditRules) -> None:
    assert answered(MessageAudit(63, 2, rules), rules)
    other: dict[AuditRules, AuditRules] = {"5.1": "5.2", "5.2": "5.1"}
    assert not answered(MessageAudit(63, 2, rules), other[rules])


def answered(audit: MessageAudit, rules: AuditRules) -> bool:
    """Say whether an audit gives the recorded answers of a release to the same queries."""
    said, expected = [], []
    for line in AUDIT.strip().splitlines():
        asked_for, answers = line.split(" | ")
        expected.append(answers.split()[0 if rules == "5.1" else -1])
        match asked_for.split():
            case ["dup", producer, number]:
                said.append(str(audit.is_duplicate(producer, int(number))).lower())
            case ["ord", producer, number]:
                said.append(str(audit.is_in_order(producer, int(number))).lower())
            case ["roll", producer, number]:
                audit.rollback(producer, int(number))
                said.append("-")
            case [_, number]:
                audit.set_producers(int(number))
                said.append("-")
    assert len(said) == len(expected) == 20
    return said == expected


def model_of_forgetting(asks: Sequence[Ask], most: int) -> list[str]:
    """Return the producers with windows, by last use."""
    known: list[str] = []
    for what, producer, _ in asks:
        if what in {"probe", "first"} or (what == "rollback" and producer not in known):
            continue
        known = [each for each in known if each != producer] + [producer]
        known = known[-most:]
    return known


class ByAge(MessageAudit):
    """Forgets the oldest producer, however recently it was used."""

    __slots__ = ()

    def _asked_for(self, producer: str) -> BitArrayBin:
        return self._bins.get(producer) or super()._asked_for(producer)


@given(asks=ASKS, most=st.integers(1, 3))
@settings(derandomize=True, max_examples=300)
def test_the_producer_asked_for_longest_ago_is_forgotten(asks: list[Ask], most: int) -> None:
    audit = MessageAudit(3, most, "5.2", 2)
    asked(audit, asks)
    assert list(audit.known()) == model_of_forgetting(asks, most)


def test_to_forget_the_oldest_would_be_found_out() -> None:
    asks: list[Ask] = [("is_duplicate", each, 1) for each in "abac"]
    audit, by_age = MessageAudit(3, 2, "5.2", 2), ByAge(3, 2, "5.2", 2)
    asked(audit, asks)
    asked(by_age, asks)
    assert list(audit.known()) == model_of_forgetting(asks, 2) == ["a", "c"]
    assert list(by_age.known()) != model_of_forgetting(asks, 2)


def test_a_forgotten_producer_loses_all_its_history() -> None:
    audit = MessageAudit(DEPTH, 2, "5.2")
    for producer in "abc":
        audit.is_duplicate(producer, 1)
    assert not audit.is_duplicate("a", 1)
    assert audit.known() == ("c", "a")


def test_fewer_producers_are_those_asked_for_last_and_more_are_at_once() -> None:
    audit = MessageAudit(DEPTH, 3, "5.2")
    for producer in "abca":
        audit.is_duplicate(producer, 1)
    audit.set_producers(2)
    assert (audit.producers, audit.known()) == (2, ("c", "a"))
    audit.set_producers(3)
    audit.is_duplicate("d", 1)
    assert audit.known() == ("c", "a", "d")
    with pytest.raises(ValueError, match="at least one producer"):
        audit.set_producers(0)


def test_in_5_1_fewer_producers_are_no_fewer_but_no_more_either() -> None:
    audit = MessageAudit(DEPTH, 3, "5.1")
    for producer in "abca":
        audit.is_duplicate(producer, 1)
    audit.set_producers(1)
    assert audit.known() == ("b", "c", "a")
    audit.is_duplicate("d", 1)
    assert audit.known() == ("c", "a", "d")


def test_a_change_of_depth_affects_producers_that_come_later() -> None:
    audit = MessageAudit(0, 4, "5.2")
    audit.is_duplicate("a", 1)
    audit.depth = 63
    for number in (1, 64):
        audit.is_duplicate("a", number)
        audit.is_duplicate("b", number)
    assert (audit.first_of("a"), audit.first_of("b")) == (64, 0)


@given(asks=ASKS, index=st.integers(0, 30))
@pytest.mark.parametrize("rules", RULES)
@settings(derandomize=True, max_examples=150)
def test_a_probe_says_what_is_duplicate_would_and_changes_nothing(
    rules: AuditRules, asks: list[Ask], index: int
) -> None:
    audit = MessageAudit(3, 2, rules, 2)
    asked(audit, asks)
    before = audit.fingerprint()
    for producer in "abcd":
        probed = audit.probe(producer, index)
        assert audit.fingerprint() == before
        assert copied(audit).is_duplicate(producer, index) == probed


def erasing_probe(audit: MessageAudit, producer: str, index: int) -> bool:
    """Look as later releases do: record, and roll back."""
    was = audit.is_duplicate(producer, index)
    audit.rollback(producer, index)
    return was


def test_a_probe_by_record_and_rollback_erases_what_was_there() -> None:
    audit, other = MessageAudit(3, 2, "5.2"), MessageAudit(3, 2, "5.2")
    assert not audit.is_duplicate("p", 1)
    assert not other.is_duplicate("p", 1)
    assert [audit.probe("p", 1) for _ in range(2)] == [True, True]
    assert [erasing_probe(other, "p", 1) for _ in range(2)] == [True, False]


@given(asks=ASKS, after=ASKS)
@pytest.mark.parametrize("rules", RULES)
@settings(derandomize=True, max_examples=100)
def test_a_copy_behaves_alike_and_is_independent(
    rules: AuditRules, asks: list[Ask], after: list[Ask]
) -> None:
    audit = MessageAudit(3, 2, rules, 2)
    asked(audit, asks)
    before = audit.fingerprint()
    copy, other = copied(audit), copied(audit)
    assert asked(copy, after) == asked(other, after)
    assert copy.fingerprint() == other.fingerprint()
    assert audit.fingerprint() == before
    audit.clear()
    assert audit.known() == ()


def test_audits_that_differ_have_other_fingerprints() -> None:
    audits = [MessageAudit(*each) for each in itertools.product((3, 4), (2, 3), RULES, (2, 4))]
    for producers in ("ab", "ba", "aa"):
        audit = MessageAudit(3, 2, "5.2", 2)
        for producer in producers:
            audit.is_duplicate(producer, 1)
        audits.append(audit)
    assert len({audit.fingerprint() for audit in audits}) == len(audits)


def test_numbers_of_a_producer_are_in_order_or_not() -> None:
    audit = MessageAudit(3, 2, "5.2")
    said = [audit.is_in_order(*each) for each in (("a", 4), ("b", 1), ("a", 5), ("b", 3))]
    assert said == [True, True, True, False]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ID:host-33-1:2:1:1:17", ("ID:host-33-1:2:1:1:", 17)),
        (":0", (":", 0)),
        ("a::07", ("a::", 7)),
    ],
)
def test_an_id_is_split_behind_its_last_colon(text: str, parts: tuple[str, int]) -> None:
    assert split_id(text) == parts


@pytest.mark.parametrize("text", ["", "17", "a:", "a:b", "a:-1", "a:1 ", "a:\u0661"])
def test_what_has_no_number_there_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="a colon and a number"):
        split_id(text)

"""Selectors as texts of JMS."""

from __future__ import annotations

import pytest

from brokerproof.candidates.wire.selectors import jms_selector
from brokerproof.spec.protocol.operations import Selector


def test_each_type_has_its_literal() -> None:
    selector: Selector = {"a": "it's", "b": 1, "c": 1.5, "d": True, "e": False}
    expected = "a = 'it''s' AND b = 1 AND c = 1.5 AND d = TRUE AND e = FALSE"
    assert jms_selector(selector) == expected


@pytest.mark.parametrize("name", ["not", "NULL", "1a", "a-b", "", "escape", "ä"])
def test_a_name_that_is_no_identifier_has_no_selector(name: str) -> None:
    assert jms_selector({name: 1}) is None

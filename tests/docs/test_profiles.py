"""The guide to profiles names every setting, so that no error points to a page without it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from brokerproof.candidates.amqp091 import dialect as amqp091
from brokerproof.candidates.stomp import dialect as stomp
from brokerproof.candidates.wire.profile import OnDisk, RoundTrips, Silence

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "profiles.md").read_text(encoding="utf-8")
NAMED = frozenset(re.findall(r"`([a-z0-9_]+)`", PAGE.replace(" = ", "` `")))


def unnamed(*forms: type) -> set[str]:
    """Return the settings of some tables that the page does not name."""
    return {name for form in forms for name in form.__struct_fields__} - NAMED  # type: ignore[attr-defined]


def test_each_setting_is_named() -> None:
    assert unnamed(stomp.Dialect, amqp091.Dialect, OnDisk, RoundTrips, Silence) == set()


@pytest.mark.skipif(find_spec("proton") is None, reason="the client of AMQP 1.0 is not here")
def test_each_setting_of_amqp_1_0_is_named() -> None:
    from brokerproof.candidates.amqp10.dialect import Dialect  # noqa: PLC0415 - may not be here

    assert unnamed(Dialect) == set()


def test_a_setting_that_is_not_named_is_noticed() -> None:
    class Odd(OnDisk, frozen=True, kw_only=True):
        oddly_s: float = 0.0

    assert unnamed(Odd) == {"oddly_s"}

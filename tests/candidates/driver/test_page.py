"""The page of driver protocol 1 says what the types say, and its example session is a real one."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest

from brokerproof.candidates.driver.page import page_made_anew, tables
from brokerproof.candidates.driver.self_check import SelfCheck
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX, REQUESTS
from tests.candidates.driver.driver_session import DRIVER, HOUSE, SESSION, as_values, recorded

PAGE = HOUSE / "docs" / "reference" / "protocol.md"
RULES = 66


def page() -> str:
    """Return the published page."""
    return PAGE.read_text("utf-8")


def session() -> list[str]:
    """Return the lines of the published session."""
    return SESSION.read_text("utf-8").splitlines()


def test_the_tables_of_the_page_are_those_of_the_types() -> None:
    hint = "python -m brokerproof.candidates.driver.page docs/reference/protocol.md"
    assert page() == page_made_anew(page(), SESSION.read_text("utf-8")), hint


def test_the_page_has_every_table() -> None:
    assert set(re.findall(r"<!-- made: (\w+) -->", page())) == {*tables(), "session"}


@pytest.mark.parametrize("name", [*tables(), "session"])
def test_a_page_that_has_parted_from_the_types_is_found_out(name: str) -> None:
    before = f"<!-- made: {name} -->\n"
    wrong = page().replace(before, f"{before}| one line more |\n")
    assert wrong != page()
    assert page_made_anew(wrong, SESSION.read_text("utf-8")) == page()


def test_every_operation_and_every_claim_is_in_the_tables() -> None:
    rows = {
        name: [line.split("|")[1].strip(" `") for line in t[2:]] for name, t in tables().items()
    }
    assert rows["operations"] == list(REQUESTS)
    assert rows["claims"] == list(Capabilities.__struct_fields__)
    assert rows["events"][0] == "delivered"
    assert len(rows["errors"]) == 5


def test_the_rules_keep_their_numbers() -> None:
    rules = page().partition("## The rules by number")[2]
    assert [int(n) for n in re.findall(r"^(\d+)\. ", rules, re.MULTILINE)] == [*range(1, RULES + 1)]


def test_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"16 MiB ({LINE_BYTES_MAX} bytes" in page()


# The session.


def test_the_session_is_what_the_example_driver_answers() -> None:
    assert recorded(sys.executable, str(DRIVER)) == session()


def test_the_requests_of_the_session_are_ours() -> None:
    check = SelfCheck()
    for number, request in enumerate(session()[::2]):
        check.before(request.encode() + b"\n")
        check.after()
        assert json.loads(request)["id"] == number
    asked, answered = (as_values(session()[first::2]) for first in (0, 1))
    assert [each["id"] for each in asked] == [each["id"] for each in answered]


def test_the_session_shows_the_kinds_of_answers() -> None:
    text = "\n".join(session())
    for shown in ('"redelivered": true', '"refused"', '"unsupported"', '"consumer": null'):
        assert shown in text


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_other_example_says_the_same() -> None:
    other = as_values(recorded("node", str(DRIVER.with_suffix(".mjs"))))
    hello, *rest = as_values(session())[1:]
    assert other[2:] == rest
    assert hello | {"name": "example-node"} == other[1]

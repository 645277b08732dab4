"""Page and schema of histories say what the types say, and the page's example is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from brokerproof.pipeline.history_page import (
    FIELDS,
    RULES_FILE,
    SCHEMA_FILE,
    in_words,
    is_proved,
    page_made_anew,
    schema,
    tables,
)
from brokerproof.pipeline.readers import sources
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.histories import MUST_HAVE, Record

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "histories.md").read_text("utf-8")
PAGES = (PAGE, (DOCS / "reference" / RULES_FILE).read_text("utf-8"))
COMMAND = "python -m brokerproof.pipeline.history_page docs/reference/histories.md"


@pytest.mark.parametrize("page", PAGES, ids=["histories", "rules"])
def test_the_tables_of_the_page_are_those_of_the_types(page: str) -> None:
    assert page_made_anew(page) == page, COMMAND


def test_the_pages_have_every_table() -> None:
    assert re.findall(r"<!-- made: (\w+) -->", "".join(PAGES)) == list(tables())


@pytest.mark.parametrize("name", tables())
def test_a_page_that_has_parted_from_the_types_is_found_out(name: str) -> None:
    mark = f"<!-- made: {name} -->\n"
    [page] = [each for each in PAGES if mark in each]
    wrong = page.replace(mark, f"{mark}| one line more |\n")
    assert page_made_anew(wrong) == page


def test_every_field_and_every_kind_is_in_the_tables() -> None:
    rows = {
        name: [line.split("|")[1].strip(" `") for line in lines[2:]]
        for name, lines in tables().items()
    }
    assert rows["fields"] == list(FIELDS) == list(Record.__struct_fields__)
    assert rows["kinds"] == list(MUST_HAVE)
    assert rows["forms"] == list(sources.SOURCES)


def test_a_formula_is_told_in_words_and_known_to_be_proved() -> None:
    rule = RULES["overtakes-what-waits"]
    assert rule.formula is not None
    assert in_words(rule.formula) == "`early.begun < late.given` and `late.given < early.left`"
    assert is_proved(rule)
    assert not is_proved(RULES["overtakes-what-waits-in-a-stream"])


def test_the_published_schema_is_that_of_the_types() -> None:
    assert (DOCS / "reference" / SCHEMA_FILE).read_bytes() == schema(), COMMAND


def test_the_schema_has_what_each_kind_must_have() -> None:
    record = json.loads(schema())["$defs"]["Record"]
    assert record["additionalProperties"] is False
    assert record["required"] == ["op", "start"]
    asked = {
        rule["if"]["properties"]["op"]["const"]: tuple(rule["then"]["required"])
        for rule in record["allOf"]
    }
    assert asked == {kind: fields for kind, fields in MUST_HAVE.items() if fields}


def test_the_example_of_the_page_is_a_history(tmp_path: Path) -> None:
    [example] = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    path = tmp_path / "example.jsonl"
    path.write_text(example)
    found = list(sources.read(path))
    assert [type(each) for each in found] == [Record] * 5

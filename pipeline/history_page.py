"""The tables of the published pages about histories and their rules, and the schema.

Page and types cannot diverge: each generated table stands between two marks in
docs/reference/histories.md or history-rules.md, and a test compares it. With the first of them as
argument, both pages and the schema are written anew:

    python -m brokerproof.pipeline.history_page docs/reference/histories.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import msgspec

from brokerproof.models.contract import history_of_contract, lemmas
from brokerproof.models.contract.history import Rule, Span, WaitingInterval
from brokerproof.pipeline.intervals.table import GETS
from brokerproof.pipeline.readers import rejected_rows
from brokerproof.pipeline.readers.sources import SOURCES
from brokerproof.pipeline.rules.history_rules import BEYOND_GETS, RULES, Case, HistoryRule
from brokerproof.pipeline.tables import COLUMNS, Column
from brokerproof.spec.histories import MEANINGS, MUST_HAVE, NEVER, VERSION, Kind, Record

SCHEMA_FILE: Final = "history.schema.json"
RULES_FILE: Final = "history-rules.md"

FIELDS: Final[dict[str, str]] = {
    "op": "which kind of record this is",
    "run": "which run of a broker it is about; nothing goes from one to another",
    "queue": "which queue",
    "message": "which message; a name is given once in a queue of a run",
    "producer": "the producer that published it",
    "consumer": "the receiver: a consumer, a browser, or a get, which has a name of its own",
    "channel": "the channel of the consumer or the get, whose end returns what they hold",
    "start": "the earliest moment at which it can have happened",
    "end": "the latest one; of a delivery, when it was seen; none for what was never answered",
    "position": "the number of the delivery to its consumer, from 0; of a settlement, that of its "
    "delivery",
    "priority": "the message's priority; the higher one is the more urgent. Say it always: "
    "RabbitMQ takes a message without a priority for one of 0",
    "size": "the length of the message's body in bytes",
    "persistent": "whether the message is to survive a crash",
    "redelivered": "whether the broker said that the message had been delivered before",
    "mode": "how a consumer takes: it settles, the broker settles for it, or it only looks",
    "window": "how many unsettled messages a consumer may hold; null, and 0 as AMQP 0-9-1 has it, "
    "without a limit",
    "levels": "how many levels of priority a queue has, null where it is first in, first out; "
    "a priority beyond the highest level is of that. A queue of RabbitMQ has one more than its "
    "x-max-priority says: 11 for 10",
    "durable": "whether a queue is to survive a crash",
    "returns": "whether a returned message takes its place back, or any other",
    "lease": "how long a queue lets a message be held, in the unit of the times; null for as long "
    "as the holder likes",
    "unordered": "whether a queue promises no order",
    "may_drop": "whether a queue may drop messages by itself, such as those that expire",
    "selective": "whether a consumer takes some messages only",
    "outcome": "`ok`: it happened; `failed`: it did not; `unknown`: it may have",
}


def tables() -> dict[str, list[str]]:
    """Return the lines of each table by its name."""
    rules = RULES.values()
    return {
        "fields": _table(("field", "value", "if missing", "meaning"), _fields()),
        "kinds": _table(("`op`", "must have", "meaning"), _kinds()),
        "categories": _table(("category", "a row that"), _categories()),
        "forms": _table(("form", "what it is", "behind the name"), _forms()),
        "one": _rules(e for e in rules if e.sides is None and not e.by_time),
        "two": _rules(e for e in rules if e.sides is not None and not e.each_moment),
        "moments": _rules(e for e in rules if e.each_moment),
        "time": _rules(e for e in rules if e.by_time),
        "excuses": _table(("requirement", "a case is excused by"), _excuses()),
    }


def page_made_anew(page: str) -> str:
    """Return a page with its tables generated anew; raises `KeyError` for an unknown one."""
    known = tables()

    def made(mark: re.Match[str]) -> str:
        return "\n".join([mark["begin"], *known[mark["name"]], mark["end"]])

    pattern = r"(?P<begin><!-- made: (?P<name>\w+) -->)\n.*?(?P<end><!-- end -->)"
    return re.sub(pattern, made, page, flags=re.DOTALL)


def schema() -> bytes:
    """Return the JSON schema of a line of a history, with the required fields of each kind."""
    made = msgspec.json.schema(Record)
    record = made["$defs"]["Record"]
    record["allOf"] = [
        {"if": {"properties": {"op": {"const": kind}}}, "then": {"required": list(fields)}}
        for kind, fields in MUST_HAVE.items()
        if fields
    ]
    for name, meaning in FIELDS.items():
        record["properties"][name]["description"] = meaning
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"brokerproof history, version {VERSION}: a line after the header",
        **made,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    every = [headings, ("---",) * len(headings), *rows]
    return [f"| {' | '.join(row)} |" for row in every]


def _fields() -> Iterator[tuple[str, ...]]:
    for column in COLUMNS.values():
        default = msgspec.json.encode(column.default).decode()
        missing = "required" if column.required else f"`{default}`"
        yield f"`{column.name}`", _value(column), missing, FIELDS[column.name]


def _value(column: Column) -> str:
    """Return the allowed values of a column in a few words."""
    words = {
        "text": f"{column.least} to {column.most} characters",
        "time": f"nanoseconds or steps, {column.least} to 2^62-1",
        "count": f"{column.least} to {column.most}".replace(str(2**31 - 1), "2^31-1"),
        "truth": "true or false",
    }[column.content]
    assert column.content != "time" or column.most == NEVER - 1
    if column.name == "op":
        words = "a kind, see below"
    elif column.values:
        words = " or ".join(f"`{each}`" for each in column.values)
    return f"{words}, or null" if column.optional else words


def _kinds() -> Iterator[tuple[str, ...]]:
    for kind, meaning in MEANINGS.items():
        yield f"`{kind}`", _must_have(kind), meaning


def _must_have(kind: Kind) -> str:
    return ", ".join(f"`{field}`" for field in MUST_HAVE[kind]) or "nothing more"


def _categories() -> Iterator[tuple[str, ...]]:
    yield from rejected_rows.MEANINGS.items()


def _forms() -> Iterator[tuple[str, ...]]:
    for source in SOURCES.values():
        yield f"`{source.name}`", source.meaning, source.argument or "nothing"


def _rules(rules: Iterator[HistoryRule]) -> list[str]:
    headings = ("rule", "wrong is", "asked of", "requirement")
    return _table(headings, map(_rule, rules))


def _rule(rule: HistoryRule) -> tuple[str, ...]:
    wrong = rule.wrong or (in_words(rule.formula) if rule.formula is not None else "")
    name = f"`{rule.name}`" + (" †" if is_proved(rule) else "")
    return name, wrong, rule.asked_of, "; ".join(map(_case, rule.cases))


def _case(case: Case) -> str:
    return f"`{case.requirement}`" + (f" {case.when}" if case.when else "")


def _excuses() -> Iterator[tuple[str, ...]]:
    of: dict[str, list[str]] = {}
    for case in (case for rule in RULES.values() for case in rule.cases):
        of.setdefault(case.requirement, []).extend(case.excused)
    for case in RULES[BEYOND_GETS].cases:
        of[case.requirement].append(GETS)
    for requirement, causes in of.items():
        if causes:
            yield f"`{requirement}`", ", ".join(causes)


def is_proved(rule: HistoryRule) -> bool:
    """Return whether a theorem about the contract has the formula of a rule."""
    theorems = (*vars(history_of_contract).values(), *vars(lemmas).values())
    return rule.formula is not None and any(each is rule.formula for each in theorems)


@dataclass(frozen=True)
class _Words:
    """A time or a comparison in words, for a fourth reading of the formulas."""

    text: str

    def __lt__(self, other: _Words) -> _Words:
        return _Words(f"`{self.text} < {other.text}`")

    def __and__(self, other: _Words) -> _Words:
        return _Words(f"{self.text} and {other.text}")


def in_words(formula: Rule) -> str:
    """Return the comparisons of a formula as a reader sees them."""

    def interval(side: str) -> WaitingInterval:
        times = [_Words(f"{side}.{each.name}") for each in fields(WaitingInterval)]
        return WaitingInterval(*(Span(each, each) for each in times))

    said: _Words = formula.shown_by(interval("late"), interval("early"))
    return said.text


def main() -> None:
    """Print the tables, or write them into the pages, with the schema beside the given one."""
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        for each in (page, page.with_name(RULES_FILE)):
            each.write_text(page_made_anew(each.read_text("utf-8")), encoding="utf-8")
        page.with_name(SCHEMA_FILE).write_bytes(schema())
        return
    for name, lines in tables().items():
        sys.stdout.write("\n".join([f"{name}:", *lines, "", ""]))


if __name__ == "__main__":
    main()

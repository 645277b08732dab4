"""The tables of the published page of driver protocol 1, printed from the types in `spec/`.

The tables are parts of docs/reference/protocol.md between two marks each. A test compares them with
the types; with the page as argument, this command writes them anew:

    python -m brokerproof.candidates.driver.page docs/reference/protocol.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import inspect as types

from brokerproof.spec.messages import NUMBER_MAX, Credit, Message, Order
from brokerproof.spec.protocol.answers import DEFINITE, ErrorCode
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import differences
from brokerproof.spec.protocol.driver import (
    EVENTS,
    NAME_CHARACTERS_MAX,
    OPERATIONS,
    REQUESTS,
    SayHello,
    Shape,
    exact,
)

SESSION_LINES = 18

ERRORS: dict[ErrorCode, str] = {
    "unsupported": "what is asked is not claimed",
    "refused": "unknown queue, consumer or delivery; name in use; bad value; broker down",
    "timeout": "the outcome is not known; the effect may come at any time until the next drain",
    "internal": "something failed inside; the outcome is not known either",
    "crashed": "the broker went down during the operation, by itself",
}

CLAIMS: dict[str, str] = {
    "orders": "orders of a queue that `declare` takes; the core asks for `fifo`",
    "priority_levels": "the largest number of levels, 1 to 10; every smaller one is taken too",
    "priority_mapping": "which level a priority falls into; see below",
    "modes": "what consumers may be; gets are `automatic` only where that is named",
    "credit": "which windows are kept: of `messages`, of `bytes`; whether `credit` may `change` a "
    "consumer's, and set those of a `channel`",
    "selectors": "consumers may select by properties",
    "consumer_priority": "consumers may have priorities",
    "durable": "queues and messages survive a crash",
    "auto_delete": "queues may go with their last consumer",
    "auto_close": "consumers may end with their queue",
    "get": "messages can be taken one at a time",
    "browse": "true exactly when `modes` names `browse`",
    "release_position": "where a returned message goes: see rule 14; "
    "null: no order is asked of what was returned",
    "release": "how messages go back: `each` by its own release, only `by_leaving`, or `none`: see "
    "rule 60",
    "cancel": "what a cancelled consumer holds: it `keeps` it, or the queue `returns` it to others",
    "close": "whether a closing channel returns all messages at once or `each` in its turn",
    "reject": "`reject` is taken",
    "browser": "whether a browser sees arrivals, or a `snapshot` of when it came",
    "browser_sees": "whether a browser is shown what consumers hold, too",
    "order_within": "whether persistent and other messages share one order",
    "oversize": "when a message larger than the window of bytes goes: see rule 5",
    "event_order": "whether the order of events of different consumers means anything",
    "inspect": "for candidates in this process; a driver's claim is taken for false",
    "multi_queue": "a consumer may take from several queues",
    "exclusive": "a consumer may keep others from its queue",
    "flush": "`flush` is taken",
    "get_modes": "how gets settle; null: as consumers do, `automatic` only where `modes` names it",
    "settle_by": "what a settlement names: one delivery, or its message however it is held",
    "redelivered": "whether deliveries tell that they are repeated, or how often",
    "clock": "`advance` is taken",
    "delay": "`not_before_s` of a publish is taken",
    "expiry": "`expires_s` of a publish is taken",
    "tolerance_s": "how far the broker's clock may be ahead of what `advance` says",
    "lease": "messages are held for `lease_s` only; whether the end of a lease is told",
    "extend": "a lease can be renewed",
    "delivery_limit": "`deliveries` of a queue is taken",
    "dead_letters": "which messages go to the queue of dead letters",
    "delayed_release": "`delay_s` of a release is taken",
    "length_limit": "what a queue of limited `length` does when it is full",
    "groups": "`group` of a message is taken",
    "parks": "a publish may be parked by flow control",
    "purge": "`purge` is taken",
    "purge_takes": "whether a purge drops what consumers hold, too",
    "delete": "`delete` is taken",
    "deletion_told": "consumers are told that their queue was deleted",
    "overlap": "answers may come out of order ○",
}


def tables() -> dict[str, list[str]]:
    """Return the lines of each table by its name."""
    return {
        "operations": _table(("operation", "fields", "meaning"), _operations()),
        "objects": _table(("object", "fields", "meaning"), _objects()),
        "events": _table(("event", "fields", "meaning"), _events()),
        "errors": _table(("code", "it happened?", "when"), _errors()),
        "claims": _table(("claim", "value", "if missing", "meaning"), _claims()),
        "differences": _table(("claim", "meaning", "weakens", "by right of"), _differences()),
    }


def page_made_anew(page: str, session: str) -> str:
    """Return a page with its tables, and the beginning of a recorded session, made anew.

    Raises `KeyError` for a table that is not known.
    """
    known = tables() | {"session": _beginning_of(session)}

    def made(mark: re.Match[str]) -> str:
        return "\n".join([mark["begin"], *known[mark["name"]], mark["end"]])

    pattern = r"(?P<begin><!-- made: (?P<name>\w+) -->)\n.*?(?P<end><!-- end -->)"
    return re.sub(pattern, made, page, flags=re.DOTALL)


def _beginning_of(session: str) -> list[str]:
    lines = session.splitlines()[:SESSION_LINES]
    arrows = [f"{'←' if number % 2 else '→'} {line}" for number, line in enumerate(lines)]
    return ["```", *arrows, "```"]


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    every = [headings, ("---",) * len(headings), *rows]
    return [f"| {' | '.join(row)} |" for row in every]


def _operations() -> Iterator[tuple[str, ...]]:
    shapes: tuple[Shape, ...] = (SayHello, *OPERATIONS)
    for plain in shapes:
        name = str(plain.__struct_config__.tag)
        yield f"`{name}`", _fields(REQUESTS[name]), _meaning(plain)


def _objects() -> Iterator[tuple[str, ...]]:
    for value in (Message, Credit):
        yield value.__name__.lower(), _fields(exact(value)), _meaning(value)
    orders: tuple[Shape, ...] = get_args(Order)
    for order in orders:
        kind = order.__struct_config__.tag
        yield f"order of `kind` `{kind}`", _fields(exact(order)), _meaning(order)


def _events() -> Iterator[tuple[str, ...]]:
    for plain in EVENTS:
        yield f"`{plain.__struct_config__.tag}`", _fields(exact(plain)), _meaning(plain)


def _errors() -> Iterator[tuple[str, ...]]:
    for one_of in get_args(ErrorCode):
        for code in get_args(one_of):
            yield f"`{code}`", "no" if code in DEFINITE else "perhaps", ERRORS[code]


def _claims() -> Iterator[tuple[str, ...]]:
    for each in _struct(Capabilities).fields:
        missing = msgspec.json.encode(each.default).decode()
        yield f"`{each.name}`", _value(each.type), f"`{missing}`", CLAIMS[each.name]


def _differences() -> Iterator[tuple[str, ...]]:
    for each in differences().values():
        value = each.value if isinstance(each.value, str) else str(each.value).lower()
        weakened = ", ".join(f"`{name}`" for name in each.weakens)
        by = "; ".join(map(str, each.sources))
        yield f"`{each.claim}: {value}`", each.sentence, weakened, by


def _meaning(plain: Shape) -> str:
    """Return the first sentence of a type's description."""
    text = " ".join((plain.__doc__ or "").split("\n\n")[0].split())
    return f"{text[0].lower()}{text[1:]}".rstrip(".").replace("None", "null")


def _struct(shape: Shape) -> types.StructType:
    found = types.type_info(shape)
    assert isinstance(found, types.StructType)
    return found


def _fields(shape: Shape) -> str:
    """Return the fields of a form on the wire, without its id."""
    fields = [each for each in _struct(shape).fields if not _is_request_id(each)]
    return "; ".join(f"`{each.name}`: {_value(each.type)}" for each in fields) or "none"


def _is_request_id(each: types.Field) -> bool:
    return each.name == "id" and isinstance(each.type, types.IntType)


def _value(kind: types.Type) -> str:
    """Return the possible values of a type in a few words."""
    match kind:
        case types.UnionType(types=alternatives):
            orders = [each for each in alternatives if isinstance(each, types.StructType)]
            if orders:
                return "an order"
            return " or ".join(_value(each) for each in alternatives)
        case types.NoneType():
            return "null"
        case types.BoolType():
            return "true or false"
        case types.StrType(max_length=length):
            return "name" if length == NAME_CHARACTERS_MAX else "text"
        case types.IntType(ge=0, le=most) if most == NUMBER_MAX:
            return "number"
        case types.IntType(ge=least, le=most) if least is not None and most is not None:
            ends = f"-2^31 to {NUMBER_MAX}" if least < 0 else f"{least} to {most}"
            return f"{ends.replace(str(NUMBER_MAX), '2^31-1')}"
        case types.IntType():
            return "number"
        case types.LiteralType(values=values):
            return " or ".join(
                str(each) if isinstance(each, int) else f"`{each}`" for each in values
            )
        case types.VarTupleType(item_type=item):
            return "list of names" if isinstance(item, types.StrType) else f"list of {_value(item)}"
        case types.DictType():
            return "properties"
        case types.StructType(cls=cls):
            return f"a {cls.__name__.lower()}"
        case _:
            raise TypeError(f"no words for {kind}")


def main() -> None:
    """Print the tables, or write them into the given page."""
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        session = page.with_name("example-session.jsonl").read_text("utf-8")
        page.write_text(page_made_anew(page.read_text("utf-8"), session), encoding="utf-8")
        return
    for name, lines in tables().items():
        sys.stdout.write("\n".join([f"{name}:", *lines, "", ""]))


if __name__ == "__main__":
    main()

"""The format `text` of RabbitMQ's tracing plugin: blocks of words, with Erlang's terms in them.

A block begins with a line of 80 equals signs. Payloads are not escaped, so such a line in a payload
looks like the end of its block. The format `json` has no such problem.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from brokerproof.pipeline.readers.blocks import blocks

RULE: Final = b"=" * 80
BLOCK_LINES_MAX: Final = 1 << 16
"""Lines of a block beyond this number belong to its payload, and are not kept."""

_HEADING = re.compile(r"^\S+( \S+)?: Message (?P<type>published|received)$")
_FIELD = re.compile(r"^(?P<name>[A-Z][a-z]+(?: [a-z]+)?): *(?P<value>.*)$")
_TERM = re.compile(
    r'(?P<open>[\[{])|(?P<close>[\]}])|<<"(?P<text>(?:[^"\\]|\\.)*)"(?:/utf8)?>>'
    r"|<<(?P<bytes>[0-9, \n]*)>>|(?P<number>-?\d+(?:\.\d+(?:e[+-]?\d+)?)?)"
    r"|(?P<atom>[a-z]\w*)|(?P<between>[,\s]+)"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_NAMES = {
    "Virtual host": "vhost",
    "Connection": "connection",
    "Channel": "channel",
    "Queue": "queue",
    "Routed queues": "routed_queues",
    "Properties": "properties",
}


def is_text_form(lines: list[bytes]) -> bool:
    """Return whether a trace that begins with these lines is in this format."""
    return next((line for line in lines if line.strip()), b"").rstrip() == RULE


def text_rows(path: Path) -> Iterator[tuple[int, dict[str, object] | str]]:
    """Yield the line of each block's heading with its fields, or why they cannot be read."""
    numbered = chain.from_iterable(enumerate(lines, first) for first, lines in blocks(path))
    start, block = 0, list[bytes]()
    for number, line in numbered:
        if line.rstrip() == RULE:
            if start:
                yield start, _fields(block)
            start, block = number + 1, []
        elif start and len(block) < BLOCK_LINES_MAX:
            block.append(line)
    if start:
        yield start, _fields([*block, b""])  # the others end before the blank line of the next


def _fields(block: list[bytes]) -> dict[str, object] | str:
    lines = [line.decode("utf-8", "backslashreplace") for line in block]
    heading = _HEADING.match(lines[0]) if lines else None
    if heading is None:
        return "this is no heading of a traced message"
    found: dict[str, object] = {"type": heading["type"]}
    name = ""
    values: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "Payload:":
            payload = b"\n".join(block[number + 1 :]).removesuffix(b"\n")
            found["payload"] = base64.b64encode(payload).decode()
            break
        if field := _FIELD.match(line):
            name = field["name"]
            values[name] = field["value"]
        elif name:
            values[name] += f"\n{line}"
    else:
        return "the block has no payload"
    try:
        for title, key in _NAMES.items():
            if title in values:
                found[key] = _value(key, values[title])
    except ValueError as error:
        return str(error)
    return found


def _value(key: str, text: str) -> object:
    match key:
        case "channel":
            return int(text)
        case "routed_queues":
            return _term(text)
        case "properties":
            return _table(_term(text))
        case _:
            return text


def _term(text: str) -> object:
    """Return a term as lists, texts and numbers; raises `ValueError`."""
    stack: list[list[object]] = [[]]
    at = 0
    while at < len(text):
        token = _TERM.match(text, at)
        if token is None:
            raise ValueError(f"no Erlang term begins with {text[at : at + 20]!r}")
        at = token.end()
        match token.lastgroup:
            case "open":
                stack.append([])
            case "close" if len(stack) > 1:
                done = stack.pop()
                stack[-1].append(done)
            case "text":
                stack[-1].append(re.sub(r"\\(.)", _unescaped, token["text"], flags=re.DOTALL))
            case "bytes":
                numbers = [int(each) for each in re.findall(r"\d+", token["bytes"])]
                stack[-1].append(bytes(numbers).decode("utf-8", "backslashreplace"))
            case "number":
                number = token["number"]
                stack[-1].append(float(number) if "." in number else int(number))
            case "atom":
                stack[-1].append(token["atom"])
            case "between":
                continue
            case _:
                raise ValueError("brackets of an Erlang term do not match")
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError("this is no single Erlang term")
    return stack[0][0]


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[1])


def _table(term: object) -> dict[str, object]:
    """Return a table of AMQP, a list of name, type and value; raises `ValueError`."""
    table: dict[str, object] = {}
    for entry in term if isinstance(term, list) else [term]:
        match entry:
            case [str(name), str(kind), value]:
                table[name] = _typed(kind, value)
            case _:
                raise ValueError("this is no property of a message")
    return table


def _typed(kind: str, value: object) -> object:
    if kind == "table":
        return _table(value)
    if kind == "array" and isinstance(value, list):
        return [_typed(str(each[0]), each[1]) for each in value if _is_pair(each)]
    return value


def _is_pair(term: object) -> bool:
    return isinstance(term, list) and len(term) == 2

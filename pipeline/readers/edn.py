"""EDN as far as recordings use it: values, and files of maps.

Reads nil, booleans, numbers, strings, characters, keywords, symbols, vectors, lists, sets, maps and
discarded forms; tags are dropped. A string ends on its line, as Clojure prints it. The only Python
library for all of EDN (edn_format) is no longer maintained, and reads some thousands of forms a
second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from brokerproof.pipeline.readers.blocks import TOO_LONG, WHY_TOO_LONG, numbered_lines

DEPTH_MAX: Final = 64
FORM_TOKENS_MAX: Final = 1 << 20
"""A form with more words and brackets has lost its end."""


class Keyword(str):
    """A keyword or a symbol, a keyword with its colon."""

    __slots__ = ()


Value: TypeAlias = "bool | int | float | str | Keyword | list[Value] | dict[str, Value] | None"
"""A value; the keys of a map are texts as `text_of` returns them."""


class Unreadable(ValueError):
    """A text is not EDN; the message is one line."""


_TOKEN = re.compile(
    r"(?:[\s,]++|;.*+)*+"
    r'(?:(?P<word>:?[A-Za-z][\w.*+!?$%&=<>/-]*)|(?P<integer>[+-]?\d+N?(?=[\s,;\])}\[({"]|$))'
    r"|(?P<open>\#\{|[\[({])|(?P<close>[\])}])|(?P<discard>\#_)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")|(?P<character>\\(?:u[0-9A-Fa-f]{4}|[a-z]+|.))'
    r"|(?P<tag>\#[A-Za-z][\w.*+!?$%&=<>/-]*)"
    r"|(?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[NM]?(?=[\s,;\])}\[({\"]|$))"
    r"|(?P<other>[^\s,;\[\](){}\"\\#][^\s,;\[\](){}\"\\]*)|(?P<end>$))"
)
"""A token and the blanks before it; the commonest kinds come first."""

_CLOSING = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_CONSTANTS: Final[dict[str, bool | None]] = {"nil": None, "true": True, "false": False}
_Token: TypeAlias = tuple[str, str]


def forms(path: Path) -> Iterator[tuple[int, Value | Unreadable]]:
    """Yield the forms of a file and their first lines, and an error for each unreadable form.

    If all forms are in one vector or list, its elements are yielded.
    """
    inside = False
    start, tokens, depth = 0, list[_Token](), 0
    for number, line in numbered_lines(path):
        try:
            found = _tokens(line.decode())
        except (Unreadable, UnicodeDecodeError) as error:
            why = WHY_TOO_LONG if line == TOO_LONG else str(error)
            yield start or number, Unreadable(why)
            start, tokens, depth = 0, [], 0
            continue
        if not tokens and (form := _whole(found)) is not None:
            yield number, form
            continue
        for token in found:
            kind, text = token
            if depth == 0 and not tokens:
                start = number
                if not inside and kind == "open" and text in "[(":
                    inside = True
                    continue
                if inside and kind == "close" and text in "])":
                    continue
            tokens.append(token)
            depth += {"open": 1, "close": -1}.get(kind, 0)
            if (depth <= 0 and kind not in {"tag", "discard"}) or len(tokens) > FORM_TOKENS_MAX:
                value = _read(tokens)
                if value is not _NOTHING:
                    yield start, value
                start, tokens, depth = 0, [], 0
    if tokens:
        yield start, Unreadable("the form has no end")


def value_of(text: str) -> Value:
    """Return the value of a text; raises `Unreadable`.

    >>> value_of("{:f :enqueue, :value 3}")
    {':f': ':enqueue', ':value': 3}
    """
    value = _read(_tokens(text))
    if isinstance(value, Unreadable):
        raise value
    return value


def text_of(value: Value) -> str:
    """Return a value as EDN, so that different values have different texts."""
    match value:
        case None:
            return "nil"
        case Keyword():
            return str(value)
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{' '.join(map(text_of, value))}]"
        case dict():
            return f"{{{', '.join(f'{key} {text_of(each)}' for key, each in value.items())}}}"
        case _:
            return str(value)


def _tokens(text: str) -> list[_Token]:
    found = []
    at = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if token.start() != at or kind is None:
            break
        at = token.end()
        if kind != "end":
            found.append((kind, token[kind]))
    if at < len(text):
        raise Unreadable(f"no EDN begins with {text[at : at + 20]!r}")
    return found


_NOTHING: Final = Keyword("#_")
"""The value of a discarded form."""


def _whole(tokens: list[_Token]) -> Value:
    """Return the map on a line, None for anything else."""
    if not tokens or tokens[0] != ("open", "{") or tokens[-1] != ("close", "}"):
        return None
    form = _read(tokens)
    return None if isinstance(form, Unreadable) else form


def _read(tokens: list[_Token]) -> Value | Unreadable:
    """Return the single value of the tokens."""
    waiting = tokens[::-1]
    try:
        value = _next(waiting, 0)
    except Unreadable as error:
        return error
    return Unreadable("there is more than one form") if waiting else value


def _next(waiting: list[_Token], depth: int) -> Value:
    """Return the next value; the waiting tokens are in reverse."""
    if not waiting:
        raise Unreadable("the form has no end")
    if depth > DEPTH_MAX:
        raise Unreadable(f"forms are more than {DEPTH_MAX} deep")
    kind, text = waiting.pop()
    match kind:
        case "word" | "other":
            return _CONSTANTS[text] if text in _CONSTANTS else Keyword(text)
        case "open":
            return _collection(waiting, text, depth + 1)
        case "tag":
            return _next(waiting, depth + 1)
        case "discard":
            _next(waiting, depth + 1)
            return _NOTHING
        case "string":
            return _string(text)
        case "character":
            return text
        case "integer":
            return int(text.rstrip("N"))
        case "number":
            return float(text.rstrip("NM"))
        case _:
            raise Unreadable(f"nothing that {text} could end was begun")


def _collection(waiting: list[_Token], opening: str, depth: int) -> Value:
    values: list[Value] = []
    while not waiting or waiting[-1] != ("close", _CLOSING[opening]):
        value = _next(waiting, depth)
        if value is not _NOTHING:
            values.append(value)
    waiting.pop()
    if opening != "{":
        return values
    if len(values) % 2:
        raise Unreadable("a map has a key without a value")
    keys, of = values[::2], values[1::2]
    return {
        key if type(key) is Keyword else text_of(key): value
        for key, value in zip(keys, of, strict=True)
    }


def _string(text: str) -> str:
    try:
        return str(json.loads(text))
    except json.JSONDecodeError as error:
        raise Unreadable(f"this is no string: {error}") from error

"""A cache of decided results: a folder of small files, keyed by all that a result depends on.

Owns the key: the texts of the deciding function's name and all its inputs, the version of Z3, and
the text of the model language, which contains every such function. A function has no other input,
so a cached result equals a new one. An input without a text is refused, because a list of inputs
kept by hand misses one in the end. The meaning of results is up to the caller.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, MethodType
from typing import TypeVar, cast

import msgspec
import z3

from brokerproof.models.language.core.terms import Enumeration, Symbol, Term

T = TypeVar("T")

FOLDER = Path(".brokerproof") / "proofs"

LANGUAGE = __name__.rsplit(".", 2)[0]
"""The package whose text is part of each key: its functions depend on no other text."""

DOCSTRINGS = "doc"
"""The field of that name does not affect a result."""


class Cache:
    """A folder of results, or none: then every result is decided anew."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def kept(
        self,
        kind: type[T],
        name: str,
        decide: Callable[..., T],
        *given: object,
        **observers: Callable[..., object],
    ) -> T:
        """Return `decide(*given)`, or its cached result; `name` is for readers of the folder.

        Observers follow the progress or divide the work, and do not affect the result. A file that
        cannot be read counts as absent.
        """
        if self._folder is None:
            return decide(*given, **observers)
        known = self.known(kind, name, decide, *given)
        if known is not None:
            return known
        result = decide(*given, **observers)
        path = self._path(name, decide, *given)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(result))
        unfinished.replace(path)
        return result

    def known(self, kind: type[T], name: str, decide: Callable[..., T], *given: object) -> T | None:
        """Return the cached result of `decide(*given)`; None if there is none that can be read."""
        try:
            return msgspec.json.decode(self._path(name, decide, *given).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def _path(self, name: str, decide: Callable[..., object], *given: object) -> Path:
        assert self._folder is not None, "without a folder nothing is kept"
        return self._folder / f"{name}-{key(decide, *given)[:24]}.json"


def key(decide: Callable[..., object], *given: object) -> str:
    """Return the digest of all that a result depends on."""
    texts = [z3.get_version_string(), _own_text(), canonical(decide, *given)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@functools.cache
def _own_text() -> str:
    """Return the digest of the language's own source, which affects every result."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def canonical(*values: object) -> str:
    """Return the full content of these values as a text that depends on nothing else.

    Raises `TypeError` for a value without such a text.
    """
    writer = _Writer()
    said = [writer.text(value) for value in values]
    return "\n".join([*writer.lines, *said])


class _Writer:
    """Writes each different term and symbol once, numbered in the order of first use.

    A set parameter may have the name and the sorts of a symbol of the state, and two variables may
    have one name: their numbers differ.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[Term | Symbol, int] = {}

    def text(self, value: object) -> str:
        """Return the text of a value; for a dataclass, the texts of its fields."""
        if value is None or isinstance(value, str | int):
            return repr(value)
        if isinstance(value, Term):
            return self._numbered(value, self._term)
        if isinstance(value, Symbol):
            return self._numbered(value, self._fields)
        if isinstance(value, type) and issubclass(value, Term):
            return _sort(value)
        if isinstance(value, tuple | list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{self.text(k)}: {self.text(v)}' for k, v in value.items())}}}"
        if dataclasses.is_dataclass(value):
            return self._fields(value)
        if isinstance(value, MethodType):
            return f"{self._function(value.__func__)} of {self.text(value.__self__)}"
        return self._function(value)

    def _numbered(self, value: T, write: Callable[[T], str]) -> str:
        known = cast("Term | Symbol", value)
        if known not in self._numbers:
            said = write(value)
            self._numbers[known] = len(self._numbers)
            self.lines.append(f"{self._numbers[known]} = {said}")
        return f"#{self._numbers[known]}"

    def _term(self, term: Term) -> str:
        payload = term.payload
        if term.op == "variable":
            # The rest of a variable's payload is a serial number of this process.
            payload = cast("tuple[str, int]", payload)[0]
        said = self.text(payload)
        return f"{term.op} {_sort(type(term))} {said} {self.text(term.args)}"

    def _fields(self, value: object) -> str:
        names = [f.name for f in dataclasses.fields(value) if f.name != DOCSTRINGS]  # type: ignore[arg-type]
        fields = [f"{name}={self.text(getattr(value, name))}" for name in names]
        return f"{type(value).__qualname__}({', '.join(fields)})"

    def _function(self, value: object) -> str:
        """Return the name of a function of the language; of others, the name is not the content."""
        if isinstance(value, FunctionType):
            own = value.__module__.startswith(f"{LANGUAGE}.") and value.__closure__ is None
            if own and value.__name__.isidentifier():
                return f"{value.__module__}.{value.__qualname__}"
        raise TypeError(f"{value!r} has no text that says all that it decides: give it as terms")


def _sort(sort: type[Term]) -> str:
    values = f"{sort.values}" if issubclass(sort, Enumeration) else ""
    return f"{sort.__module__}.{sort.__qualname__}{values}"

"""What was decided before, by what it was decided of: a folder of small files.

Owns the key: the text of the deciding function's name and of all that it is given, the version of
Z3, and the text of the model language, where every such function stands. A function sees nothing
else, so a result that is found again is the one that would be decided anew. What has no text is
refused: a list of inputs kept by hand forgets one in the end.
Refuses to know what results mean.
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
"""The package whose text is part of each key: what its functions do needs no other text."""

DOCSTRINGS = "doc"
"""The field of that name decides nothing."""


class Cache:
    """A folder of results, or none: then everything is decided anew."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def kept(
        self,
        kind: type[T],
        name: str,
        decide: Callable[..., T],
        *given: object,
        **observers: Callable[..., None],
    ) -> T:
        """Return `decide(*given)`, or what was kept of it; `name` is for people who look.

        Observers are told of the progress and decide nothing. A file that cannot be read is as good
        as none.
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
        """Return what was kept of `decide(*given)`; None where nothing was that can be read."""
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
    """Return the digest of the language's own source: it decides what a result is."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def canonical(*values: object) -> str:
    """Return all that these values say, in a text that depends on nothing else.

    Raises `TypeError` for what has no such text.
    """
    writer = _Writer()
    said = [writer.text(value) for value in values]
    return "\n".join([*writer.lines, *said])


class _Writer:
    """Each different term, and each symbol, once, by a number that says when it was first met.

    A set parameter may have the name and the sorts of a symbol of the state: their numbers differ.
    So do two variables of one name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[Term | Symbol, int] = {}

    def text(self, value: object) -> str:
        """Return the text of any value: of a dataclass, that of each field."""
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
        """Return the name of a function of the language; no other says all that it does."""
        if isinstance(value, FunctionType):
            own = value.__module__.startswith(f"{LANGUAGE}.") and value.__closure__ is None
            if own and value.__name__.isidentifier():
                return f"{value.__module__}.{value.__qualname__}"
        raise TypeError(f"{value!r} has no text that says all that it decides: give it as terms")


def _sort(sort: type[Term]) -> str:
    values = f"{sort.values}" if issubclass(sort, Enumeration) else ""
    return f"{sort.__module__}.{sort.__qualname__}{values}"

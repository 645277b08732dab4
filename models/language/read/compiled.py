"""The compiled reading: a system in a scope as a search in C, made by the available compiler.

Owns the conversion to C and back. It is made from a `ColumnReading`, has its layout of words and
gives the same counts. Without a compiler, `NoCompilerError` says so in one line, and the search
stays in NumPy.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from brokerproof.models.language.core.overflow import out_of_range
from brokerproof.models.language.core.terms import TRUE
from brokerproof.models.language.read.c_search import HEAD, TAIL
from brokerproof.models.language.read.c_text import CText
from brokerproof.models.language.read.columns import ColumnReading, Words
from brokerproof.models.language.read.word_sets import distinct

FLAGS = ("-O2", "-march=native", "-std=gnu11", "-shared", "-fPIC", "-w")
"""The compiler's options."""

COMPILE_SECONDS = 120
"""The time limit of the compiler."""

AT_ONCE = 1 << 17
"""The number of states expanded in one call, so that Ctrl-C takes effect quickly."""

LOOKED_AT = 1 << 14
"""The number of states that NumPy handles at once when it counts those represented."""

SETTINGS = {"BATCH": 1024, "RECENT": 1 << 14, "AHEAD": 24, "FULL_PERCENT": 80}

NO_SYMMETRY = "static inline void canonical(state *s) { (void)s; }"
"""The function that gives a state its form if there is no symmetry."""


class NoCompilerError(Exception):
    """There is no C compiler, or it cannot compile this source."""


def compiler() -> list[str]:
    """Return the command of the C compiler; raises `NoCompilerError`."""
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoCompilerError(
        "no C compiler (cc, gcc, clang, or ziglang from the extra `fast`): NumPy searches alone"
    )


class CompiledSearch:
    """A search that keeps its states in C; `close` gives their memory back."""

    def __init__(self, reading: ColumnReading, wanted: Iterable[str]) -> None:
        self.source = c_source(reading, set(wanted))
        self.levels: tuple[int, ...] = ()
        self._reading = reading
        self._library = _compiled(self.source)
        self._search = self._library.search_new()
        self._firings = {action.name: 0 for action in reading.system.actions}
        if not self._search:
            raise MemoryError("no memory for a search")

    @property
    def count(self) -> int:
        """The number of states found."""
        return int(self._library.search_count(self._search))

    @property
    def firings(self) -> dict[str, int]:
        """The number of transitions of each action."""
        if not self._search:
            return self._firings
        counts = self._library.search_firings(self._search)
        return {name: n + counts[i] for i, (name, n) in enumerate(self._firings.items())}

    def start(self, words: Words) -> None:
        """Begin with the words of the first level."""
        self.take_over([words], self._firings)

    def take_over(self, levels: Sequence[Words], firings: Mapping[str, int]) -> None:
        """Begin with levels that another search has found; the last is not expanded yet."""
        for level in levels:
            self._add(level)
        self._firings = dict(firings)
        self.levels = tuple(map(len, levels))
        self._library.search_pass(self._search, self.count - len(levels[-1]))

    def level(self, depth: int) -> Words:
        """Return the words of a level, sorted."""
        return distinct([self._words(*self._range(depth))])

    def truncate(self, count: int) -> None:
        """Keep only the smallest words of the last level; no search follows."""
        begin, end = self._range(len(self.levels) - 1)
        self._words(begin, end)[:] = self.level(len(self.levels) - 1)
        self._library.search_truncate(self._search, begin + count)
        self.levels = (*self.levels[:-1], count)

    def advance(self, limit: int | None) -> int:
        """Find the next level and return how many states it has.

        The search may stop once more than `limit` states are found in all. Raises `ModelError` for
        an integer outside of the scope.
        """
        end = self.count
        while self._expand(end) < end:
            if limit is not None and self.count > limit + end:
                break
        new = self.count - end
        self.levels += (new,) if new else ()
        return new

    def first_broken(self) -> tuple[int, Words] | None:
        """Return the earliest invariant that fails in the last level, and its smallest word."""
        counts = self._library.search_broken(self._search)
        numbers = range(len(self._reading.system.invariants))
        number = next((number for number in numbers if counts[number]), None)
        if number is None:
            return None
        begin, end = self._range(len(self.levels) - 1)
        place = self._library.search_least_broken(self._search, begin, end, number)
        # The limit may have cut off a state that fails.
        return None if place < 0 else (number, self._words(place, place + 1).copy())

    def stuck(self) -> Words | None:
        """Return the smallest word of the last level without a successor."""
        return self._least_origin(len(self.levels) - 1, None)

    def origin(self, depth: int, target: Words) -> Words:
        """Return the smallest word of a level that leads to the target in one transition."""
        word = self._least_origin(depth, np.ascontiguousarray(target).ctypes.data)
        assert word is not None, "a word of a level has no origin in the level before"
        return word

    def _least_origin(self, depth: int, target: int | None) -> Words | None:
        """Return the smallest word of a level that leads to a target or, without one, nowhere."""
        firings = self.firings
        place = self._library.search_origin(self._search, *self._range(depth), target)
        # States that are expanded again do not count again.
        self._library.search_forget_firings(self._search)
        self._firings = firings
        return None if place < 0 else self._words(place, place + 1).copy()

    def stands_for(self) -> int:
        """Return the number of states that the found states represent under symmetry."""
        canonical, count = self._reading.canonical, self.count
        if canonical is None:
            return count
        parts = (self._words(at, min(at + LOOKED_AT, count)) for at in range(0, count, LOOKED_AT))
        return sum(map(canonical.stands_for, parts))

    def close(self) -> None:
        """Give the memory back; the counts stay."""
        if self._search:
            self._firings = self.firings
            self._library.search_free(self._search)
            self._search = None

    def _add(self, words: Words) -> None:
        words = np.ascontiguousarray(words)
        if self._library.search_add(self._search, words.ctypes.data, len(words)) < 0:
            raise MemoryError(f"no memory for {self.count + len(words):,} states")

    def _expand(self, end: int) -> int:
        """Expand some of the states before `end`; return the number expanded in all."""
        done = int(self._library.search_expand(self._search, end, AT_ONCE))
        if done == -1:
            raise MemoryError(f"no memory for more than {self.count:,} states")
        if done == -2:
            cell = self._reading.cells[self._library.search_outside_cell(self._search)]
            low = self._reading.places[cell].low
            value = self._library.search_outside_value(self._search)
            high = low + len(self._reading.scope.integers) - 1
            raise out_of_range(cell.symbol.name, value, low, high)
        return done

    def _range(self, depth: int) -> tuple[int, int]:
        begin = sum(self.levels[:depth])
        return begin, begin + self.levels[depth]

    def _words(self, begin: int, end: int) -> Words:
        """Return a view of the states in that range, valid until the next step."""
        start = self._library.search_states(self._search)
        width = self._reading.words
        shape = (self.count,) if width == 1 else (self.count, width)
        whole: Words = np.ctypeslib.as_array(start, shape)
        return whole[begin:end]


def c_source(reading: ColumnReading, wanted: set[str]) -> str:
    """Return the whole text in C, which checks only the wanted invariants."""
    actions = [action.name for action in reading.system.actions]
    text = CText(reading.scope, reading.places, actions)
    invariants = [
        term if statement.name in wanted else TRUE
        for statement, term in zip(
            reading.system.invariants, reading.ground_invariants, strict=True
        )
    ]
    sizes = {
        "WORDS": reading.words,
        "ACTIONS": len(actions),
        "INVARIANTS": len(invariants),
        "SUCCESSORS": len(reading.instances) + 1,
        **SETTINGS,
    }
    defines = "\n".join(f"#define {name} {value}" for name, value in sizes.items())
    functions = [text.expand(reading.instances), text.broken(invariants)]
    canonical = reading.canonical.c_text() if reading.canonical else NO_SYMMETRY
    return "\n".join([defines, HEAD, *functions, canonical, TAIL])


def _compiled(source: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="brokerproof-") as folder:
        text, library = Path(folder) / "search.c", Path(folder) / "search.so"
        text.write_text(source, encoding="ascii")
        command = [*compiler(), *FLAGS, "-o", str(library), str(text)]
        try:
            # The command is the user's own compiler, its input printed from terms.
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoCompilerError(f"{command[0]} did not compile: {error}") from error
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            reason = (lines or ["no message"])[0]
            raise NoCompilerError(f"{command[0]} did not compile: {reason}")
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            raise NoCompilerError(f"what {command[0]} made does not load: {error}") from error
    _declare(loaded)
    return loaded


def _declare(library: ctypes.CDLL) -> None:
    search, i64, u64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
    words, counts = ctypes.POINTER(u64), ctypes.POINTER(i64)
    signatures: dict[str, tuple[object, list[object]]] = {
        "new": (search, []),
        "free": (None, [search]),
        "add": (i64, [search, ctypes.c_void_p, u64]),
        "pass": (None, [search, u64]),
        "truncate": (None, [search, u64]),
        "forget_firings": (None, [search]),
        "expand": (i64, [search, u64, u64]),
        "least_broken": (i64, [search, u64, u64, ctypes.c_int]),
        "origin": (i64, [search, u64, u64, ctypes.c_void_p]),
        "count": (i64, [search]),
        "states": (words, [search]),
        "firings": (counts, [search]),
        "broken": (counts, [search]),
        "outside_cell": (ctypes.c_int, [search]),
        "outside_value": (i64, [search]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"search_{name}")
        function.restype, function.argtypes = result, arguments

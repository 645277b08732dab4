"""A candidate that is an object in this process, named ``package.module:factory``.

The file finds the factory, calls it and checks that its result is usable. It does not know what the
object does with an operation. Any failure, in our lookup or in the candidate's own code, raises
`CandidateUnavailable` with its cause chained; one that the candidate raises itself is passed on.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.spec.protocol.capabilities import Hello

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from brokerproof.spec.protocol.candidate import Candidate

NAME_CHARACTERS_MAX = 1024

# A script may end itself with sys.exit(); that is the candidate's failure and must not become ours.
_FOREIGN = (Exception, SystemExit)


_LOADED: dict[str, tuple[tuple[int, int], ModuleType]] = {}
"""The loaded files, with their times of writing: a candidate is made for every run."""


def load_python_object(target: str) -> Candidate:
    """Return the candidate that `target` names.

    `target` is ``package.module:factory`` or ``path/to/file.py:factory``; the factory is called
    without arguments. Raises `CandidateUnavailable` when it cannot be found or fails, or when its
    result has no `hello` and `handle` or returns an invalid hello.
    """
    factory = _found(target)
    candidate = _make(target, factory)
    _check(target, candidate)
    return cast("Candidate", candidate)


def starting(target: str) -> Callable[[], Candidate]:
    """Return a function that makes the candidate of `target`, one for every run.

    The factory is looked up once. Only the first candidate of each type is checked, so that a run
    costs no more than making one.
    """
    factory: Callable[[], object] | None = None
    looked_at: set[type] = set()

    def start() -> Candidate:
        nonlocal factory
        factory = factory or _found(target)
        candidate = _make(target, factory)
        if type(candidate) not in looked_at:
            _check(target, candidate)
            looked_at.add(type(candidate))
        return cast("Candidate", candidate)

    return start


def _found(target: str) -> Callable[[], object]:
    """Return the factory that `target` names."""
    place, separator, attribute = target.rpartition(":")
    if not (separator and place and attribute):
        raise CandidateUnavailable(
            target,
            what="this does not name a factory",
            remedy="write package.module:factory or path/to/file.py:factory",
        )
    module = _load_file(target, Path(place)) if place.endswith(".py") else _load(target, place)
    return _factory(target, module, attribute)


def _check(target: str, candidate: object) -> None:
    """Check that a candidate has its methods and a valid hello."""
    for method in ("hello", "handle"):
        if not callable(getattr(candidate, method, None)):
            raise CandidateUnavailable(
                target,
                what=f"the factory returned {type(candidate).__name__} without a method {method}",
                remedy="return an object with the methods of brokerproof's Candidate",
            )
    _check_hello(target, cast("Candidate", candidate))


def _load(target: str, name: str) -> ModuleType:
    # An installed command does not have the working folder on its path, but a module on the
    # command line means the one in that folder.
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise CandidateUnavailable(
                target,
                what=f"there is no module {error.name!r}",
                remedy="run from the folder that holds it, or install it",
            ) from error
        raise _failed_import(target, name, error) from error
    except CandidateUnavailable:
        raise
    except _FOREIGN as error:
        raise _failed_import(target, name, error) from error


def _load_file(target: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise CandidateUnavailable(
            target, what=f"there is no file {path}", remedy="check the path before the colon"
        )
    # Registered under a name of its own, so that a file called queue.py does not replace the
    # library's module, and so that pickle finds the classes of a candidate again.
    whole = str(path.resolve())
    written = path.stat().st_mtime_ns, path.stat().st_size
    if whole in _LOADED and _LOADED[whole][0] == written:
        return _LOADED[whole][1]
    name = f"candidate_file_{path.stem}_{zlib.crc32(whole.encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, whole)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # The file may import its neighbours, as it could when run as a script. Their folder comes last,
    # so that none of them hides a module of the library.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except CandidateUnavailable:
        del sys.modules[name]
        raise
    except _FOREIGN as error:
        del sys.modules[name]
        raise _failed_import(target, str(path), error) from error
    _LOADED[whole] = written, module
    return module


def _failed_import(target: str, name: str, error: BaseException) -> CandidateUnavailable:
    return CandidateUnavailable(
        target,
        what=f"importing {name} failed with {described(error)}",
        remedy="`check --traceback` shows where",
    )


def _factory(target: str, module: ModuleType, attribute: str) -> Callable[[], object]:
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise CandidateUnavailable(
                target,
                what=f"{attribute!r} is not defined there",
                remedy="name a function or class of that module after the colon",
            ) from error
    if not callable(found):
        raise CandidateUnavailable(
            target,
            what=f"{attribute!r} is of type {type(found).__name__} and cannot be called",
            remedy="name a function or class that makes the candidate",
        )
    return cast("Callable[[], object]", found)


def _make(target: str, factory: Callable[[], object]) -> object:
    try:
        return factory()
    except CandidateUnavailable:
        raise
    except _FOREIGN as error:
        raise CandidateUnavailable(
            target,
            what=f"the factory failed with {described(error)}",
            remedy="`check --traceback` shows where",
        ) from error


def _check_hello(target: str, candidate: Candidate) -> None:
    try:
        hello = candidate.hello()
    except _FOREIGN as error:
        raise CandidateUnavailable(
            target,
            what=f"hello() failed with {described(error)}",
            remedy="return a `Hello` (brokerproof.spec.protocol) without doing anything else",
        ) from error
    if not isinstance(hello, Hello):
        raise CandidateUnavailable(
            target,
            what=f"hello() returned {type(hello).__name__}",
            remedy="return a `Hello` (brokerproof.spec.protocol)",
        )
    # A struct does not check its fields when it is made in Python; decoding does.
    try:
        checked = msgspec.convert(msgspec.to_builtins(hello), Hello)
    except (msgspec.ValidationError, TypeError) as error:
        raise CandidateUnavailable(
            target,
            what=f"hello() is not well formed: {error}",
            remedy="compare it with brokerproof.spec.protocol.capabilities",
        ) from error
    for field in checked.capabilities.__struct_fields__:
        claimed = getattr(hello.capabilities, field)
        if claimed != getattr(checked.capabilities, field):
            raise CandidateUnavailable(
                target,
                what=f"hello() claims {field} as a {type(claimed).__name__}",
                remedy="make it a tuple",
            )
    for field, value in (("name", hello.name), ("version", hello.version)):
        if not 1 <= len(value) <= NAME_CHARACTERS_MAX:
            raise CandidateUnavailable(
                target,
                what=f"hello() has a {field} of {len(value)} characters",
                remedy=f"give it one of 1 to {NAME_CHARACTERS_MAX} characters",
            )

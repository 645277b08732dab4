"""Unknown names in a driver's hello, most likely misspelled: each gets a warning.

A driver may send fields that the protocol does not list (rule 36), so none is refused. But a
misspelled claim is not made, and its requirements would silently go untested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from brokerproof.spec.nearest import meant
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.driver import DriverHello

WARNINGS_MAX = 10
NAME_CHARACTERS_MAX = 60


def unknown_names(hello: bytes) -> tuple[str, ...]:
    """Return a warning for each name in a well-formed answer to hello that the protocol lacks."""
    said = msgspec.json.decode(hello)
    found = [
        *_warnings("field", said, DriverHello.__struct_encode_fields__),
        *_warnings("claim", said["capabilities"], Capabilities.__struct_encode_fields__),
    ]
    left = len(found) - WARNINGS_MAX
    more = [f"hello has {left} unknown names more"] if left > 0 else []
    return (*found[:WARNINGS_MAX], *more)


def _warnings(what: str, names: Iterable[str], known: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name not in known:
            shown = name[:NAME_CHARACTERS_MAX]
            yield f"hello has an unknown {what} {shown!r}{meant(name, known)}: it is ignored"

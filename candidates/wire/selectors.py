"""Selectors of driver protocol 1 as texts of JMS, which most brokers understand.

The protocol's selector is a conjunction of equalities (rule 23). JMS compares only values of one
type: `TRUE` is no number, and a missing property makes the whole unknown, so nothing is selected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.spec.messages import PropertyValue
    from brokerproof.spec.protocol.operations import Selector

_RESERVED = frozenset(("null", "true", "false", "not", "and", "or", "between", "like", "in", "is"))
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def jms_selector(selector: Selector) -> str | None:
    """Return the selector as a text, or None when JMS has no identifier for a property's name.

    >>> jms_selector({"colour": "red", "n": 3, "new": True})
    "colour = 'red' AND n = 3 AND new = TRUE"
    >>> jms_selector({})
    ''
    """
    if not all(_IDENTIFIER.fullmatch(name) for name in selector):
        return None
    if any(name.lower() in (*_RESERVED, "escape") for name in selector):
        return None
    return " AND ".join(f"{name} = {_literal(value)}" for name, value in selector.items())


def _literal(value: PropertyValue) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)

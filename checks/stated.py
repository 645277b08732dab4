"""Which requirements something can tell a breach of: only such a requirement is ever kept.

A situation is counted apart from the text that judges it. So a count proves nothing where that text
is missing: a guard that lost its label, a rule that was left out. Owns the list of what is judged,
read off the texts that judge: the guards of the contract that a candidate is followed by, the looks
at its views, the failures of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Final

from brokerproof.checks.inside import paging_state_invariants
from brokerproof.checks.inside.state_invariants import INSIDE
from brokerproof.checks.oracle.contracts import rules_for
from brokerproof.checks.threads.records import BROKEN_BY
from brokerproof.reference.rabbitmq.paging import invariants
from brokerproof.spec.protocol.capabilities import Capabilities

OF_THE_PROTOCOL: Final = frozenset(("protocol", "does-what-it-claims", "refuses-what-it-must"))
"""What is judged by the protocol's own text (`obligations`, `conversation`), not by a model."""

NOTHING_STATES_IT: Final = "nothing can tell a breach: no guard of the contract states it"


def unstated(requirements: Iterable[str], claims: Capabilities) -> dict[str, str]:
    """Return the reason against each requirement that nothing would see broken."""
    known = stated(claims)
    return {name: NOTHING_STATES_IT for name in requirements if name not in known}


def stated(claims: Capabilities) -> frozenset[str]:
    """Return the requirements that are judged where a candidate has these claims."""
    actions = rules_for(claims).contract.system.actions
    guards = {guard.label for action in actions for guard in action.guards}
    counted = {name for rules in paging_state_invariants.SITUATIONS.values() for name in rules}
    looks = INSIDE - (counted - named_in(invariants))
    return OF_THE_PROTOCOL | guards | looks | {*BROKEN_BY.values()}


def named_in(module: ModuleType) -> frozenset[str]:
    """Return the texts that the functions of a module yield and return, ids of rules among them."""
    functions = (each for each in vars(module).values() if isinstance(each, FunctionType))
    return frozenset(text for function in functions for text in _texts(function.__code__))


def _texts(constant: object) -> Iterator[str]:
    inner = constant.co_consts if isinstance(constant, CodeType) else constant
    if isinstance(inner, str):
        yield inner
    elif isinstance(inner, tuple):
        for each in inner:
            yield from _texts(each)

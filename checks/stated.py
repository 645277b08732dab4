"""Which requirements something can tell a breach of: only such a requirement is ever kept.

A situation is counted apart from the text that judges it. So a count proves nothing where that text
is missing: a guard that lost its label, a rule that was left out. Owns the list of what is judged,
read off the texts that judge: the guards of the contract that a candidate is followed by, the rules
of its views and the invariants evaluated on them, the failures of threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.checks.oracle.contracts import rules_for
from brokerproof.checks.threads.records import BROKEN_BY
from brokerproof.models.projections import statements_of
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.systems import SYSTEM_OF, rules_of

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
    views = {REQUIREMENT, *BROKEN_BY.values()}
    for kind in SYSTEM_OF:
        views |= rules_of(kind).IDS
        views |= {name for names in statements_of(kind).values() for name in names.values()}
    return OF_THE_PROTOCOL | guards | views

"""Which requirements have a formula or rule that detects a breach; only these can be kept.

Situations are counted apart from the formulas that judge them. A count proves nothing if the
formula is missing, as for a guard without its label. So this file lists the judged requirements
from the judging code itself: the guards of the contract, the rules and invariants of views, and
the failures of threads.
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

OF_THE_PROTOCOL: Final = frozenset(
    ("protocol", "does-what-it-claims", "refuses-what-it-must", "lease-end-is-told")
)
"""Requirements judged by the protocol's own text (`obligations`, `conversation`, `translation`)."""

NOTHING_STATES_IT: Final = "nothing can tell a breach: no guard of the contract states it"


def unstated(requirements: Iterable[str], claims: Capabilities) -> dict[str, str]:
    """Return, for each requirement that nothing can detect as broken, the reason."""
    known = stated(claims)
    return {name: NOTHING_STATES_IT for name in requirements if name not in known}


def stated(claims: Capabilities) -> frozenset[str]:
    """Return the requirements that are judged for a candidate with these claims."""
    actions = rules_for(claims).contract.system.actions
    guards = {guard.label for action in actions for guard in action.guards}
    views = {REQUIREMENT, *BROKEN_BY.values()}
    for kind in SYSTEM_OF:
        views |= rules_of(kind).IDS
        views |= {name for names in statements_of(kind).values() for name in names.values()}
    return OF_THE_PROTOCOL | guards | views

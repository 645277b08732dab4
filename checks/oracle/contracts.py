"""Which contract a candidate is followed by: the core, the whole, or that of job queues.

Each extends the one before and takes longer to follow. The first that covers the claims is used.
"""

from __future__ import annotations

import functools

from brokerproof.checks.oracle.possibilities import Rules
from brokerproof.models.contract.core import Contract, Entry
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.read.pointwise import Pointwise
from brokerproof.spec.protocol.capabilities import STRICT, Capabilities
from brokerproof.spec.requirements import Level, catalogue

CONTRACT = Pointwise(trace(Contract), Entry)
"""The core."""

# The run can be followed beyond a breach of these, as its effect is known: a recommendation changes
# no state, and a wrong flag says nothing of where the message is.
TOLERATED = frozenset(r.id for r in catalogue().values() if r.level is Level.SHOULD) | {
    "redelivered-flag"
}

CORE = Rules(CONTRACT, TOLERATED)


@functools.cache
def whole() -> Rules:
    """Return the rules of the whole contract, which is traced on first use."""
    from brokerproof.models.contract.whole import WholeContract  # noqa: PLC0415 (takes its time)

    return Rules(Pointwise(trace(WholeContract), Entry), TOLERATED)


@functools.cache
def lawful() -> Rules:
    """Return the rules with lawful differences, which are traced on first use."""
    from brokerproof.models.contract.lawful_differences import (  # noqa: PLC0415 (takes its time)
        LawfulContract,
    )

    return Rules(Pointwise(trace(LawfulContract), Entry), TOLERATED)


@functools.cache
def jobs() -> Rules:
    """Return the rules of the contract of job queues, which is traced on first use."""
    from brokerproof.models.contract.jobs import JobContract  # noqa: PLC0415 (takes its time)

    return Rules(Pointwise(trace(JobContract), Entry), TOLERATED)


def rules_for(claims: Capabilities, *, beyond_the_core: bool | None = None) -> Rules:
    """Return the rules of the contract for these claims.

    It is the core if that covers the claims, unless `beyond_the_core` overrides this.
    """
    if is_of_jobs(claims):
        return jobs()
    if differs(claims):
        return lawful()
    beyond = goes_beyond_the_core(claims) if beyond_the_core is None else beyond_the_core
    return whole() if beyond else CORE


def is_of_jobs(claims: Capabilities) -> bool:
    """Whether a candidate claims anything that only the contract of job queues covers."""
    return bool(
        "none" in claims.orders
        or claims.settle_by == "message"
        or claims.redelivered != "flag"
        or claims.lease != "none"
        or claims.delivery_limit
        or claims.dead_letters
        or claims.delayed_release
        or claims.length_limit
        or claims.groups
    )


def differs(claims: Capabilities) -> bool:
    """Whether a candidate claims a lawful difference, which only that contract covers."""
    return any(getattr(claims, name) != strict for name, strict in STRICT.items())


def goes_beyond_the_core(claims: Capabilities) -> bool:
    """Whether a candidate may be asked for anything that the core does not cover."""
    return bool(
        {"bytes", "change", "channel"} & {*claims.credit}
        or {"sorted", "last_value"} & {*claims.orders}
        or claims.release_position in ("head", "tail")
        or claims.selectors
        or claims.consumer_priority
        or claims.durable
        or claims.auto_delete
        or claims.auto_close
        or claims.multi_queue
        or claims.exclusive
        or claims.clock
        or claims.flush
        or claims.parks
        or claims.purge
        or claims.delete
    )

"""Leases of a broker in real time: conversations that keep them, and twins that do not.

Each example is a conversation written by hand, with the helpers of `test_oracle.py`. The claimed
tolerance is one second, so a lease of two seconds may be over from the first second on, and is
certainly over after the third.
"""

from __future__ import annotations

from msgspec.structs import replace

from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import OK, Answer, LeaseExpired
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare, Extend
from tests.checks.oracle.test_oracle import (
    Told,
    acknowledge,
    broken,
    drain,
    failed,
    get,
    given,
    publish,
)
from tests.checks.oracle.test_oracle_whole import advance

SILENT = Capabilities(get=True, clock=True, tolerance_s=1, lease="silent", extend=True)
TOLD = replace(SILENT, lease="told")
AGAIN = given("m0", None, again=True)
ONCE_MORE = given("m0", None, again=True, delivery="f0")


def held(lease_s: int | None = 2) -> list[Told]:
    """Return a beginning after which a get holds m0."""
    made = Declare(queue="q", order=Fifo(), lease_s=lease_s), OK
    return [made, publish("m0"), get(given("m0", None))]


def extend(delivery: str) -> Told:
    """Renew a lease."""
    return Extend(delivery=delivery), OK


def expired(seconds: int) -> Told:
    """Let time pass until the end of a lease is told."""
    operation, _ = advance(seconds)
    return operation, Answer((LeaseExpired(message="m0"),))


def broken_by(*told: Told, claims: Capabilities = SILENT) -> list[str]:
    """Return the requirements that a conversation breaks."""
    return broken(told, claims)


def test_a_new_lease_outlasts_the_certain_end_of_the_one_before() -> None:
    # The first lease is certainly over after the third second, the second one has begun then.
    given_again = [*held(), advance(2), get(AGAIN), advance(1)]
    assert broken_by(*given_again, get(), drain()) == []
    assert broken_by(*held(), advance(2), get(AGAIN), get(ONCE_MORE)) == ["lease-holds"]
    assert broken_by(*given_again, advance(2), get(ONCE_MORE), drain()) == []
    assert broken_by(*given_again, advance(2), get()) == ["lease-ends"]


def test_an_automatic_get_ends_the_lease_before_for_good() -> None:
    taken = [*held(), advance(2), get(AGAIN, mode="automatic"), advance(1)]
    claims = replace(SILENT, get_modes=("acknowledge", "automatic"))
    assert broken_by(*taken, get(), drain(), claims=claims) == []
    assert broken_by(*taken, get(ONCE_MORE), claims=claims) == ["nothing-twice"]


def test_the_end_of_a_lease_is_told_once() -> None:
    assert broken_by(*held(), expired(2), drain(), advance(1), drain(), claims=TOLD) == []
    assert broken_by(*held(), advance(3), drain(), claims=TOLD) == ["lease-end-is-told"]
    early = given("m0", None)
    made = Declare(queue="q", order=Fifo(), lease_s=3), OK
    assert broken_by(made, publish("m0"), get(early), expired(1), claims=TOLD) == ["lease-holds"]


def test_a_queue_without_leases_has_none_to_renew() -> None:
    renewed = [*held(None), extend("d0")]
    assert broken_by(*renewed, get(), acknowledge("d0"), get(), drain()) == []
    assert broken_by(*renewed, get(AGAIN)) == ["nothing-twice"]
    refused = [*held(None), failed(extend("d0"), "refused")]
    assert broken_by(*refused, get(), drain()) == []
    assert broken_by(*held(), failed(extend("d0"), "refused")) == ["does-what-it-claims"]

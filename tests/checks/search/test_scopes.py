"""Every move of a scope is claimed, makes sense now, and comes in the same order each time.

For claims drawn at random the whole broker of the examples claims exactly those, and answers
`unsupported` whatever goes beyond. Along random walks in each scope, and along draws of the
stateful stage, nothing may be answered so, and nothing may be called broken. The twins show that a
broker which claims more than it does is found out by the same walks.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

import pytest
from msgspec.structs import replace

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.obligations import must_be_refused
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.draws import (
    OPTIONAL,
    Chooser,
    kinds_beyond,
    kinds_drawn,
    orders_drawn,
)
from brokerproof.checks.search.findings import Exchange, step
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.catalogue import kinds_for, scopes_for
from brokerproof.checks.search.scopes.mixed_scopes import covering, mixed_scopes
from brokerproof.checks.search.scopes.scope import Kind, Payload, Scope
from brokerproof.checks.search.searches import Search
from brokerproof.checks.trace.moves import Move, operation_of
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Priority
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.capabilities import Capabilities, ReleasePosition
from brokerproof.spec.protocol.operations import (
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Operation,
    Publish,
    Reset,
    Restart,
    name_of,
)
from examples.job_queue import make_queue
from examples.whole_broker import WholeBroker
from examples.whole_broker_claims import everything

FLAGS = (
    "selectors",
    "consumer_priority",
    "durable",
    "auto_delete",
    "auto_close",
    "purge",
    "delete",
    "multi_queue",
    "exclusive",
    "flush",
    "clock",
    "parks",
)
POSITIONS: tuple[ReleasePosition | None, ...] = ("original", "head", "tail", None)


def drawn(seed: int) -> Capabilities:
    """Return claims chosen at random, such that a message can be taken somehow."""
    chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
    whole = everything()

    def some(of: Sequence[object]) -> tuple[object, ...]:
        return tuple(each for each in of if chosen.random() < 0.5)

    modes = some(whole.modes)
    flags = {flag: chosen.random() < 0.5 for flag in FLAGS}
    return replace(
        whole,
        orders=some(whole.orders) or whole.orders[:1],
        priority_levels=chosen.randint(1, 10),
        modes=modes,
        browse="browse" in modes,
        credit=some(whole.credit),
        get=chosen.random() < 0.6 or not set(modes) - {"browse"},
        release_position=chosen.choice(POSITIONS),
        oversize=chosen.choice(("never", "when_idle")),
        **flags,
    )


def broker_with(claims: Capabilities) -> WholeBroker:
    """Return a broker with these claims."""
    return WholeBroker(
        claims=claims,
        release_position=claims.release_position or "original",
        oversize=claims.oversize,
        parks_above=2 if claims.parks else None,
    )


def walked(
    scope: Scope, claims: Capabilities, broker: WholeBroker, seed: int
) -> Iterator[Exchange]:
    """Yield the steps of a random walk in a scope; whatever is broken ends it with an error."""
    chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
    broker.handle(Reset())
    oracle = Oracle(claims)
    for _ in range(14):
        moves = list(scope.moves(oracle.bindings))
        assert moves == list(scope.moves(oracle.bindings))
        twice = [m for m, n in Counter(map(repr, moves)).items() if n > 1]
        assert twice == []
        yield from _made(chosen.choice(moves), broker, oracle)


def drawn_from(claims: Capabilities, broker: WholeBroker, seed: int) -> Iterator[Exchange]:
    """Yield the steps of an example of the stateful stage."""
    chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
    broker.handle(Reset())
    oracle, plain = Oracle(claims), seed % 4 == 0
    kinds = kinds_for(claims)
    chooser = Chooser(claims, kinds if plain else (*kinds, *kinds_beyond(claims)), plain)
    orders = orders_drawn(claims)
    for number in range(2):
        order = chosen.choice(orders)
        yield from _made(Declare(queue=f"q{number}", order=order), broker, oracle)
    of_kinds = kinds_drawn(chosen.getrandbits(len(OPTIONAL)), claims)
    for _ in range(40):
        numbers = chosen.randrange(60), chosen.randrange(60)
        for move in chooser.moves(chosen.choice(of_kinds), *numbers, oracle.bindings):
            yield from _made(move, broker, oracle)


def _made(move: Move, broker: WholeBroker, oracle: Oracle) -> Iterator[Exchange]:
    """Make a move and yield it, unless it was made in order to be refused."""
    operation = operation_of(move, oracle.bindings)
    invalid = operation is not None and must_be_refused(operation, oracle.bindings)
    told, breaches = step(broker, oracle, move)
    assert breaches == [], move
    if told is not None and not invalid:
        yield told


def unsupported(steps: Iterator[Exchange]) -> list[str]:
    """Return the operations that are answered so."""
    return [
        name_of(told.operation)
        for told in steps
        if told.answer.error is not None and told.answer.error.code == "unsupported"
    ]


CLAIMS = [*map(drawn, range(24)), everything(), everything(parks=True)]


@pytest.mark.each_time(5)
@pytest.mark.parametrize("number", range(len(CLAIMS)))
def test_every_move_of_a_scope_is_claimed_and_a_sound_broker_breaks_nothing(number: int) -> None:
    claims = CLAIMS[number]
    broker = broker_with(claims)
    scopes = scopes_for(claims)
    assert scopes
    for scope in (*scopes, *mixed_scopes(claims)):
        assert unsupported(walked(scope, claims, broker, number)) == [], scope.name


@pytest.mark.each_time(8)
@pytest.mark.parametrize("number", range(len(CLAIMS)))
def test_every_draw_is_claimed_and_a_sound_broker_breaks_nothing(number: int) -> None:
    claims = CLAIMS[number]
    broker = broker_with(claims)
    for seed in range(4):
        assert unsupported(drawn_from(claims, broker, seed)) == []
    lazy = broker_with(claims)
    lazy.tells = "at_drain"
    for seed in range(4, 8):
        assert unsupported(drawn_from(claims, lazy, seed)) == []


def test_the_scopes_of_all_claims_come_to_all_operations() -> None:
    claims = everything(parks=True)
    broker, seen = broker_with(claims), Counter[str]()
    for scope, seed in itertools.product(scopes_for(claims), range(24)):
        seen.update(name_of(told.operation) for told in walked(scope, claims, broker, seed))
    kinds = {kind.__struct_config__.tag for kind in get_args(Operation)}
    assert set(seen) == kinds - {"inspect", "extend"}


def test_the_scopes_of_a_job_queue_come_to_the_operations_of_its_own() -> None:
    scopes = scopes_for(make_queue().hello().capabilities)
    assert any("extend" in scope.settlements for scope in scopes)
    assert any(scope.delays for scope in scopes)
    assert {scope.overflow for scope in scopes} == {None, "refuse", "drop_head"}
    without = scopes_for(replace(make_queue().hello().capabilities, extend=False))
    assert not any("extend" in scope.settlements for scope in without)


@pytest.mark.parametrize("flag", ["purge", "delete", "flush", "clock", "durable", "exclusive"])
def test_a_broker_that_does_less_than_it_claims_is_found_out(flag: str) -> None:
    claims = everything()
    less = broker_with(replace(claims, **{flag: False}))
    every = itertools.product(scopes_for(claims), range(6))
    with pytest.raises(AssertionError):
        list(itertools.chain(*(walked(scope, claims, less, seed) for scope, seed in every)))


# Mixed scopes.


def test_every_two_features_are_together_in_some_mixed_scope() -> None:
    names = ["a", "b", "c", "d", "order: x", "order: y"]
    sets = list(covering(names, 3))
    for one, other in itertools.combinations(names, 2):
        together = any({one, other} <= chosen for chosen in sets)
        assert together == (not (one.startswith("order") and other.startswith("order")))
    assert len(sets) < len(list(itertools.combinations(names, 2)))


def test_a_mixed_scope_has_what_its_name_says() -> None:
    scopes = mixed_scopes(everything())
    for scope in scopes:
        assert scope.purges == ("purges" in scope.name)
        assert (scope.queues == 2) == ("two queues" in scope.name or "both queues" in scope.name)
        assert isinstance(scope.orders[0], Priority) == ("order: priority" in scope.name)
        sizes = {payload.size for payload in scope.payloads}
        assert (0 in sizes) == ("windows of bytes" in scope.name or "empty" in scope.name)
    both = [scope for scope in scopes if scope.purges and Kind("browse") in scope.kinds]
    assert both


# Names, and the contents of a scope.


def test_no_two_scopes_of_the_same_claims_have_one_name() -> None:
    for claims in CLAIMS:
        names = [scope.name for scope in (*scopes_for(claims), *mixed_scopes(claims))]
        assert len(set(names)) == len(names)


def bindings_after(claims: Capabilities, *operations: Operation) -> Oracle:
    """Return an oracle that has followed operations which were all carried out."""
    oracle = Oracle(claims)
    for operation in operations:
        assert oracle.observe(operation, Answer()) == []
    return oracle


def test_new_things_have_the_next_name() -> None:
    scope = Scope("", (Fifo(),), messages=3, channels=2, consumers=2, kinds=(Kind("acknowledge"),))
    oracle = bindings_after(everything(), Declare(queue="q0", order=Fifo()))

    def named() -> tuple[set[str], set[tuple[str, str]]]:
        moves = list(scope.moves(oracle.bindings))
        consumers = {(m.consumer, m.channel) for m in moves if isinstance(m, Consume)}
        return {m.message.id for m in moves if isinstance(m, Publish)}, consumers

    assert named() == ({"m0"}, {("c0", "ch0")})
    oracle.observe(*publish("m0"))
    oracle.observe(Consume(channel="ch0", queue="q0", consumer="c0", credit=Credit(0)), Answer())
    assert named() == ({"m1"}, {("c1", "ch0"), ("c1", "ch1")})
    oracle.observe(Consume(channel="ch1", queue="q0", consumer="c1", credit=Credit(0)), Answer())
    for name in ("m1", "m2"):
        oracle.observe(*publish(name))
    assert named() == (set(), set())


def publish(name: str) -> tuple[Operation, Answer]:
    return Payload().publish("q0", name), Answer()


def test_first_there_is_a_queue_and_while_down_there_is_only_a_restart() -> None:
    scope = Scope("", (Fifo(),), messages=1, durable=(True, False), crashes=True)
    moves = list(scope.moves(Oracle(everything()).bindings))
    assert [move.durable for move in moves if isinstance(move, Declare)] == [True, False]
    assert len(moves) == 2
    down = bindings_after(everything(), Declare(queue="q0", order=Fifo(), durable=True))
    crash = next(m for m in scope.moves(down.bindings) if name_of_move(m) == "crash")
    assert isinstance(crash, Operation)
    down.observe(crash, Answer())
    assert list(scope.moves(down.bindings)) == [Restart()]


def name_of_move(move: Move) -> str:
    return str(type(move).__struct_config__.tag)


def test_a_queue_that_has_gone_may_be_declared_again_once() -> None:
    scope = Scope("", (Fifo(),), messages=0, deletes=True)
    oracle, made = Oracle(everything()), 0
    for _ in range(8):
        wanted = [m for m in scope.moves(oracle.bindings) if not isinstance(m, Drain)]
        if not wanted:
            break
        [move] = wanted
        made += isinstance(move, Declare)
        assert isinstance(move, Operation)
        oracle.observe(move, Answer())
    assert made == 2


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("queues", [(), ("q0", "q1")])
def test_where_deletions_are_not_told_a_queue_of_a_consumer_of_several_is_not_deleted(
    queues: tuple[str, ...], told: bool
) -> None:
    scope = Scope("", (Fifo(),), queues=2, messages=0, deletes=True)
    oracle = Oracle(replace(everything(), deletion_told=told))
    for queue in ("q0", "q1"):
        oracle.observe(Declare(queue=queue, order=Fifo()), Answer())
    oracle.observe(Consume(channel="ch", queue="q0", consumer="c", queues=queues), Answer())
    deleted = {move.queue for move in scope.moves(oracle.bindings) if isinstance(move, Delete)}
    assert deleted == (set() if queues and not told else {"q0", "q1"})


def test_what_is_settled_already_is_settled_again_only_where_the_scope_says_so() -> None:
    claims = everything()
    for again in (True, False):
        scope = replace_scope(claims, settles_again=again)
        steps = [told for seed in range(20) for told in walked(scope, claims, WholeBroker(), seed)]
        settled = [told.move for told in steps if name_of_move(told.move) == "settle"]
        assert any(getattr(move, "again", False) for move in settled) == again


def replace_scope(claims: Capabilities, *, settles_again: bool) -> Scope:
    """Return a scope of one message that is got, settled, and perhaps settled again."""
    assert claims.get
    return Scope("", (Fifo(),), messages=1, gets=("acknowledge",), settles_again=settles_again)


def test_walks_do_not_depend_on_the_run() -> None:
    claims = everything()
    for scope, seed in itertools.product(scopes_for(claims)[:4], range(2)):
        one, other = (list(walked(scope, claims, WholeBroker(), seed)) for _ in range(2))
        assert one == other


def test_what_cannot_be_followed_is_not_met_on_the_way() -> None:
    """Walks of the whole broker are judged to the end, or they would show nothing."""
    for number, claims in enumerate(CLAIMS):
        try:
            for seed in range(2):
                list(drawn_from(claims, broker_with(claims), seed))
        except Unfollowable as error:
            pytest.fail(f"claims {number}: {error}")


def test_a_filled_scope_begins_with_all_its_messages() -> None:
    scope = Scope("", (Fifo(),), messages=3, gets=("acknowledge",), filled=True)
    oracle = bindings_after(everything(), Declare(queue="q0", order=Fifo()))
    for name in ("m0", "m1", "m2"):
        assert list(scope.moves(oracle.bindings)) == [publish(name)[0]]
        oracle.observe(*publish(name))
    assert {name_of_move(move) for move in scope.moves(oracle.bindings)} == {"drain", "get"}


def test_a_reset_is_asked_for_where_there_is_something_to_forget() -> None:
    for resets in (True, False):
        scope = Scope("", (Fifo(),), messages=1, durable=(True,), crashes=True, resets=resets)
        nothing = bindings_after(everything())
        made = bindings_after(everything(), Declare(queue="q0", order=Fifo()))
        down = bindings_after(everything(), Declare(queue="q0", order=Fifo()), Crash())
        asked = [Reset() in list(scope.moves(oracle.bindings)) for oracle in (nothing, made, down)]
        assert asked == [False, resets, resets]


def test_a_long_queue_is_longer_than_a_slice_and_needs_consumers_that_acknowledge() -> None:
    for claims in CLAIMS:
        long = [scope for scope in scopes_for(claims) if scope.name == "a long queue"]
        assert bool(long) == ("acknowledge" in claims.modes)
        assert all(scope.messages > 10 and scope.closes for scope in long)


def test_a_broker_with_a_disk_is_asked_to_take_back_some_of_four_in_any_order() -> None:
    for claims in CLAIMS:
        returns = [
            scope for scope in scopes_for(claims) if scope.name == "gets that return in any order"
        ]
        assert bool(returns) == (claims.get and claims.durable)
        assert all(scope.filled and scope.messages == 4 for scope in returns)
        assert all(scope.settlements == ("release",) for scope in returns)


def test_what_persists_is_asked_for_with_consumers_that_come_and_go_and_without_a_crash() -> None:
    for claims in CLAIMS:
        asked = [
            scope
            for scope in scopes_for(claims)
            if any(each.persistent for each in scope.payloads)
            and not (scope.crashes or scope.cuts or scope.invalid)
        ]
        assert bool(asked) == (claims.durable and (claims.get or "acknowledge" in claims.modes))
        assert all(scope.durable == (True,) for scope in asked)
        assert not asked or max(scope.messages for scope in asked) > 2
        leaving = [scope for scope in asked if scope.consumers and scope.closes]
        assert bool(leaving) == (claims.durable and "acknowledge" in claims.modes)


def test_a_browser_meets_what_returns_behind_it_also_where_there_are_no_gets() -> None:
    claims = Capabilities(modes=("acknowledge", "browse"), browse=True)
    named = {each.name: each for each in scopes_for(claims)}
    candidate = make("qpid-push")
    copier = copier_of(candidate)
    assert isinstance(copier, Copier)
    found = Search(named["what returns behind a browser"], "product")
    search(found, (candidate, Oracle(claims)), copier, 2_000, lambda: "")
    assert found.exercised["browser-never-rewound"] > 0
    with_gets = {each.name for each in scopes_for(replace(claims, get=True))}
    assert "what returns behind a browser" not in with_gets

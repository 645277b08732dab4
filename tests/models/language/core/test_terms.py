"""Terms: identity is equality, nothing is a truth value, substitution captures nothing."""

from __future__ import annotations

import pickle
from typing import cast

import pytest

from brokerproof.models.language.core.model import ModelError
from brokerproof.models.language.core.rewriting import Function, substitute
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Family,
    Int,
    Symbol,
    Term,
    conjunction,
    equal,
    exists,
    forall,
    free_variables,
    fresh,
    implies,
    integer,
    ite,
    less,
    lift,
    read,
)
from tests.models.small_models import Item, Phase, Place

FLAG = Symbol("flag", (Item,), Bool, rigid=False)
NEXT = Symbol("next", (Item,), Item, rigid=False)
LINK = Symbol("link", (Item, Item), Bool, rigid=False)
BEFORE = Symbol("before", (Item, Item), Bool, rigid=True, is_order=True)


def flag(item: Term) -> Bool:
    return cast("Bool", read(FLAG, (item,)))


def test_terms_built_alike_are_one_object() -> None:
    x = fresh(Item, "x")
    assert flag(x) is flag(x)
    assert (flag(x) & ~flag(x)) is FALSE
    assert conjunction([flag(x), TRUE, flag(x)]) is flag(x)
    assert equal(read(NEXT, (x,)), x) is equal(x, read(NEXT, (x,)))
    assert id(integer(1)) != id(TRUE)
    assert fresh(Item, "x") is not fresh(Item, "x")


def test_one_of_some_values_is_the_equation_with_any_of_them() -> None:
    phase = fresh(Phase, "phase")
    both = phase.is_one_of(Phase.IDLE, Phase.BUSY)
    assert both is ((phase == Phase.IDLE) | (phase == Phase.BUSY))
    assert phase.is_one_of() is FALSE


def test_a_term_has_no_truth_value() -> None:
    x = fresh(Item, "x")
    with pytest.raises(ModelError, match=r"write &, \|, ~, implies"):
        bool(flag(x))
    with pytest.raises(ModelError):
        flag(x) and flag(x)
    with pytest.raises(ModelError):
        assert x == fresh(Item, "y")


def test_a_term_can_be_a_key_and_is_never_pickled() -> None:
    x, y = fresh(Item, "x"), fresh(Item, "y")
    assert {x: 1, y: 2}[y] == 2
    with pytest.raises(TypeError, match="interned"):
        pickle.dumps(x)


def test_constants_fold() -> None:
    x, y = fresh(Item, "x"), fresh(Item, "y")
    assert ite(TRUE, x, y) is x
    assert ite(flag(x), y, y) is y
    assert ite(flag(x), TRUE, FALSE) is flag(x)
    assert ite(flag(x), FALSE, TRUE) is ~flag(x)
    assert less(integer(1), integer(2)) is TRUE
    assert (integer(1) + 2) is integer(3)
    assert (Phase.IDLE == Phase.BUSY) is FALSE
    assert (ite(flag(x), Phase.IDLE, Phase.BUSY) == Phase.BUSY) is ~flag(x)
    assert implies(FALSE, flag(x)) is TRUE
    assert read(BEFORE, (x, x)) is FALSE
    assert forall(Item, lambda _: flag(x)) is flag(x)


def test_sorts_do_not_mix() -> None:
    item, place = fresh(Item, "i"), fresh(Place, "p")
    with pytest.raises(ModelError, match="only terms of one sort can be equal"):
        equal(item, place)
    with pytest.raises(ModelError, match="expected a term of sort Item"):
        flag(place)
    with pytest.raises(ModelError, match="takes 1 indices, got 2"):
        read(FLAG, (item, item))
    with pytest.raises(ModelError, match="expected a term of sort Int"):
        lift(True, Int)
    with pytest.raises(ModelError, match="expected a term of sort Bool"):
        lift(1, Bool)
    with pytest.raises(ModelError, match="then a function"):
        forall(Item)


def test_substitution_captures_nothing() -> None:
    x = fresh(Item, "x")
    some = exists(Item, lambda y: read(LINK, (x, y)))
    [bound] = cast("tuple[Term, ...]", some.payload)
    moved = substitute(some, {x: bound})
    assert free_variables(moved) == {bound}
    [renamed] = cast("tuple[Term, ...]", moved.payload)
    assert moved.args[0] is read(LINK, (bound, renamed))
    assert renamed is not bound


def test_substitution_replaces_all_variables_at_once() -> None:
    x, y = fresh(Item, "x"), fresh(Item, "y")
    assert substitute(read(LINK, (x, y)), {x: y, y: x}) is read(LINK, (y, x))


def test_a_function_replaces_a_symbol_under_quantifiers_and_within_indices() -> None:
    x, p = fresh(Item, "x"), fresh(Item, "p")
    hit = Function((p,), ite(equal(p, x), TRUE, flag(p)))
    after = substitute(forall(Item, flag), {}, {FLAG: hit})
    assert free_variables(after) == {x}
    [bound] = cast("tuple[Term, ...]", after.payload)
    assert after.args[0] is (equal(bound, x) | flag(bound))
    step = Function((p,), read(NEXT, (read(NEXT, (p,)),)))
    assert substitute(flag(read(NEXT, (x,))), {}, {NEXT: step}) is flag(step.at(x))


def test_a_function_that_quantifies_captures_no_index() -> None:
    p = fresh(Item, "p")
    body = exists(Item, lambda q: read(LINK, (p, q)))
    linked = Function((p,), body)
    everywhere = substitute(forall(Item, flag), {}, {FLAG: linked})
    [outer] = cast("tuple[Term, ...]", everywhere.payload)
    [inner] = cast("tuple[Term, ...]", everywhere.args[0].payload)
    assert everywhere.args[0].args[0] is read(LINK, (outer, inner))
    assert free_variables(everywhere) == frozenset()


def test_terms_show_as_they_are_written() -> None:
    x = fresh(Item, "x")
    assert repr(forall(Item, lambda i: implies(flag(i), i == x))) in {
        "(forall i: (~flag[i] | (i = x)))",
        "(forall i: (~flag[i] | (x = i)))",
    }
    assert repr(Phase.DONE) == "DONE"


def test_a_family_is_only_a_sort() -> None:
    assert issubclass(Item, Family)
    with pytest.raises(ModelError):
        lift(0, Item)

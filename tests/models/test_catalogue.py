"""The catalogue: a system's name stands for all its models, and each model has a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.explore import explore
from brokerproof.models.activemq.cursor_page_in import Consumer
from brokerproof.models.catalogue import CATALOGUE, SYSTEMS
from brokerproof.models.language import Family, Model
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.terms import Sort, Term
from brokerproof.models.refinements import REFINEMENTS
from brokerproof.spec.invariants import ByModel, invariants


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_has_models_of_the_catalogue_each_once(system: str) -> None:
    names = SYSTEMS[system]
    assert len(set(names)) == len(names)
    assert set(names) <= set(CATALOGUE)


def test_no_name_is_a_model_and_a_system() -> None:
    assert not set(CATALOGUE) & set(SYSTEMS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_has_the_models_that_hold_its_invariants(system: str) -> None:
    bound = {
        binding.model
        for each in invariants().values()
        if system in each.systems
        for binding in each.held
        if isinstance(binding, ByModel)
    }
    assert bound <= set(SYSTEMS[system])


def test_all_models_of_paging_are_rabbitmqs_and_one_is_proved_to_keep_the_contract() -> None:
    paging = {name for name in CATALOGUE if name.startswith("paging-")}
    assert set(SYSTEMS["rabbitmq-paging"]) == paging
    assert paging & set(REFINEMENTS) == {"paging-places"}


LARGE = ("paging-syncs", "job-contract", "lawful-contract", "cursor-progress")
"""The models whose exploration takes longest: with two million states, or with loops."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=pytest.mark.thorough) if each in LARGE else each
        for each in CATALOGUE
    ],
)
def test_each_action_is_taken_in_the_scope_of_its_model_and_all_is_kept(name: str) -> None:
    result = CliRunner().invoke(explore, [name])
    assert result.exit_code == 0, result.output


def alone(model: type[Model], sizes: Mapping[Sort, int]) -> list[str]:
    """Return the invariants about two elements of a family that has one."""
    return [
        statement.name
        for statement in trace(model).invariants
        for term in subterms(statement.term)
        if term.op in ("forall", "exists")
        for sort, number in Counter(map(type, cast("tuple[Term, ...]", term.payload))).items()
        if issubclass(sort, Family) and number > 1 and sizes[sort] < 2
    ]


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_invariant_about_two_elements_is_explored_with_two(name: str) -> None:
    listed = CATALOGUE[name]
    assert alone(listed.model, listed.scope.sizes) == []


def test_an_invariant_about_two_elements_says_little_of_one() -> None:
    model = CATALOGUE["cursor-page-in"].model
    sizes = CATALOGUE["cursor-page-in"].scope.sizes
    assert alone(model, dict(sizes) | {Consumer: 1}) == ["what-is-paged-in-is-in-one-place"]


def test_each_liveness_property_has_a_rank_in_words() -> None:
    systems = [trace(listed.model) for listed in CATALOGUE.values()]
    stated = [each for system in systems for each in system.leads_to]
    assert [each.name for each in stated if not (each.rank and each.rank.words)] == []

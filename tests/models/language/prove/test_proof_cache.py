"""Cached results equal fresh ones, whatever statement changes."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import random
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.prove import prove
from brokerproof.models import refinements
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    action,
    initial,
    leads_to,
    require,
)
from brokerproof.models.language.attack.mutation_testing import Subject, attack
from brokerproof.models.language.core.model import System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import ModelError
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.cache import Cache, canonical, key
from brokerproof.models.language.prove.prover import Proof
from brokerproof.models.language.prove.prover import prove as proved
from brokerproof.models.language.prove.refinement import Refinement, RefinementProof
from brokerproof.models.language.prove.refining import Bound
from tests.models.language.prove.changed_sources import (
    Given,
    changed,
    changes,
    listed,
    read,
    sources,
    units,
)
from tests.models.language.prove.test_refinement_claims import GOOD, Task, Worker
from tests.models.small_models import Counters

Text = Callable[[Given], str]

MEANINGLESS = (
    *(ModelError, TypeError, AttributeError, NameError),
    *(LookupError, ValueError, AssertionError),
)
"""The errors of a change that leaves no model: there is no answer then, cached or fresh."""

DRAWN = 40
"""How many changes the quick test draws; the thorough one makes them all."""

ALTERING = 1
"""How many of these it makes that alter a proof; some alter none, as of words."""

PARTS = 100
"""How many thorough tests share the statements."""


@functools.cache
def original() -> dict[str, Given]:
    """Return the models and refinements as they are, by name."""
    return dict(listed())


@functools.cache
def everything() -> list[tuple[str, int]]:
    """Return each statement that can be changed: its module, and its number there."""
    return [(module, place) for module in read() for place in units(module)]


def stale(module: str, place: int, text: Text) -> tuple[list[str], list[str]]:
    """Return the proofs that a change of one statement alters, and those still found in the cache.

    Uses the first change that alters a proof.
    """
    for source in changes(module, place):
        try:
            with changed(module, source) as seen:
                found = dict(listed(seen))
        except MEANINGLESS:
            continue
        altered = [name for name, each in found.items() if repr(each) != repr(original()[name])]
        if altered:
            return altered, [n for n in altered if text(found[n]) == text(original()[n])]
    return [], []


def test_a_changed_statement_is_never_answered_from_the_cache() -> None:
    drawn = random.Random(7).sample(everything(), DRAWN)  # noqa: S311 (reproducible)
    found = (stale(*each, canonical) for each in drawn)
    altering = islice((forgotten for altered, forgotten in found if altered), ALTERING)
    assert list(altering) == [[]] * ALTERING


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_no_changed_statement_is_answered_from_the_cache(part: int) -> None:
    assert not any(stale(*each, canonical)[1] for each in everything()[part::PARTS])


def without_promises(given: Given) -> str:
    return canonical(dataclasses.replace(given, leads_to=()) if isinstance(given, System) else "")


def both_models(given: Given) -> str:
    return canonical(given.raw, given.abstract) if isinstance(given, Bound) else ""


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("module", "function", "text", "forgotten"),
    [
        ("qpid.threads.queue_runner", "is_seen", without_promises, "queue-runner"),
        ("qpid.pointer_queue_refines_contract", "status", both_models, "pointer-queue refines"),
    ],
)
def test_a_key_that_forgets_something_is_found(
    module: str, function: str, text: Text, forgotten: str
) -> None:
    found = [stale(module, place, text)[1] for place in units(module, function)]
    assert any(forgotten in names for names in found)


def test_models_that_are_loaded_anew_have_the_same_key() -> None:
    with changed("qpid.pointer_queue", sources()["qpid.pointer_queue"]) as seen:
        found = dict(listed(seen))
    assert "pull-queue refines" in found
    assert all(found[name] is not original()[name] for name in found)
    assert {n: canonical(g) for n, g in found.items()} == {
        n: canonical(original()[n]) for n in found
    }


def test_what_has_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="has no text that says all that it decides"):
        key(attack, Subject(trace(Counters), "", (lambda _changed: (),)))
    with pytest.raises(TypeError, match="has no text"):
        key(trace, trace(Counters), {1.5})
    with pytest.raises(TypeError, match="has no text"):
        key(stale, trace(Counters))


def test_each_thing_that_is_given_is_part_of_the_key() -> None:
    system = trace(Counters)
    reasons = ["", "It is a.\n  a: b", "It is a.\n  a: c"]
    keys = {key(attack, Subject(system, each)) for each in reasons}
    assert len(keys | {key(proved, system)}) == 4


def test_a_file_that_cannot_be_read_is_decided_anew(tmp_path: Path) -> None:
    system, cache = trace(Counters), Cache(tmp_path)
    first = cache.kept(Proof, "counters", proved, system)
    assert cache.kept(Proof, "counters", proved, system) == first
    [kept] = tmp_path.iterdir()
    kept.write_bytes(b"{")
    assert cache.kept(Proof, "counters", proved, system) != first
    assert cache.kept(Proof, "counters", proved, system).complete == first.complete


def said(*arguments: str) -> str:
    """Return the command's output, without its times."""
    output = CliRunner().invoke(prove, arguments).output
    return re.sub(r"\b\d+(\.\d+)? s\b", "", output)


def test_a_changed_abstraction_from_elsewhere_is_proved_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The abstraction stands in this file, the model that remembers in another."""
    monkeypatch.chdir(tmp_path)
    scope = Scope({Task: 2}, range(1))
    monkeypatch.setitem(CATALOGUE, "worker", type(CATALOGUE["contract"])(Worker, scope))
    monkeypatch.setitem(refinements.REFINEMENTS, "worker", GOOD)
    good = said("worker")
    wrong = dataclasses.replace(GOOD, abstraction={"told": lambda queue, task: queue.done[task]})
    monkeypatch.setitem(refinements.REFINEMENTS, "worker", wrong)
    assert "told initially" in said("worker")
    assert said("worker") == said("worker", "--no-cache") != good


def test_a_witness_of_the_queue_of_pointers_decides_about_the_pull_queue(tmp_path: Path) -> None:
    cache, text = Cache(tmp_path), sources()["qpid.pointer_queue_history"]
    told = "return queue.origin[entry] != Origin.PUBLISHED"
    assert told in text

    def outcomes(refinement: Refinement) -> set[str]:
        proof = cache.kept(RefinementProof, "pull", bind(refinement).proof, ("deliver",))
        return {answer.outcome for answer in proof.answers}

    assert outcomes(refinements.REFINEMENTS["pull-queue"]) == {"proved"}
    lie = text.replace(told, "return queue.origin[entry] == Origin.PUBLISHED")
    with changed("qpid.pointer_queue_history", lie):
        again = importlib.import_module(refinements.__name__).REFINEMENTS["pull-queue"]
        assert "refuted" in outcomes(again)


class Lamp(Family):
    """A lamp."""


def lamps(*fair: str) -> type[Model]:
    """Return lamps that are lit in the end, if something is fair."""

    class Lamps(Model):
        """Lamps that are lit one by one."""

        lit: Map[Lamp, Bool]

        @initial
        def dark(self) -> None:
            """All are dark."""
            self.lit.fill(False)

        @action
        def light(self, lamp: Lamp) -> None:
            """Light one."""
            require(~self.lit[lamp])
            self.lit[lamp] = True

        @leads_to("lit-in-the-end", fair=fair)
        def is_lit(self, lamp: Lamp) -> tuple[Bool, Bool]:
            """Each is lit in the end."""
            return ~self.lit[lamp], self.lit[lamp]

    return Lamps


def test_a_changed_promise_about_the_end_is_attacked_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    scope = Scope({Lamp: 2}, range(1))
    found = {}
    for fair in ((), ("light",)):
        entry = type(CATALOGUE["contract"])(lamps(*fair), scope)
        monkeypatch.setitem(CATALOGUE, "lamps", entry)
        found[fair] = said("--attack", "lamps")
        assert found[fair] == said("--attack", "lamps", "--no-cache")
    assert found[()] != found[("light",)]
    assert "lit-in-the-end" in found[("light",)]

"""Every invariant is bound to something that is there, and that a broken twin breaks."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.command_line import main
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.core.model import Model, trace
from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.invariants import (
    Binding,
    ByModel,
    ByRequirement,
    ByTest,
    ByThreads,
    invariants,
    invariants_of,
    read_invariants,
)
from brokerproof.spec.requirements import catalogue
from tests.faults.catalogue import faults
from tests.faults.threads.catalogue import thread_faults
from tests.spec.invariants_page import COMPARED, PAGES, name_of, page_of
from tests.spec.test_requirements import outlines, unknown_sources

ROOT = Path(__file__).parents[2]

NUMBERS = {
    "qpid": {
        "ENT-": 8,
        "EL-": 7,
        "LVQ-": 3,
        "CL-": 5,
        "PTR-": 6,
        "RUN-": 9,
        "QCM-": 5,
        "PULL-": 7,
        "SCH-": 1,
        "CR-": 5,
        "LC-": 5,
        "REC-": 2,
        "PFC-": 2,
        "RING-": 1,
        "GRP-": 3,
    },
    "rabbitmq": {
        "A": 7,
        "L": 3,
        "D": 1,
        "M": 3,
        "F": 2,
        "R": 1,
        "W": 1,
        "PD": 0,
        "P": 1,
        "PQ": 7,
        "I": 25,
        "Q": 6,
        "C": 4,
    },
    "activemq": {"AMQ-I": 33},
}
"""How many invariants of each kind the notes on a family of systems have; none may be missing.

A kind of which there are 0 is the id of the only one.
"""

ONE = """
[[invariant]]
id = "ENT-1"
systems = ["qpid-push"]
statement = "One has it."
sources = [{ document = "Priority Queues", section = "Priority Queues" }]
uncovered = "It is not looked at."
"""


def ids_of(family: str) -> list[str]:
    return [
        f"{kind}{number or ''}"
        for kind, many in NUMBERS[family].items()
        for number in range(min(many, 1), many + 1)
    ]


@pytest.mark.parametrize("family", NUMBERS)
def test_no_invariant_is_missing_and_none_is_made_up(family: str) -> None:
    assert list(invariants_of(family)) == ids_of(family)


def test_all_are_of_a_family_that_is_counted() -> None:
    assert sorted(invariants()) == sorted(each for family in NUMBERS for each in ids_of(family))


def test_statements_and_reasons_are_sentences() -> None:
    for each in invariants().values():
        for text in (each.statement, *([each.uncovered] if each.uncovered else [])):
            assert text[0].isupper(), each.id
            assert text.endswith("."), each.id


# Sources.


def test_every_source_exists() -> None:
    assert unknown_sources(invariants().values(), outlines()) == []


@pytest.mark.parametrize(
    "other",
    [
        '{ document = "Priority Queues", section = "The weather" }',
        '{ document = "Priority Queues", versions = "0.5" }',
        '{ document = "Some broker", versions = "0.5" }',
    ],
)
def test_a_source_that_does_not_exist_is_found(other: str) -> None:
    text = ONE.replace('{ document = "Priority Queues", section = "Priority Queues" }', other)
    assert len(unknown_sources(read_invariants("one.toml", text), outlines())) == 1


# Bindings.


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """Return the functions and classes of a file; none of one that is not there."""
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef))


def stale(binding: Binding) -> str:
    """Return what a binding names that is not there, or nothing."""
    match binding:
        case ByModel():
            return _stale_of_model(binding)
        case ByRequirement(requirement=requirement, broken_by=name):
            fault = faults().get(name)
            if requirement not in catalogue():
                return f"no requirement {requirement}"
            breaks = fault is not None and requirement in (fault.requirement, *fault.also)
            return "" if breaks else f"no fault {name} that breaks {requirement}"
        case ByThreads(broken_by=name):
            known = {each.id for each in thread_faults()}
            return "" if name in known else f"no fault {name} that needs threads"
        case ByTest(test=test, broken_by=name):
            return _unknown_test(test) or (_unknown_test(name) if name else "")


def _unknown_test(name: str) -> str:
    path, _, function = name.partition(":")
    function, _, case = function.removesuffix("]").partition("[")
    is_test = function.startswith("test_") and function in names_in(ROOT / path)
    return "" if is_test and (not case or case in cases_of(path, function)) else f"no test {name}"


@functools.cache
def cases_of(path: str, function: str) -> frozenset[str]:
    """Return the cases of a test that has one parameter, by their names."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    [mark] = [one for one in getattr(module, function).pytestmark if one.name == "parametrize"]
    return frozenset(mark.args[1])


def _stale_of_model(binding: ByModel) -> str:
    model = _model(binding.model)
    if model is None:
        return f"no model {binding.model}"
    system = trace(model)
    stated = {each.name for each in system.invariants} | {each.name for each in system.leads_to}
    if binding.statement not in stated:
        return f"{binding.model} does not state {binding.statement}"
    twin = _class(binding.broken_by)
    if twin is None or twin is model or not issubclass(twin, model):
        return f"no variant {binding.broken_by} of {binding.model}"
    text = (ROOT / binding.broken_by.partition(":")[0]).read_text(encoding="utf-8")
    # Defined, and asked about.
    return "" if text.count(twin.__name__) > 1 else f"{binding.broken_by} is refuted by no test"


def _model(name: str) -> type[Model] | None:
    return CATALOGUE[name].model if name in CATALOGUE else _class(name)


def _class(name: str) -> type[Model] | None:
    """Return the class that a file and a name mean, if there is one."""
    path, _, kind = name.partition(":")
    if kind not in names_in(ROOT / path):
        return None
    module = path.removesuffix(".py").replace("/", ".")
    found = getattr(
        importlib.import_module(
            module.replace("models", "brokerproof.models", 1)
            if module.startswith("models.")
            else module
        ),
        kind,
    )
    return found if inspect.isclass(found) and issubclass(found, Model) else None


@pytest.mark.parametrize(
    ("name", "binding"),
    [
        pytest.param(each.id, binding, id=f"{each.id} {number}")
        for each in invariants().values()
        for number, binding in enumerate(each.held)
    ],
)
def test_what_an_invariant_is_bound_to_is_there(name: str, binding: Binding) -> None:
    assert stale(binding) == "", name


VARIANTS = "tests/models/qpid/test_pointer_queue_variants.py"
PLANTED = (
    "tests/reference/rabbitmq/paging/test_paging_rules.py:test_a_planted_mistake_breaks_the_rule"
)


@pytest.mark.parametrize(
    ("binding", "complaint"),
    [
        (
            ByModel(model="no-queue", statement="a", broken_by=f"{VARIANTS}:TakesWhatIsHeld"),
            "no model no-queue",
        ),
        (
            ByModel(model="pointer-queue", statement="a", broken_by=f"{VARIANTS}:TakesWhatIsHeld"),
            "does not state a",
        ),
        (
            ByModel(
                model="pointer-queue", statement="candidate-is-first", broken_by=f"{VARIANTS}:Gone"
            ),
            "no variant",
        ),
        (
            ByModel(
                model="queue-runner",
                statement="no-lost-wake-up",
                broken_by=f"{VARIANTS}:TakesWhatIsHeld",
            ),
            "no variant",
        ),
        (ByRequirement(requirement="fifo", broken_by="release-drops"), "no requirement fifo"),
        (
            ByRequirement(requirement="fifo-order", broken_by="release-drops"),
            "no fault release-drops that breaks fifo-order",
        ),
        (ByThreads(broken_by="release-drops"), "no fault release-drops that needs threads"),
        (ByTest(test="tests/spec/test_invariants.py:stale"), "no test"),
        (ByTest(test="tests/spec/test_gone.py:test_a"), "no test"),
        (ByTest(test=f"{PLANTED}[A1]"), ""),
        (ByTest(test=f"{PLANTED}[A8]"), "no test"),
    ],
)
def test_what_is_not_there_is_found(binding: Binding, complaint: str) -> None:
    assert complaint in stale(binding)


# The files.


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[[invariant]]", "[[invariant", "one.toml: Expected ']]'"),
        ('["qpid-push"]', '["qpid"]', "Invalid enum value 'qpid'"),
        ('["qpid-push"]', "[]", "ENT-1 has no source, or is of no system"),
        ('uncovered = "It is not looked at."', "", "ENT-1 is held by nothing, and nothing says"),
        (', section = "Priority Queues"', "", "a source names a section, or versions"),
        ("uncovered", "covered", "unknown field `covered`"),
        (
            'uncovered = "It is not looked at."',
            'held = [{ by = "hearsay" }]',
            "Invalid value 'hearsay'",
        ),
    ],
)
def test_a_malformed_file_is_refused(old: str, new: str, complaint: str) -> None:
    assert old in ONE
    with pytest.raises(CatalogueError) as raised:
        read_invariants("one.toml", ONE.replace(old, new))
    assert complaint in str(raised.value)
    assert str(raised.value).startswith("one.toml: ")


# Where they are told.


@pytest.mark.parametrize("family", PAGES)
def test_the_page_is_made_of_the_file(family: str) -> None:
    assert (ROOT / PAGES[family]).read_text(encoding="utf-8") == page_of(family)


def test_what_is_compared_with_something_plain_is_held_by_a_test_without_a_twin() -> None:
    tests = [one for each in invariants().values() for one in each.held if isinstance(one, ByTest)]
    bare = {name_of(one) for one in tests if not one.broken_by}
    assert bare > COMPARED, "of the others a page says that no fault is planted"
    assert not COMPARED & {name_of(one) for one in tests if one.broken_by}


def test_the_command_prints_them() -> None:
    run = CliRunner().invoke
    everything = run(main, ["requirements", "--invariants"]).output
    assert all(f"\n{name} " in f"\n{everything}" for name in invariants())
    pull = run(main, ["requirements", "--invariants", "qpid-pull"]).output
    assert "\nQCM-1 " in pull
    assert "RUN-1 " not in pull
    paging = run(main, ["requirements", "--invariants", "rabbitmq-paging"]).output
    assert len(paging.splitlines()) == len(ids_of("rabbitmq"))
    assert "\nI25 " in paging
    wrong = run(main, ["requirements", "--invariants", "qpid-pop"])
    assert wrong.exit_code == 2
    assert "no invariants of 'qpid-pop' are stated; of " in wrong.output


def test_one_is_explained_with_what_holds_it() -> None:
    told = CliRunner().invoke(main, ["requirements", "RUN-3"]).output
    assert told.startswith("RUN-3 (qpid-push, qpid-priority)\n")
    assert "  held by: model queue-runner: in-the-slot-while-scheduled-or-walking, " in told
    assert "    broken by: tests/models/qpid/threads/test_queue_runner.py:KeepsTheSlot\n" in told
    assert "  not held: Sending cannot fail" in told
    told = CliRunner().invoke(main, ["requirements", "Q2"]).output
    assert told.startswith("Q2 (rabbitmq-paging)\n")
    assert "  source: RabbitMQ, releases, 2.8.2\n" in told
    assert "test_a_planted_mistake_in_the_index_breaks_the_rule[Q2]\n" in told

"""No requirement is kept that nothing would see broken, however often it was exercised."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections import Counter
from collections.abc import Mapping

import pytest
from msgspec.structs import asdict, replace

from brokerproof.checks.gate import stated
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.checks.oracle import contracts, translation
from brokerproof.checks.oracle.contracts import TOLERATED, goes_beyond_the_core, is_of_jobs
from brokerproof.checks.oracle.possibilities import Rules
from brokerproof.checks.subjects import Subject
from brokerproof.checks.threads.records import BROKEN_BY
from brokerproof.checks.verdicts import Evidence, Outcome, Verdict, is_claimed, judge
from brokerproof.models.contract.core import Contract, Entry
from brokerproof.models.contract.jobs import JobContract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.read.pointwise import Pointwise
from brokerproof.models.projections import statements_of
from brokerproof.reference import make
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import OFFERED, catalogue
from brokerproof.spec.systems import SYSTEM_OF, rules_of

THE_CORE = Capabilities(
    orders=("fifo", "priority"),
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages",),
    release_position="original",
    get=True,
    browse=True,
    inspect=True,
)
EVERYTHING = replace(
    THE_CORE,
    orders=("fifo", "priority", "sorted", "last_value"),
    credit=("messages", "bytes", "change", "channel"),
    **{name: True for name, value in asdict(THE_CORE).items() if value is False},
)
CLAIMS = {
    "whole": EVERYTHING,
    "tail": replace(EVERYTHING, release_position="tail"),
    "core": THE_CORE,
    "jobs": replace(
        THE_CORE,
        redelivered="count",
        lease="told",
        dead_letters=("exhausted", "rejected"),
        length_limit=("refuse", "drop_head"),
        clock=True,
        extend=True,
        delivery_limit=True,
        delayed_release=True,
        groups=True,
    ),
}
ASKED = [
    pytest.param(name, claims, id=f"{name}-{contract}")
    for name, requirement in catalogue().items()
    for contract, claims in CLAIMS.items()
    if is_claimed(requirement, claims, OFFERED)
    and (
        contract not in ("tail", "jobs")
        or not any(is_claimed(requirement, each, OFFERED) for each in (EVERYTHING, THE_CORE))
    )
]
"""Each requirement with the claims that it needs, of the core and of the whole."""


def verdict(name: str, claims: Capabilities) -> Verdict:
    """Return the verdict on a requirement that was exercised and never seen broken."""
    wanted = {name: catalogue()[name]}
    evidence = Evidence(exercised=Counter({name: 76}), offered=OFFERED)
    evidence.doubted |= stated.unstated(wanted, claims)
    return judge(wanted, claims, evidence)[0]


def unlabelled(model: type[Model], label: str) -> Pointwise:
    """Return a contract in which no guard states a requirement."""
    actions = tuple(
        dataclasses.replace(each, guards=tuple(g for g in each.guards if g.label != label))
        for each in trace(model).actions
    )
    return Pointwise(dataclasses.replace(trace(model), actions=actions), Entry)


def without_statement(kind: str, name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the invariants that views of a kind are held to, without those of one id."""
    return {
        model: {statement: each for statement, each in names.items() if each != name}
        for model, names in statements_of(kind).items()
    }


def leave_out(monkeypatch: pytest.MonkeyPatch, name: str, claims: Capabilities) -> None:
    """Take away all that could tell a breach of a requirement."""
    model = WholeContract if goes_beyond_the_core(claims) else Contract
    if is_of_jobs(claims):
        model = JobContract
    labels = {guard.label for each in trace(model).actions for guard in each.guards}
    if name in labels:
        rules = Rules(unlabelled(model, name), TOLERATED)
        monkeypatch.setattr(stated, "rules_for", lambda _claims: rules)
    for kind in SYSTEM_OF:
        monkeypatch.setattr(rules_of(kind), "IDS", rules_of(kind).IDS - {name})
    bound = {k: without_statement(k, name) for k in SYSTEM_OF}
    monkeypatch.setattr(stated, "statements_of", bound.__getitem__)
    of_threads = {w: each for w, each in BROKEN_BY.items() if each != name}
    monkeypatch.setattr(stated, "BROKEN_BY", of_threads)
    if name == REQUIREMENT:
        monkeypatch.setattr(stated, "REQUIREMENT", "")
    monkeypatch.setattr(stated, "OF_THE_PROTOCOL", stated.OF_THE_PROTOCOL - {name})


def test_each_requirement_is_asked_under_some_claims() -> None:
    assert {each.values[0] for each in ASKED} == catalogue().keys()


@pytest.mark.parametrize(("name", "claims"), ASKED)
def test_a_requirement_that_something_states_is_kept(name: str, claims: Capabilities) -> None:
    assert verdict(name, claims).outcome is Outcome.KEPT


@pytest.mark.each_time(30)
@pytest.mark.parametrize(("name", "claims"), ASKED)
def test_a_requirement_that_nothing_states_is_not(
    name: str, claims: Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out(monkeypatch, name, claims)
    found = verdict(name, claims)
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, stated.NOTHING_STATES_IT)


def test_what_the_oracle_judges_by_itself_is_what_no_model_states() -> None:
    tree = ast.parse(inspect.getsource(translation))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    broken = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "_break"
        and isinstance(call.args[0], ast.Constant)
    }
    of_core, of_whole, of_jobs = (
        {guard.label for each in trace(model).actions for guard in each.guards}
        for model in (Contract, WholeContract, JobContract)
    )
    labels = of_core | (of_jobs - of_whole)
    assert broken - labels == stated.OF_THE_PROTOCOL


def gate(name: str) -> Verdict:
    """Return the gate's verdict on a requirement of the reference broker."""
    subject = Subject(
        "reference", make("qpid-push").hello(), lambda: make("qpid-push"), in_process=True
    )
    wanted = {name: catalogue()[name]}
    report = run_gate(subject, wanted, Budget(operations=150, examples=6), seed=0)
    return report.verdicts[0]


@pytest.mark.thorough
def test_the_gate_says_nothing_of_a_guard_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = gate("release-rewinds")
    assert (kept.outcome, kept.exercised > 0) == (Outcome.KEPT, True)
    gone = Rules(unlabelled(WholeContract, "release-rewinds"), TOLERATED)
    monkeypatch.setattr(contracts, "whole", lambda: gone)
    found = gate("release-rewinds")
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, stated.NOTHING_STATES_IT)
    assert found.exercised > 0

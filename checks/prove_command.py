"""`brokerproof prove`: what the models promise, proved for families of any size.

Owns the words for a proof's results. Exit status: 0 all proved, 1 something refuted, unknown, or
proved only because nothing can happen, 2 no such model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from brokerproof.checks.model_argument import MODEL
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.model import ModelError, trace
from brokerproof.models.language.traces import trace_text

if TYPE_CHECKING:
    from brokerproof.models.language.prover import Condition, InvariantProof, Proof, Satisfied


@click.command("prove")
@click.argument("model", type=MODEL, required=False)
def prove(model: str | None) -> None:
    """Prove the invariants of MODEL, or of all models, for families of any size.

    For what is not proved, show a small state and the step that breaks it. Each action is also
    shown to be possible where the invariants hold, since a guard that never holds would keep
    everything.
    """
    # Z3 takes long to load, and no other command of the same program needs it.
    from brokerproof.models.language import prover  # noqa: PLC0415

    complete = True
    for name in [model] if model else list(CATALOGUE):
        click.echo(f"{name}")
        system = trace(CATALOGUE[name].model)
        width = max(len(statement.name) for statement in system.invariants)

        def report(proof: InvariantProof, width: int = width) -> None:
            for line in _invariant_lines(proof, width):
                click.echo(line)

        try:
            proof = prover.prove(system, report=report)
        except ModelError as error:
            raise click.UsageError(str(error)) from error
        for line in _possibility_lines(proof):
            click.echo(line)
        complete = complete and proof.complete
    if not complete:
        raise SystemExit(1)


def _invariant_lines(proof: InvariantProof, width: int) -> Iterator[str]:
    verdict = "proved for any size" if proof.outcome == "proved" else proof.outcome
    yield f"  {proof.name:<{width}}  {verdict}  {proof.seconds:.2f} s"
    for assumption in proof.assumptions:
        yield f"    assuming {assumption}"
    for condition in proof.conditions:
        if condition.outcome != "proved":
            yield from _condition_lines(condition)


def _condition_lines(condition: Condition) -> Iterator[str]:
    where = f"by {condition.action}" if condition.action else "initially"
    verb = "broken" if condition.outcome == "refuted" else "not decided"
    yield f"    {verb} {where}" + (f": {condition.reason}" if condition.reason else "")
    if condition.witness:
        text = trace_text(
            condition.witness, start="in this state" if condition.action else "initially"
        )
        yield from (f"      {line}" for line in text.splitlines())


def _possibility_lines(proof: Proof) -> Iterator[str]:
    yield f"  an initial state satisfies axioms and invariants: {_satisfied(proof.start)}"
    yield "  actions can fire where the invariants hold:"
    width = max(map(len, proof.firing), default=0)
    for action, satisfied in proof.firing.items():
        yield f"    {action:<{width}}  {_satisfied(satisfied)}"


def _satisfied(satisfied: Satisfied) -> str:
    if satisfied.outcome == "fires":
        return "with " + ", ".join(f"{name} {size}" for name, size in satisfied.sizes.items())
    return f"{satisfied.outcome.upper()}, {satisfied.reason}"

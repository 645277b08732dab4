"""`brokerproof prove`: the invariants of the models, proved for families of any size.

The file owns the order of the queries; `proof_lines` owns the words. Exit status: 0 all proved; 1
refuted, unknown, proved only since nothing can happen, a mutant neither refuted nor explained, or
nothing to prove; 2 no such model; 3 interrupted. Of several models, the worst.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click

from brokerproof.checks.commands import proof_lines
from brokerproof.checks.commands.options.model_argument import MODEL
from brokerproof.checks.commands.options.types import IntegerRange
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.workers.worker_pool import POSSIBLE, Lost, Tell, cores, in_order
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.core.model import ModelError, System, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from brokerproof.models.language.attack.mutation_testing import JudgedMutant
    from brokerproof.models.language.prove.cache import Cache
    from brokerproof.models.language.prove.prover import InvariantProof, Proof
    from brokerproof.models.language.prove.refinement import Standing


class ModelVerdict(NamedTuple):
    """Whether all of a model is well, and what the last line sums up.

    `carried` has the standing of each requirement in its refinement, `outcomes` the number of
    statements with each outcome.
    """

    complete: bool
    carried: dict[str, Standing]
    outcomes: Counter[str]


Z3_BYTES_MAX = 4 << 30
"""The memory of a process that judges mutants: Z3 keeps some of each question."""

BOUNDED_SIZE = 2
"""The size of each family in the search of runs of bounded length."""

QUICKLY_ATTACKED = (
    "contract",
    "queue-runner",
)
"""The models that --attack takes if none is named; each needs no more than minutes."""


@click.command("prove")
@click.argument("model", type=MODEL, required=False)
@click.option(
    "--attack", "attacked", is_flag=True, help="Show what refutes each change of the model."
)
@click.option(
    "--bounded",
    type=IntegerRange(min=0),
    metavar="K",
    help="Only search for a violation within K steps of the beginning.",
)
@click.option("--no-cache", is_flag=True, help="Decide everything anew and keep nothing.")
def prove(
    model: tuple[str, ...] | None, attacked: bool, bounded: int | None, no_cache: bool
) -> None:
    """Prove the invariants of MODEL, or of all models, for families of any size.

    A documented system's name, such as rabbitmq-paging, stands for all its models.
    Without MODEL, --attack takes only the models that together need no more than minutes.

    For an invariant that is not proved, show a small state and the step that breaks it, and a run
    to it if one is found. Each action is also shown to be possible where the invariants hold, since
    a guard that never holds would keep every invariant. Results are kept in .brokerproof/proofs.
    """
    # Z3 takes long to load, and no other command needs it.
    from brokerproof.models.language.prove.cache import FOLDER, Cache  # noqa: PLC0415
    from brokerproof.models.language.prove.interruption import between_questions  # noqa: PLC0415

    if attacked and bounded is not None:
        raise click.UsageError("--attack and --bounded are two questions: ask one at a time")
    cache = Cache(None if no_cache else FOLDER)

    def judged(name: str) -> ModelVerdict:
        click.echo(name)
        with between_questions():
            if attacked:
                return ModelVerdict(_attack(name, cache), {}, Counter())
            if bounded is not None:
                return ModelVerdict(_bounded(name, bounded), {}, Counter())
            return _prove(name, cache)

    names = model or (QUICKLY_ATTACKED if attacked else tuple(CATALOGUE))
    standings: dict[str, dict[str, Standing]] = {}
    outcomes: Counter[str] = Counter()
    complete = True
    try:
        # The mutants of one model are spread over the cores.
        each = map(judged, names) if attacked else _each(names, judged)
        for name, found in zip(names, each, strict=True):
            complete = complete and found.complete
            outcomes += found.outcomes
            for label, standing in found.carried.items():
                standings.setdefault(label, {})[name] = standing
    except ModelError as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("  interrupted: what stands above was decided, the rest was not")
        raise SystemExit(3) from None
    if outcomes:
        click.echo(proof_lines.sum_line(outcomes, standings))
    if not complete:
        raise SystemExit(1)


def _each(names: Sequence[str], judged: Callable[[str], ModelVerdict]) -> Iterator[ModelVerdict]:
    """Judge the only model here, or several in a process for each core; print them in order."""
    if len(names) == 1:
        yield judged(names[0])
        return

    def work(number: int, tell: Tell) -> tuple[str, ModelVerdict]:
        tell(names[number], 0)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            found = judged(names[number])
        return said.getvalue(), found

    in_turn = in_order(work, len(names), cores(), lambda name, _: _note(name))
    with contextlib.closing(in_turn):
        for found in in_turn:
            _note()
            if isinstance(found, Lost):
                raise CannotRun(f"{names[found.task]}: the process that proves it {found.how}")
            said, outcome = found
            click.echo(said, nl=False)
            yield outcome


def _spread(judge: Callable[[int], JudgedMutant], many: int) -> Iterator[JudgedMutant]:
    """Judge mutants in a process for each core."""
    from brokerproof.models.language.prove.interruption import at_once  # noqa: PLC0415

    in_turn = in_order(
        lambda number, _: judge(number), many, cores(), lambda *_: None, Z3_BYTES_MAX
    )
    with (
        at_once() if POSSIBLE and cores() > 1 else contextlib.nullcontext(),
        contextlib.closing(in_turn),
    ):
        for found in in_turn:
            if isinstance(found, Lost):
                raise CannotRun(f"the process that judges mutant {found.task + 1} {found.how}")
            yield found


def _note(what: str = "") -> None:
    """Show the progress on a terminal, in a line that the next note replaces."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{what[:76]}", nl=False, err=True)


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _prove(name: str, cache: Cache) -> ModelVerdict:
    listed = CATALOGUE[name]
    system = trace(listed.model)
    proof = _state(system, f"proof-{name}", cache)
    complete, outcomes = proof.complete, Counter(each.outcome for each in proof.stated)
    if listed.ledger:
        click.echo("  and with a ledger of what clients have seen:")
        shown = [each.name for each in proof.stated]
        beside = _state(trace(listed.ledger), f"ledger-{name}", cache, shown)
        complete = complete and beside.complete
        outcomes += Counter(each.outcome for each in beside.stated if each.name not in shown)
    refined, carried = _refine(name, cache)
    swapped = _swap(system, cache)
    complete = bool(system.invariants) and complete and refined and swapped
    return ModelVerdict(complete, carried, Counter(outcomes))


def _state(system: System, kept_as: str, cache: Cache, known: Sequence[str] = ()) -> Proof:
    """Prove the statements of a system, and show all but the known ones."""
    from brokerproof.models.language.prove import prover  # noqa: PLC0415
    from brokerproof.models.language.prove.shape import complaints  # noqa: PLC0415

    properties = {each.name: each for each in system.leads_to}
    width = max(map(len, [*properties, *(each.name for each in system.invariants)]), default=0)
    shown = []

    def report(proof: InvariantProof) -> None:
        shown.append(proof.name)
        if proof.name not in known:
            _show(proof_lines.invariant_lines(proof, width, properties.get(proof.name)))

    proof = cache.kept(prover.Proof, kept_as, prover.prove, system, report=report)
    if not shown:
        for each in proof.stated:
            report(each)
    if any(each.outcome == "unknown" for each in proof.stated):
        _show(f"  Z3 may not decide everything: {each}" for each in complaints(system))
    _show(proof_lines.possibility_lines(proof))
    _show(proof_lines.idle_lines(system))
    _show(proof_lines.unproved_lines(system))
    return proof


def _refine(name: str, cache: Cache) -> tuple[bool, dict[str, Standing]]:
    """Prove the refinement of a model; return whether it is, and the requirements' standings."""
    from brokerproof.models.language.prove.binding import bind  # noqa: PLC0415
    from brokerproof.models.language.prove.refinement import RefinementProof  # noqa: PLC0415
    from brokerproof.models.refinements import REFINEMENTS, carried_by  # noqa: PLC0415

    refinement = REFINEMENTS.get(name)
    if refinement is None or not issubclass(refinement.concrete, CATALOGUE[name].model):
        return True, {}
    proof = cache.kept(RefinementProof, f"refinement-{name}", bind(refinement).proof)
    _show(proof_lines.refinement_lines(proof))
    carried = carried_by(trace(refinement.abstract))
    _show(proof_lines.requirement_lines(proof, carried))
    _show(proof_lines.added_lines(trace(refinement.concrete), trace(CATALOGUE[name].model)))
    return proof.complete, {label: proof.standing(label) for label in carried}


def _swap(system: System, cache: Cache) -> bool:
    from brokerproof.models.contract import swaps  # noqa: PLC0415
    from brokerproof.models.contract.core import Contract  # noqa: PLC0415
    from brokerproof.models.language.prove.commutation import Commutation, pair  # noqa: PLC0415

    if system is not trace(Contract):
        return True
    complete = True
    click.echo("  a delivery can be swapped with what follows it:")
    for expected, table in ((True, swaps.SWAPPED), (False, swaps.NOT_SWAPPED)):
        for second, where, side in table:
            decide = pair(system, "deliver", second, side).commute
            found = cache.kept(Commutation, f"swap-{second}", decide)
            _show(proof_lines.swap_lines(found, where, expected=expected))
            complete = complete and found.complete == expected
    return complete


def _bounded(name: str, steps: int) -> bool:
    from brokerproof.models.language.core.scope import families  # noqa: PLC0415
    from brokerproof.models.language.prove.bounded import check_bounded  # noqa: PLC0415

    system = trace(CATALOGUE[name].model)
    found = check_bounded(system, dict.fromkeys(families(system), BOUNDED_SIZE), steps)
    _show(proof_lines.bounded_lines(found))
    return not found.violation and not found.unknown


def _attack(name: str, cache: Cache) -> bool:
    from brokerproof.models.language.attack.mutation_testing import (  # noqa: PLC0415
        Attack,
        attack,
    )
    from brokerproof.models.refinements import attack_on  # noqa: PLC0415

    judged: list[JudgedMutant] = []
    subject = attack_on(name)

    def report(each: JudgedMutant) -> None:
        judged.append(each)
        _note(f"  {len(judged)} mutants, {each.name}")

    try:
        found = cache.kept(Attack, f"attack-{name}", attack, subject, report=report, spread=_spread)
    except KeyboardInterrupt:
        _show(proof_lines.mutant_lines(judged))
        raise
    finally:
        _note()
    _show(proof_lines.attack_lines(found))
    return found.complete

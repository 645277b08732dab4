"""The words for the prover's results: proofs, refinements, swaps, bounded runs, mutation testing.

The file prints these results line by line and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from brokerproof.models.language.core.rewriting import substitute
from brokerproof.models.language.core.terms import Term, fresh
from brokerproof.models.language.core.traces import Step, trace_text

if TYPE_CHECKING:
    from brokerproof.models.language.attack.mutation_testing import Attack, JudgedMutant
    from brokerproof.models.language.core.systems import LeadsTo, System
    from brokerproof.models.language.prove.bounded import Bounded
    from brokerproof.models.language.prove.commutation import Commutation
    from brokerproof.models.language.prove.prover import Condition, InvariantProof, Proof, Satisfied
    from brokerproof.models.language.prove.refinement import RefinementProof, Standing


def invariant_lines(
    proof: InvariantProof, width: int, progress: LeadsTo | None = None
) -> Iterator[str]:
    """Yield the result for an invariant, a counter or a liveness property, and what breaks it.

    `progress` is the liveness property, whose argument is shown too.
    """
    verdict: str = "proved for any size" if proof.outcome == "proved" else proof.outcome
    verdict = "SAYS NOTHING" if proof.says_nothing else verdict
    yield f"  {proof.name:<{width}}  {verdict}  {proof.seconds:.2f} s"
    if proof.says_nothing and progress is None:
        yield "    it is true of every state, reached or not"
    elif proof.says_nothing:
        yield "    no state has its premise without its conclusion"
    if progress is not None:
        yield from _liveness_lines(progress)
    for assumption in proof.assumptions:
        yield f"    assuming {assumption}"
    for condition in proof.conditions:
        if condition.outcome != "proved":
            yield from _condition_lines(condition)


def _condition_lines(condition: Condition) -> Iterator[str]:
    if condition.of:
        yield from _rank_lines(condition)
        return
    where = f"by {condition.action}" if condition.action else "initially"
    verb = "broken" if condition.outcome == "refuted" else "not decided"
    yield f"    {verb} {where}" + (f": {condition.reason}" if condition.reason else "")
    if condition.witness:
        start = "in this state" if condition.action else "initially"
        yield from _trace_lines(condition.witness, start)
    if condition.run:
        yield f"    reachable, in {len(condition.run) - 1} steps and no fewer in this scope:"
        yield from _trace_lines(condition.run, "initially")
    elif condition.action and condition.outcome == "refuted":
        yield "    no run to it was found: so far a counterexample to induction, nothing more"


def _liveness_lines(progress: LeadsTo) -> Iterator[str]:
    """Yield what leads to what, under which fairness, and by which rank."""
    assert progress.rank is not None, "only properties with a rank are proved"
    sentence, _, _ = progress.doc.partition("\n\n")
    yield f"    that is: {' '.join(sentence.split())}"
    fair = ", ".join(progress.fair)
    if progress.together:
        yield f"    if one of these steps is taken wherever one or another stays possible: {fair}"
    else:
        yield f"    if none of these steps stays possible for ever and is never taken: {fair}"
    this = {p: fresh(type(p), f"this {p}") for p in progress.parameters}
    for name, term in progress.finitely.items():
        where = "" if term.op == "constant" else f" where {_in_words(substitute(term, this))}"
        yield f"    if {name}{where} happens finitely often"
    words = progress.rank.words or f"{len(progress.rank.parts)} parts, stated in the model"
    yield f"    because they lower a rank, and no other step raises it until then: {words}"


_SPOKEN = (("~", "not "), (" & ", " and "), (" | ", " or "), (" = ", " is "))


def _in_words(term: Term) -> str:
    """Return a formula with words for its signs, without the outermost parentheses."""
    text = repr(term)
    for sign, word in _SPOKEN:
        text = text.replace(sign, word)
    infix = term.op != "not" and text.startswith("(")
    return text[1:-1] if infix else text


def _rank_lines(condition: Condition) -> Iterator[str]:
    verb = "this may fail" if condition.outcome == "refuted" else "not decided"
    step = f" after {condition.action}" if condition.action else ""
    yield f"    {verb}{step}: {condition.of}" + (
        f"; {condition.reason}" if condition.reason else ""
    )
    if condition.witness:
        yield from _trace_lines(condition.witness, "in this state")
    yield "    so the rank does not show the property; `explore` checks it in a scope"


def _trace_lines(steps: Sequence[Step], start: str) -> Iterator[str]:
    yield from (f"      {line}" for line in trace_text(steps, start=start).splitlines())


def possibility_lines(proof: Proof) -> Iterator[str]:
    """Yield whether an initial state exists, and whether each action can happen."""
    yield f"  an initial state satisfies axioms and invariants: {_satisfied(proof.start)}"
    yield "  actions are possible in some state where the invariants hold, reached or not:"
    alike: dict[str, list[str]] = {}
    for action, satisfied in proof.firing.items():
        alike.setdefault(_satisfied(satisfied), []).append(action)
    yield from (f"    {how}: {', '.join(actions)}" for how, actions in alike.items())


def unproved_lines(system: System) -> Iterator[str]:
    """Yield the properties that the prover does not cover."""
    if not system.invariants:
        yield "  NOTHING TO PROVE: the model has no @invariant"
    for progress in system.leads_to:
        if progress.rank is None:
            yield f"  not proved: {progress.name}; `explore` checks it in a scope"


def idle_lines(system: System) -> Iterator[str]:
    """Yield the actions that write nothing: they may be queries, or lack an assignment."""
    idle = [action.name for action in system.actions if not action.updates]
    if idle:
        yield f"  actions that change nothing: {', '.join(idle)}"


def added_lines(concrete: System, model: System) -> Iterator[str]:
    """Yield the steps that a refined model adds to those of its abstract model."""
    known = {action.name for action in model.actions}
    added = [action.name for action in concrete.actions if action.name not in known]
    if added:
        yield f"    of {concrete.name}, which adds to {model.name}: {', '.join(added)}"


def _satisfied(satisfied: Satisfied) -> str:
    if satisfied.outcome == "fires":
        sizes = ", ".join(f"{name} {size}" for name, size in satisfied.sizes.items())
        return f"with {sizes}" if sizes else "without families"
    return f"{satisfied.outcome.upper()}, {satisfied.reason}"


def refinement_lines(proof: RefinementProof) -> Iterator[str]:
    """Yield the witness of each concrete action, and how many of its obligations are proved."""
    yield f"  {proof.name}  {proof.seconds:.2f} s"
    rows = [("", "start, rigid things, invariants of the history"), *proof.witnesses.items()]
    width = max(len(action) for action, _ in rows)
    for action, words in rows:
        answers = [answer for answer in proof.answers if answer.action == action]
        kept = sum(answer.outcome == "proved" for answer in answers)
        trivial = sum(answer.by_construction for answer in answers)
        said = f"{kept} of {len(answers)} proved, {trivial} of them by construction"
        yield f"    {action or 'start':<{width}}  {said}  {words}"
        for answer in answers:
            if answer.outcome != "proved":
                reason = f": {answer.reason}" if answer.reason else ""
                yield f"      {answer.outcome}: {answer.name}{reason}"
                if answer.witness:
                    yield from _trace_lines(answer.witness, "in this state")
    for assumption in proof.assumptions:
        yield f"    assuming {assumption}"
    if proof.fixed:
        yield f"    proved only where {', '.join(proof.fixed)}"
    if proof.never:
        yield f"    never taken: {', '.join(proof.never)}"
    for label, reason in proof.left_out:
        yield f"    left out: {label}, since {reason}"


def requirement_lines(
    proof: RefinementProof, carried: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield a line for each requirement; `carried` gives the contract's actions that it guards."""
    width = max(map(len, carried))
    yield "    of each requirement:"
    for label, actions in carried.items():
        yield f"      {label:<{width}}  {said_of(proof, label, actions)}"


def said_of(proof: RefinementProof, label: str, actions: Sequence[str]) -> str:
    """Return the standing of a requirement, and the steps of the algorithm that it guards."""
    standing = proof.standing(label)
    if standing == "no step":
        return f"no step, since it never takes {' or '.join(actions)}"
    part = " in part" if label in dict(proof.left_out) else ""
    return f"{standing}{part}: {', '.join(dict.fromkeys(a.action for a in proof.about(label)))}"


def sum_line(outcomes: Counter[str], standings: Mapping[str, Mapping[str, Standing]]) -> str:
    """Return how many statements of models are proved, and how many requirements of an algorithm.

    `standings` are by label and model.
    """
    statements = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    said = f"{outcomes.total()} statements of models: {statements}"
    if not standings:
        return said
    best = [
        next((each for each in _SUMS if each in of.values()), "refuted or unknown")
        for of in standings.values()
    ]
    sums = [f"{count} {_SUMS.get(each, each)}" for each, count in Counter(best).items()]
    return f"{said}; {len(best)} requirements of the contract: {', '.join(sums)}"


_SUMS: dict[str, str] = {
    "proved": "proved (in part where a line says so)",
    "by construction": "true by construction alone",
    "no step": "of no algorithm here, since none has such a step",
}


def swap_lines(found: Commutation, where: str, *, expected: bool) -> Iterator[str]:
    """Yield whether two steps can be swapped, and what shows that they cannot."""
    if found.complete:
        verdict = "proved" if expected else "PROVED, and was believed to be false"
    elif found.leaves_possible != "proved":
        verdict = f"{found.leaves_possible}: it takes away the other's turn"
        verdict += f" ({', '.join(found.labels)})" if found.labels else ""
    else:
        verdict = f"{found.ends_alike}: the two orders end differently"
    as_expected = "" if expected or found.complete else ", as expected"
    yield f"    {found.first}, {found.second} {where}: {verdict}{as_expected}"
    if expected and found.witness:
        yield from _trace_lines(found.witness, "in this state")


def bounded_lines(found: Bounded) -> Iterator[str]:
    """Yield how far no violation was found, or the shortest run to one."""
    if found.unknown:
        yield f"  not decided at step {found.steps} with {found.scope}: {found.unknown}"
    elif found.violation:
        yield f"  {found.violation.invariant} is broken after {found.steps} steps and no fewer"
        yield from _trace_lines(found.violation.trace, "initially")
    else:
        yield f"  no violation within {found.steps} steps with {found.scope}"


_OUTCOMES = {
    "reachable": ("a run breaks", "broken by a run"),
    "induction": ("induction is lost for", "lose induction"),
    "promise": ("the ledger is broken:", "break the ledger"),
    "refinement": ("the refinement is lost for", "lose the refinement"),
    "requirement": ("a requirement says otherwise:", "change a requirement"),
    "label": ("no more than its label is lost:", "lose their label alone"),
    "equivalent": ("the same model", "the same model"),
    "stronger": ("allows less", "allow less"),
    "survivor": ("survives:", "survive"),
}
"""The words for one mutant with an outcome, and the words behind the number of all of them."""


NAME_WIDTH = 80
"""The characters of a mutant's name in a column; the few longer names stand out of it."""


def mutant_lines(judged: Sequence[JudgedMutant]) -> Iterator[str]:
    """Yield a line for each mutant with its refutation."""
    width = min(max((len(each.name) for each in judged), default=0), NAME_WIDTH)
    for each in judged:
        by = "; ".join(each.by)
        many = len(each.witness) - 1
        taken = f", in {many} step{'' if many == 1 else 's'}"
        steps = taken if each.outcome == "reachable" else ""
        if each.outcome == "survivor" and not each.by:
            by = "NO REASON IS KNOWN"
        yield f"  {each.name:<{width}}  {_OUTCOMES[each.outcome][0]} {by}{steps}".rstrip()


def attack_lines(attack: Attack) -> Iterator[str]:
    """Yield a line for each mutant with its refutation, and then the totals."""
    yield from mutant_lines(attack.judged)
    counts = Counter[str](each.outcome for each in attack.judged)
    sums = ", ".join(
        f"{counts[each]} {said}" for each, (_, said) in _OUTCOMES.items() if counts[each]
    )
    yield f"  {len(attack.judged)} mutants: {sums}  {attack.seconds:.0f} s"
    for place, names in attack.different.items():
        yield f"  {place}: {len(names)} survive, {attack.expected(place)} explained"
        yield from (f"    {name}" for name in names)

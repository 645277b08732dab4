"""`brokerproof where`: where a requirement is stated, proved, executed and tested, as file:line."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from brokerproof import spec
from brokerproof.checks.commands.proof_lines import said_of
from brokerproof.checks.errors import CannotRun
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.core.model import trace
from brokerproof.spec.invariants import ByModel, Invariant, invariants
from brokerproof.spec.nearest import meant
from brokerproof.spec.requirements import ADDRESSES, Requirement, catalogue

if TYPE_CHECKING:
    from brokerproof.models.language.prove.refinement import RefinementProof

ROOT = Path(spec.__file__).resolve().parents[1]
"""The folder of all rooms: of a checkout, or of the installed package."""
GUARDS = "models/contract/[cjlw]*.py"
"""The files of the contract, whose labelled guards are the requirements."""
FOUND_MAX = 30


@click.command()
@click.argument("word", metavar="ID|WORD")
def where(word: str) -> None:
    """Show where a requirement or an invariant is stated, proved, executed, tested and described.

    For a WORD, list the ids whose sentence has it, and the reference's and the models' lines whose
    name or docstring has it: a term or a section of a document, in its spelling (`deliverMessage`),
    or a model's own invariant.
    Planted faults and pages are in a checkout only.
    """
    known: dict[str, Requirement | Invariant] = {**catalogue(), **invariants()}
    if word in known:
        click.echo("\n".join(lines_about(word)))
        return
    sentences = [f"{each.id:<28} {each.statement}" for each in known.values()]
    lists = (
        [each for each in sentences if word.lower() in each.lower()],
        *([*_described(word, room)] for room in ("reference", "models/[!l]*")),
    )
    if not any(lists):
        raise CannotRun(
            f"no id and no sentence has {word!r}{meant(word, known)}; "
            "`brokerproof requirements` lists all ids"
        )
    for found in lists:
        click.echo("\n".join(found[:FOUND_MAX]), nl=bool(found))
        if len(found) > FOUND_MAX:
            click.echo(f"and {len(found) - FOUND_MAX} more")


def _described(word: str, room: str) -> Iterator[str]:
    """Yield each definition of a room that has a word: in its name, or else in its docstring."""
    sought = _folded(word)
    said = []
    for path, lines in _texts(f"{room}/**/*.py"):
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                name, text = getattr(node, "name", "module"), ast.get_docstring(node) or ""
                line = (
                    f"{path}:{getattr(node, 'lineno', 1)} {name}: {''.join(text.splitlines()[:1])}"
                )
                if sought in _folded(f"{name} {_stated(node)}"):
                    yield line
                elif sought in _folded(" ".join(text.split())):
                    said.append(line)
    yield from said


def _stated(node: ast.AST) -> str:
    """Return the name of the invariant or the property that a method of a model states."""
    for each in getattr(node, "decorator_list", ()):
        if isinstance(each, ast.Call) and each.args and isinstance(each.args[0], ast.Constant):
            return str(each.args[0].value)
    return ""


def _folded(text: str) -> str:
    """Return a text as it is compared: `deliverMessage` is `deliver_message`."""
    return text.lower().replace("_", "")


def lines_about(name: str) -> Iterator[str]:
    """Yield all places of one id, each as ``file:line``."""
    requirement, invariant = catalogue().get(name), invariants().get(name)
    yield from _head(requirement, invariant)
    yield from _guards(name)
    yield from _places("promise", f'"{name}"', "models/contract/ledger/*.py")
    yield from _theorems(name)
    yield from _places("rule of a view", f'"{name}"', "spec/*/view_rules.py")
    yield from _places("rule on histories", f'"{name}"', "pipeline/rules/history_rules.py")
    for binding in invariant.held if invariant is not None else ():
        if isinstance(binding, ByModel):
            yield from _of_model(binding)
        else:
            yield f"  held by: {binding}"
        if binding.broken_by:
            yield f"    broken by: {binding.broken_by}"
    if invariant is not None and invariant.uncovered:
        yield f"  not held: {invariant.uncovered}"
    yield from _faults(name)
    yield from _places("page", f"`{name}`", "docs/**/*.md")


def _head(requirement: Requirement | None, invariant: Invariant | None) -> Iterator[str]:
    each = invariant or requirement
    if each is None:
        return
    kinds = [requirement.level.value] if requirement else []
    yield f"{each.id} ({', '.join([*kinds, *(invariant.systems if invariant else ())])})"
    yield f"  {each.statement}"
    if requirement and requirement.statement != each.statement:
        yield f"  asked of a view: {requirement.statement}"
    if requirement:
        yield f"  exercised when: {requirement.situation}"
    for source in each.sources:
        yield f"  source: {source}"
        if source.document in ADDRESSES:
            yield f"    {ADDRESSES[source.document]}"
    if requirement and requirement.needs:
        yield f"  asked of candidates that claim: {', '.join(requirement.needs)}"


def _guards(name: str) -> Iterator[str]:
    """Yield the lines of the guards with a label, or, without any, those that exercise it."""
    guards, exercised = _labels(is_exercised=False), _labels(is_exercised=True)
    yield from (f"  guard: {place}" for place in guards.get(name, ()))
    yield from (f"  exercised: {place}" for place in exercised.get(name, ()) if name not in guards)


@functools.cache
def _labels(*, is_exercised: bool) -> dict[str, list[str]]:
    """Return the lines of the contract that have a text among the arguments of a call, by text.

    They are those of `exercises`, or those of all other calls and of lists of labels.
    """
    found: dict[str, list[str]] = {}
    for path, lines in _texts(GUARDS):
        for call in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(call, ast.Call | ast.Tuple):
                continue
            named = isinstance(call, ast.Call) and ast.unparse(call.func) == "exercises"
            for part in call.args if isinstance(call, ast.Call) else call.elts:
                if isinstance(part, ast.Constant) and named is is_exercised:
                    found.setdefault(str(part.value), []).append(f"{path}:{part.lineno}")
    return found


def _of_model(binding: ByModel) -> Iterator[str]:
    """Yield the lines of a statement of a model, and the result of its last proof."""
    yield f"  held by: {binding}, {_proof(binding)}"
    for path, number, line in _found(f'"{binding.statement}"', "models/**/*.py"):
        name, is_named, _ = line.partition(" = ")
        # A statement named by a constant is shown where the constant is used.
        used = [*_lines(f"@invariant({name}", str(path))] if is_named else []
        yield from (f"    {each}" for each in used or [f"{path}:{number}"])


def _proof(binding: ByModel) -> str:
    from brokerproof.models.language.prove import prover  # noqa: PLC0415 (Z3 is slow to load)
    from brokerproof.models.language.prove.cache import FOLDER, Cache  # noqa: PLC0415

    if binding.model not in CATALOGUE:
        return "proved by a test"
    kept = Cache(FOLDER).known(
        prover.Proof, f"proof-{binding.model}", prover.prove, trace(CATALOGUE[binding.model].model)
    )
    if kept is None:
        return f"not proved on this machine yet; run: brokerproof prove {binding.model}"
    return next(each.outcome for each in kept.stated if each.name == binding.statement)


def _theorems(name: str) -> Iterator[str]:
    from brokerproof.models.refinements import REFINEMENTS  # noqa: PLC0415 (takes its time)

    for model, said in theorems(name):
        yield f"  theorem of {model}: {said}"
        for place in _lines(f'name="{REFINEMENTS[model].name}"', "models/**/*.py"):
            yield f"    refinement, for any number of messages: {place}"


def theorems(name: str, *, deciding: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each algorithm's model that a requirement is asked of, and the standing in its proof.

    The last proof counts; where there is none, `deciding` makes one, which takes up to minutes.
    """
    for model, carried, proof in _refinements(deciding):
        if name in carried:
            undecided = f"not proved on this machine yet; run: brokerproof prove {model}"
            yield model, said_of(proof, name, carried[name]) if proof else undecided


@functools.cache
def _refinements(
    deciding: bool,
) -> list[tuple[str, dict[str, tuple[str, ...]], RefinementProof | None]]:
    """Return each algorithm's model, the requirements it is about, and its last proof."""
    # Z3 is slow to load.
    from brokerproof.models.language.prove.binding import bind  # noqa: PLC0415
    from brokerproof.models.language.prove.cache import FOLDER, Cache  # noqa: PLC0415
    from brokerproof.models.language.prove.refinement import RefinementProof  # noqa: PLC0415
    from brokerproof.models.refinements import REFINEMENTS, carried_by  # noqa: PLC0415

    cache = Cache(FOLDER)
    found = cache.kept if deciding else cache.known
    return [
        (
            model,
            carried_by(trace(refinement.abstract)),
            found(RefinementProof, f"refinement-{model}", bind(refinement).proof),
        )
        for model, refinement in REFINEMENTS.items()
    ]


def _faults(name: str) -> Iterator[str]:
    """Yield each planted fault that breaks a requirement, and the lines that keep it."""
    for path, fault in planted_faults():
        if fault.get("requirement") == name:
            yield f"  planted fault: {fault['id']} ({path})"
            for edit in fault.get("edits", ()):
                for text in edit["old"].strip().splitlines()[:1]:
                    found = _lines(text, f"reference/{edit['file']}")
                    yield from (f"    {each}" for each in found)


@functools.cache
def planted_faults() -> list[tuple[Path, dict[str, Any]]]:
    """Return the planted faults of a checkout, as they are written."""
    return [
        (path.relative_to(ROOT), fault)
        for path in sorted(ROOT.glob("tests/faults/*/*.toml"))
        for fault in tomllib.loads(path.read_text("utf-8")).get("fault", ())
    ]


def _places(kind: str, text: str, pattern: str) -> Iterator[str]:
    """Yield each place in a file of ours, and the first in a page."""
    for path, number, _ in _found(text, pattern, all_of_them=not pattern.endswith(".md")):
        yield f"  {kind}: {path}:{number}"


def _lines(text: str, pattern: str) -> Iterator[str]:
    """Yield the first place of each file that has a text."""
    yield from (f"{path}:{number}" for path, number, _ in _found(text, pattern))


def _found(
    text: str, pattern: str, *, all_of_them: bool = False
) -> Iterator[tuple[Path, int, str]]:
    """Yield the first line of each file that has a text, with its number, or all of them."""
    for path, lines in _texts(pattern):
        for number, line in enumerate(lines, start=1):
            if text in line:
                yield path, number, line
                if not all_of_them:
                    break


@functools.cache
def _texts(pattern: str) -> tuple[tuple[Path, list[str]], ...]:
    """Return the lines of each file."""
    return tuple(
        (path.relative_to(ROOT), path.read_text("utf-8").splitlines())
        for path in sorted(ROOT.glob(pattern))
    )

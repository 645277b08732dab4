"""The argument that names models on the command line: one of ours, one in a file, or a system's."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import traceback
from pathlib import Path

import click

from brokerproof.checks.errors import CannotRun
from brokerproof.models.catalogue import CATALOGUE, SYSTEMS, Listed
from brokerproof.models.language.core.model import Model, ModelError, trace
from brokerproof.models.language.core.scope import default_scope
from brokerproof.models.language.core.systems import System
from brokerproof.spec.nearest import meant

FILE_SCOPE_SIZE = 2
"""The size of each family of a model in a file, unless the command line sets another."""


class ModelNames(click.ParamType[tuple[str, ...]]):
    """A name in the catalogue of models, a documented system's, or `FILE.py:CLASS`.

    A system's name stands for its models; a model from a file joins the catalogue. Any other text
    is an error of usage that lists the names, and suggests similar ones.
    """

    name = "model"

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        """Return the names of the models."""
        if isinstance(value, tuple):
            return value
        if value in CATALOGUE:
            return (value,)
        if value in SYSTEMS:
            return SYSTEMS[value]
        path, _, name = value.rpartition(":")
        if value.endswith(".py"):
            path, name = value, ""
        if not path.endswith(".py"):
            known = (*CATALOGUE, *SYSTEMS)
            self.fail(
                f"there is no model {value!r}{meant(value, known)}: try {', '.join(known)}, "
                "or FILE.py:CLASS",
                param,
                ctx,
            )
        try:
            model = _loaded(Path(path), name)
            CATALOGUE[value] = Listed(
                model, default_scope(_traced(model, Path(path)), FILE_SCOPE_SIZE)
            )
        except ModelError as error:
            raise CannotRun(str(error)) from error
        return (value,)


def _traced(model: type[Model], path: Path) -> System:
    """Trace a model; any exception becomes a `ModelError` with the line in the user's file."""
    try:
        return trace(model)
    except Exception as error:  # a user's text can raise anything
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve()]
        text = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
        if isinstance(error, AttributeError):
            text += meant(str(error.name), dir(error.obj))
        line = lines[-1] if lines else _line_named(path, model.__name__, text)
        raise ModelError(f"{path}, line {line}: {text}") from error


def _line_named(path: Path, model: str, text: str) -> int:
    """Return the line of the part of a model that a text names, or else of the model."""
    words = {*re.findall(r"[\w-]+", text)}
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    own = next((n for n in nodes if isinstance(n, ast.ClassDef) and n.name == model), None)
    for part in own.body if own is not None else ():
        names = {getattr(part, "name", "")} | {
            each.value
            for decorator in getattr(part, "decorator_list", ())
            for each in ast.walk(decorator)
            if isinstance(each, ast.Constant)
        }
        if isinstance(part, ast.AnnAssign):
            names.add(ast.unparse(part.target))
        if words & names:
            return part.lineno
    return own.lineno if own is not None else 1


def _loaded(path: Path, name: str) -> type[Model]:
    """Run a file and return its model of that name; raises `ModelError`."""
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"model_in_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # Annotations are looked up in the module of a class, which must therefore be registered.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file can raise anything
        raise ModelError(f"{path} does not load: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, Model) and found is not Model:
        return found
    models = [
        other
        for other, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Model) and value.__module__ == spec.name
    ]
    listing = f"it has {', '.join(models)}" if models else "a model is a subclass of Model"
    missing = f"{path} has no model {name}" if name else f"{path}:CLASS names a model in {path}"
    raise ModelError(f"{missing}: {listing}")


MODEL = ModelNames()

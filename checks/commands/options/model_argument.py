"""The argument that names models on the command line: one of ours, one in a file, or a system's."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

import click

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
            self.fail(str(error), param, ctx)
        return (value,)


def _traced(model: type[Model], path: Path) -> System:
    """Trace a model; any exception becomes a `ModelError` with the line in the user's file."""
    try:
        return trace(model)
    except Exception as error:  # a user's text can raise anything
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve()]
        at = f", line {lines[-1]}" if lines else ""
        kind = "" if isinstance(error, ModelError) else f"{type(error).__name__}: "
        raise ModelError(f"{path}{at}: {kind}{error}") from error


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

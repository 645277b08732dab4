"""The argument that names a model on the command line."""

from __future__ import annotations

import click

from brokerproof.models.catalogue import CATALOGUE


class ModelName(click.ParamType[str]):
    """A name in the catalogue of models; another one is an error of usage that lists the names."""

    name = "model"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if value not in CATALOGUE:
            self.fail(f"there is no model {value!r}: try {', '.join(CATALOGUE)}", param, ctx)
        return value


MODEL = ModelName()

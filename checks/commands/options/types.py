"""Types of options, beyond those of click."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import profile
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import STRICTEST


class FiniteRange(click.FloatRange):
    """A number within bounds, and neither `nan` nor `inf`."""

    name = "finite number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails as click's own types do."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class IntegerRange(click.IntRange):
    """An integer within bounds. Click's own type calls it an integer range in errors."""

    name = "integer"


class StricterClaims(click.ParamType[Capabilities]):
    """The claims to compare with: the strictest, or those of a profile."""

    name = "claims"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Capabilities:
        """Return the claims; fails if there is no such profile."""
        if isinstance(value, Capabilities):
            return value
        if value == "strict":
            return STRICTEST
        try:
            if str(value).endswith(".toml"):
                return profile.from_file(Path(value)).claims
            return profile.by_name(value).claims
        except CandidateUnavailable as error:
            self.fail(str(error), param, ctx)

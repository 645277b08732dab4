"""Integers that leave the scope: the error that every reading raises, and the way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.models.language.core.terms import ModelError

if TYPE_CHECKING:
    from brokerproof.models.language.core.traces import Step


class OutOfRange(ModelError):
    """An integer leaves the scope; every reading raises this error for it.

    `way`, if known, leads to the state before, and `step` is the step that leaves the scope.
    """

    def __init__(self, message: str, way: tuple[Step, ...] = (), step: str = "") -> None:
        super().__init__(message)
        self.way, self.step = way, step


def out_of_range(name: str, value: int, low: int, high: int) -> OutOfRange:
    """Return the error for a symbol whose new value is outside of the scope's integers."""
    return OutOfRange(
        f"{name} becomes {value}, outside of the scope's integers {low} to {high}: "
        "widen them (--integers), or bound the model with a guard"
    )

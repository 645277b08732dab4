"""The options for the scope in which a model is explored: sizes of families, and integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from brokerproof.models.catalogue import Listed
from brokerproof.models.language.core.model import ModelError, System
from brokerproof.models.language.core.scope import Scope, default_scope, families
from brokerproof.models.language.core.terms import Sort

Command = TypeVar("Command", bound=Callable[..., None])


class _Sizes(click.ParamType[tuple[str, int]]):
    """`N`, for all families, or `FAMILY=N`."""

    name = "size"

    def convert(
        self,
        value: str | tuple[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        family, _, number = value.rpartition("=")
        if not number.isdecimal() or not int(number):
            self.fail(f"{value!r} is neither a number from 1 on nor FAMILY=NUMBER", param, ctx)
        return family, int(number)


class _Integers(click.ParamType[range]):
    """`HIGH`, from 0 on, or `LOW..HIGH`."""

    name = "integers"

    def convert(
        self, value: str | range, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        if isinstance(value, range):
            return value
        low, dots, high = value.rpartition("..")
        try:
            found = range(int(low) if dots else 0, int(high) + 1)
        except ValueError:
            found = range(0)
        if not found:
            self.fail(f"{value!r} is neither HIGH, from 0 on, nor LOW..HIGH", param, ctx)
        return found


def scope_options(command: Command) -> Command:
    """Add `--size` and `--integers` to a command, as `sizes` and `integers`."""
    command = click.option(
        "--integers",
        type=_Integers(),
        metavar="[LOW..]HIGH",
        help="The integers of the scope, instead of 0 to the size.",
    )(command)
    return click.option(
        "--size",
        "sizes",
        type=_Sizes(),
        multiple=True,
        metavar="[FAMILY=]N",
        help="So many elements in each family, or in one; may be repeated. Without it, the "
        "model's own scope.",
    )(command)


def scope_asked_for(
    system: System, listed: Listed, sizes: tuple[tuple[str, int], ...], integers: range | None
) -> Scope:
    """Return the model's own scope, changed as the options say; raises `ModelError`.

    Another size of all families also changes the integers, to 0 up to that size. Symbols fixed to
    one value for all indices stay fixed.
    """
    for_all = [size for family, size in sizes if not family]
    plain = default_scope(system, for_all[-1]) if for_all else listed.scope
    by_name: dict[str, Sort] = {family.__name__: family for family in families(system)}
    each = dict(plain.sizes)
    for name, size in sizes:
        if name and name not in by_name:
            raise ModelError(f"there is no family {name}: {', '.join(by_name)}")
        if name:
            each[by_name[name]] = size
    fixed = listed.scope.fixed
    if each != listed.scope.sizes:
        fixed = {name: value for name, value in fixed.items() if isinstance(value, int)}
    return Scope(each, plain.integers if integers is None else integers, fixed)

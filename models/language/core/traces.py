"""Traces of a model: steps with their states, and their text for readers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from brokerproof.models.language.core.scope import Value


@dataclass(frozen=True)
class Step:
    """An action with its arguments and the state after it; the first step has no action."""

    action: str
    arguments: dict[str, Value]
    state: dict[str, Value]


def trace_text(trace: Sequence[Step], *, start: str = "initially") -> str:
    """Return a trace as text: the first state, then the changes of each step.

    `start` is the line above the first state.
    """
    lines = [start]
    lines += [f"    {line}" for line in _state_lines(trace[0].state)]
    for number, (before, step) in enumerate(itertools.pairwise(trace), start=1):
        arguments = ", ".join(f"{name}={value}" for name, value in step.arguments.items())
        lines.append(f"{number}. {step.action}({arguments})")
        lines += [
            f"    {cell}: {_word(before.state[cell])} -> {_word(value)}"
            for cell, value in step.state.items()
            if value != before.state[cell]
        ]
    return "\n".join(lines)


def _state_lines(state: dict[str, Value]) -> list[str]:
    """Return a state with one line for each symbol; of truth values, only the true ones."""
    by_symbol: dict[str, dict[str, Value]] = {}
    for cell, value in state.items():
        name, _, inner = cell.partition("[")
        by_symbol.setdefault(name, {})[inner.rstrip("]")] = value
    lines = []
    for name, values in by_symbol.items():
        if "" in values:
            text = _word(values[""])
        elif all(isinstance(value, bool) for value in values.values()):
            true = [f"({at})" if "," in at else at for at, value in values.items() if value]
            text = ", ".join(true) or "none"
        else:
            text = ", ".join(f"{at} {_word(value)}" for at, value in values.items())
        lines.append(f"{name}: {text}")
    return lines


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Traces as ITF, the Informal Trace Format: JSON for trace viewers and test drivers.

A map is a list of pairs, an index of several sorts a tuple, a whole number a `#bigint`. The step
that leads to a state is in the state's `#meta`, because a model has no variable for it. An infinite
run has `loop`, the index of the state that follows the last one.

Source: ADR-015 of Apalache, Informal Trace Format in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from brokerproof.models.language.core.scope import Value
from brokerproof.models.language.core.traces import Step

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json]"


def itf(
    trace: Sequence[Step], *, model: str, description: str, loop: Sequence[Step] | None = None
) -> str:
    """Return a trace as one ITF document.

    `loop` are the steps that follow it for ever, back to its last state. That state is written
    twice, so that the step back to it is shown; without steps it follows itself.
    """
    states = [_state(index, step) for index, step in enumerate([*trace, *(loop or ())])]
    names: list[Json] = [name for name in states[0] if not name.startswith("#")]
    meta: dict[str, Json] = {"format": "ITF", "source": model, "description": description}
    document: dict[str, Json] = {"#meta": meta, "vars": names, "states": [*states]}
    if loop is not None:
        document["loop"] = len(trace) if loop else len(trace) - 1
    return json.dumps(document, indent=1) + "\n"


def _state(index: int, step: Step) -> dict[str, Json]:
    meta: dict[str, Json] = {"index": index}
    if step.action:
        meta["action"] = step.action
        meta["arguments"] = {name: _value(value) for name, value in step.arguments.items()}
    maps: dict[str, list[Json]] = {}
    values: dict[str, Json] = {}
    for cell, value in step.state.items():
        name, _, inner = cell.partition("[")
        if inner:
            pair: list[Json] = [_index(inner.removesuffix("]")), _value(value)]
            maps.setdefault(name, []).append(pair)
            values[name] = {"#map": maps[name]}
        else:
            values[name] = _value(value)
    return {"#meta": meta, **values}


def _index(inner: str) -> Json:
    parts: list[Json] = [*inner.split(", ")]
    return {"#tup": parts} if len(parts) > 1 else parts[0]


def _value(value: Value) -> Json:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"#bigint": str(value)}
    return value

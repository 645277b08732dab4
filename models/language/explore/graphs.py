"""The graph of a small exploration: each state a node, each transition an arrow.

Owns its forms for people: DOT for Graphviz, SVG that needs no other program, and a networkx graph
for analyses. Refuses graphs that are too large to look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

import networkx as nx

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.scope import Scope, Value, arguments_in_words, state_in_words
from brokerproof.models.language.core.terms import ModelError
from brokerproof.models.language.explore.column_search import ColumnSearch
from brokerproof.models.language.read.columns import ColumnReading, Words

STATES_MAX = 500
"""A picture of more states shows nothing."""

COLOURS = ("#0b6e99", "#c2410c", "#15803d", "#7e22ce", "#b91c1c", "#a16207", "#0f766e", "#475569")
INITIAL, BROKEN = "#fde68a", "#fca5a5"
ROW_PX, COLUMN_PX, RADIUS_PX, MARGIN_PX, LEGEND_PX = 90, 60, 14, 40, 20


@dataclass(frozen=True)
class Arrow:
    """A transition between two states, which are given by number."""

    source: int
    target: int
    action: str
    arguments: Mapping[str, Value]

    @property
    def label(self) -> str:
        """The action with its arguments, as in traces."""
        return f"{self.action}({', '.join(f'{n}={v}' for n, v in self.arguments.items())})"


@dataclass(frozen=True)
class Graph:
    """The states in the order of their levels, the depth of each, and all transitions.

    `broken` are, for each state, the names of the invariants that do not hold in it.
    """

    system: str
    scope: str
    states: tuple[dict[str, Value], ...]
    depths: tuple[int, ...]
    arrows: tuple[Arrow, ...]
    broken: tuple[tuple[str, ...], ...]

    def networkx(self) -> nx.MultiDiGraph:
        """Return the graph for networkx; nodes are numbers with `state`, `depth` and `broken`.

        Edges have `action` and `arguments`; two nodes have one edge for each transition.
        """
        graph = nx.MultiDiGraph(name=self.system)
        rows = zip(self.states, self.depths, self.broken, strict=True)
        for number, (state, depth, broken) in enumerate(rows):
            graph.add_node(number, state=state, depth=depth, broken=broken)
        for arrow in self.arrows:
            graph.add_edge(
                arrow.source, arrow.target, action=arrow.action, arguments=dict(arrow.arguments)
            )
        return graph

    def dot(self) -> str:
        """Return the graph in Graphviz' language."""
        lines = ["digraph states {", "  node [shape=box, fontname=monospace];"]
        for number, depth in enumerate(self.depths):
            border = ", penwidth=2" if depth == 0 else ""
            if self.broken[number]:
                border += f', style=filled, fillcolor="{BROKEN}"'
            lines.append(f'  s{number} [label="{_quoted(self._text(number))}"{border}];')
        for arrow in self.arrows:
            label = _quoted(arrow.label)
            lines.append(f'  s{arrow.source} -> s{arrow.target} [label="{label}"];')
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """Return a picture with a row for each depth; states and arrows show text on hover."""
        places = self._places()
        actions = list(dict.fromkeys(arrow.action for arrow in self.arrows))
        colours = {a: COLOURS[n % len(COLOURS)] for n, a in enumerate(actions)}
        width = max(x for x, _ in places) + MARGIN_PX
        end = max(y for _, y in places) + MARGIN_PX
        height = end + LEGEND_PX * (len(actions) + 2)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 240)}" height="{height}">',
            "<style>text { font: 11px sans-serif }</style>",
            f"<title>{escape(self.system)}: {escape(self.scope)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            *(self._arrow_svg(arrow, places, colours[arrow.action]) for arrow in self.arrows),
        ]
        for number, (x, y) in enumerate(places):
            fill = BROKEN if self.broken[number] else "white" if self.depths[number] else INITIAL
            lines.append(
                f'<g><title>{escape(self._text(number))}</title><circle cx="{x}" cy="{y}" '
                f'r="{RADIUS_PX}" fill="{fill}" stroke="#222"/><text x="{x}" y="{y + 4}" '
                f'text-anchor="middle">{number}</text></g>'
            )
        for row, action in enumerate(actions):
            y = end + LEGEND_PX * row
            lines.append(f'<text x="{MARGIN_PX}" y="{y}" fill="{colours[action]}">{action}</text>')
        lines += self._key(end + LEGEND_PX * len(actions))
        return "\n".join([*lines, "</svg>", ""])

    def _text(self, number: int) -> str:
        """Return a state with one line for each cell; of truth values, only the true ones."""
        cells = self.states[number].items()
        shown = [name if value is True else f"{name} = {value}" for name, value in cells if value]
        broken = [f"breaks {name}" for name in self.broken[number]]
        return "\n".join([f"state {number}", *shown, *broken])

    def _key(self, top: int) -> Iterator[str]:
        """Yield the meaning of each colour that occurs."""
        names = {name: None for each in self.broken for name in each}
        kinds = [(INITIAL, "initial")]
        kinds += [(BROKEN, f"breaks {', '.join(names)}")] if names else []
        for row, (colour, meaning) in enumerate(kinds):
            y = top + LEGEND_PX * row
            yield (
                f'<circle cx="{MARGIN_PX + 5}" cy="{y - 4}" r="5" fill="{colour}" stroke="#222"/>'
                f'<text x="{MARGIN_PX + 16}" y="{y}">{escape(meaning)}</text>'
            )

    def _places(self) -> list[tuple[int, int]]:
        """Return where each state is drawn: below its sources, as far as there is room."""
        xs: dict[int, float] = {}
        sources: dict[int, list[int]] = {}
        for arrow in self.arrows:
            sources.setdefault(arrow.target, []).append(arrow.source)
        rows = [
            [number for number, depth in enumerate(self.depths) if depth == row]
            for row in range(max(self.depths) + 1)
        ]
        widest = max(map(len, rows))
        for row in rows:
            wish: dict[int, float] = {}
            for number in row:
                above = [xs[source] for source in sources.get(number, ()) if source in xs]
                wish[number] = sum(above) / len(above) if above else 0.0
            row.sort(key=lambda number, wish=wish: (wish[number], number))  # type: ignore[misc]
            for position, number in enumerate(row):
                xs[number] = position - (len(row) - 1) / 2 + (widest - 1) / 2
        return [
            (round(MARGIN_PX + COLUMN_PX * xs[number]), MARGIN_PX + ROW_PX * self.depths[number])
            for number in range(len(self.states))
        ]

    @staticmethod
    def _arrow_svg(arrow: Arrow, places: list[tuple[int, int]], colour: str) -> str:
        (x, y), (to_x, to_y) = places[arrow.source], places[arrow.target]
        title = f"<title>{arrow.source} to {arrow.target}: {escape(arrow.label)}</title>"
        if arrow.source == arrow.target:
            path = f"M {x + 8} {y - 11} C {x + 34} {y - 34}, {x + 40} {y + 8}, {x + 14} {y + 3}"
        else:
            # Arrows back are bent, so that arrows forth do not hide them.
            bend = 30 if to_y <= y else 0
            length = max(((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5, 1)
            end_x = to_x - (to_x - x) * RADIUS_PX / length
            end_y = to_y - (to_y - y) * RADIUS_PX / length
            path = (
                f"M {x} {y} Q {(x + to_x) / 2 + bend:.0f} {(y + to_y) / 2:.0f}, "
                f"{end_x:.1f} {end_y:.1f}"
            )
        ends = path.split(",")[-1].split()
        head = f'<circle cx="{ends[0]}" cy="{ends[1]}" r="2.5" fill="{colour}" stroke="none"/>'
        return f'<g fill="none" stroke="{colour}">{title}<path d="{path}"/>{head}</g>'


def graph(system: System, scope: Scope, *, states_max: int = STATES_MAX) -> Graph:
    """Return the graph of all states of a scope; raises `ModelError` if there are too many."""
    reading = ColumnReading(system, scope)
    search = ColumnSearch(reading, ())
    search.start(reading.initial_words())
    while sum(search.levels) <= states_max and search.advance(states_max):
        pass
    if sum(search.levels) > states_max:
        raise ModelError(f"a graph of more than {states_max} states: make the scope smaller")
    depths = [depth for depth, count in enumerate(search.levels) for _ in range(count)]
    packed = [search.level(depth) for depth in range(len(search.levels))]
    states = [state for level in packed for state in reading.unpack(level)]
    numbers = {state: number for number, state in enumerate(states)}
    arrows = []
    for level in packed:
        for number, mask in enumerate(reading.guards(level)):
            instance = reading.instances[number]
            arguments = arguments_in_words(scope, instance.action, instance.arguments)
            sources = reading.unpack(level[mask])
            targets = reading.unpack(reading.successors(number, level[mask]))
            for source, target in zip(sources, targets, strict=True):
                name = instance.action.name
                arrows.append(Arrow(numbers[source], numbers[target], name, arguments))
    return Graph(
        system=system.name,
        scope=str(scope),
        states=tuple(state_in_words(reading.cells, state) for state in states),
        depths=tuple(depths),
        arrows=tuple(sorted(arrows, key=lambda arrow: (arrow.source, arrow.target))),
        broken=tuple(broken for level in packed for broken in _broken(reading, level)),
    )


def _broken(reading: ColumnReading, level: Words) -> Iterator[tuple[str, ...]]:
    """Yield for each state the invariants that do not hold in it."""
    names = [statement.name for statement in reading.system.invariants]
    columns = [holds.tolist() for holds in reading.invariants(level)]
    for at in range(len(level)):
        yield tuple(n for n, holds in zip(names, columns, strict=True) if not holds[at])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

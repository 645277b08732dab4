"""Rows as Hypothesis draws them: right ones, and any."""

from __future__ import annotations

from hypothesis import strategies as st

from brokerproof.pipeline.tables import COLUMNS, Column
from brokerproof.spec.histories import MUST_HAVE

LETTERS = "aé😀"


def fitting_rows() -> st.SearchStrategy[dict[str, object]]:
    """Draw rows whose fields are within their limits and, for their kind, all there."""
    return st.sampled_from(list(MUST_HAVE)).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"op": st.just(kind), "start": st.integers(0, 9)}
            | {name: _fitting(COLUMNS[name]) for name in MUST_HAVE[kind]}
            | ({"end": st.integers(10, 2**62 - 1)} if "end" in MUST_HAVE[kind] else {}),
            optional={
                name: _fitting(column)
                for name, column in COLUMNS.items()
                if name not in {"op", "start", "end", *MUST_HAVE[kind]}
            },
        )
    )


def any_rows() -> st.SearchStrategy[dict[str, object]]:
    """Draw rows of which fields may be missing or beyond their limits, a few of each."""
    spoilt = st.fixed_dictionaries({}, optional={n: _any(c) for n, c in COLUMNS.items()})
    few = spoilt.map(lambda row: dict(list(row.items())[:2]))
    dropped = st.sets(st.sampled_from(list(COLUMNS)), max_size=1)
    return st.tuples(fitting_rows(), few, dropped).map(
        lambda drawn: {
            name: value for name, value in (drawn[0] | drawn[1]).items() if name not in drawn[2]
        }
    )


def _fitting(column: Column) -> st.SearchStrategy[object]:
    match column.content:
        case "text" if column.values:
            return st.sampled_from(column.values)
        case "text":
            return st.text(LETTERS, min_size=column.least or 0, max_size=4)
        case "truth":
            return st.booleans()
        case "time" | "count":
            return st.integers(column.least, column.most)


def _any(column: Column) -> st.SearchStrategy[object]:
    match column.content:
        case "text":
            ends = [LETTERS[1] * length for length in (0, 1, column.most or 9, 257, 300)]
            return st.sampled_from([*ends, *column.values, "nonsense"])
        case "truth":
            return st.booleans()
        case "time" | "count":
            assert column.least is not None
            assert column.most is not None
            least, most = column.least, column.most
            return st.sampled_from([-(2**63), -1, 0, least - 1, least, most, most + 1, 2**63 - 1])

"""Coming to rest: what is judged when a broker says that nothing more will happen.

Owns the judging of absence, which is possible at `drain` only (driver protocol 1, rule 2), and of
events whose order among consumers was open until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.checks.oracle.attribution import least
from brokerproof.checks.oracle.bindings import MODES
from brokerproof.checks.oracle.breaches import Breach, Moment
from brokerproof.checks.oracle.contracts import CORE
from brokerproof.checks.oracle.possibilities import Failure, Row, Step, Window
from brokerproof.checks.oracle.streams import Streams, judged

if TYPE_CHECKING:
    from brokerproof.checks.oracle.oracle import Oracle


def come_to_rest(oracle: Oracle) -> list[Breach]:
    """Judge what is owed, and return what was broken and could be followed beyond."""
    if oracle.streams is not None:
        _ordered(oracle, oracle.streams)
    last = oracle.window.rows[-1]
    if not last.cases:
        oracle.fail(oracle.window.why_last_row_is_empty(oracle.rules, oracle.book.frame))
    cases = last.cases
    for step in _at_rest(oracle):
        oracle.count(step)
        following, blames = oracle.rules.apply(oracle.book.frame, cases, step)
        if not following:
            oracle.fail(Failure(step, least(blames)))
        oracle.actions[step[0], "ok"] += 1
        cases = following
    departed = frozenset.intersection(*(labels for _, labels, _ in cases))
    nothing: frozenset[str] = frozenset()
    none_taken: frozenset[Step] = frozenset()
    settled = frozenset((world, nothing, none_taken) for world, _, _ in cases)
    oracle.window = Window((Row(settled),))
    moments, oracle.departed, oracle.unplaced = dict(oracle.departed), (), ()
    return [_departure(label, moments.get(label)) for label in sorted(departed)]


def _at_rest(oracle: Oracle) -> tuple[Step, ...]:
    """Return what a broker says by coming to rest."""
    if not oracle.goes_beyond:
        return (("quiesce", ()),)
    quiesce = "quiesce_by_size" if oracle.book.sized else "quiesce"
    waits = (("publish_still_waits", ()),) if oracle.book.parked else ()
    return ((quiesce, ()), ("nothing_is_left_to_close", ()), *waits)


def _ordered(oracle: Oracle, streams: Streams) -> None:
    """Find an order of what was told since the last rest, and go on from where it ends."""
    browsing = MODES["browse"] in oracle.book.frame.rows[oracle.rules.contract.row_of("mode")]
    # What only the whole contract knows may end in another case when the order is another.
    beyond = any(step and step[0] not in CORE.contract.actions for step in streams.operations)
    cases = oracle.window.rows[-1].cases
    every = browsing or beyond
    found = judged(streams, cases, oracle.rules, oracle.book.frame, every_order=every)
    oracle.streams = Streams()
    if found.failure is not None:
        oracle.window = Window((Row(found.stuck_in),))
        oracle.fail(found.failure)
    for step, before in found.order:
        oracle.window = Window((Row(before),))
        oracle.count(step)
        after, _ = oracle.rules.apply(oracle.book.frame, before, step)
        oracle.go_on(Window((Row(after),)), step)
    oracle.window = Window((Row(found.cases),))


def _departure(label: str, moment: Moment | None) -> Breach:
    """Return the breach that the run could be followed beyond, with the entry that shows it."""
    reason = "not kept in any order of the events"
    if moment is None:
        return Breach(label, reason)
    shown = moment.book.name_of_entry(moment.step[1][1])
    return Breach(label, reason, (shown,), moment=moment)

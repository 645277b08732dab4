"""The explanation of a violation: its recorded events, and a minimal run that shows the same.

The run is in the gate's own operations (`least_runs.py`). It is not a part of the recording, and
says so: it uses the recording's names, priorities, windows and levels as far as it still shows the
violation, and lists the values of its own. The recorded events beside it name file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search.counterexamples import Certificate, Counterexample, Line
from brokerproof.pipeline.explain.least_runs import (
    ALL,
    LEVELS_MAX,
    OTHERS,
    Values,
    made_up,
    steps_of,
)
from brokerproof.pipeline.explain.recorded_facts import RecordedFacts, Violation
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.histories import NEVER
from brokerproof.spec.messages import PRIORITIES, Priority
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare, Publish

CLAIMS: Final = Capabilities(
    orders=("fifo", "priority"),
    priority_mapping="clamp",
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages",),
    durable=True,
    get=True,
    browse=True,
    release_position="original",
    purge=True,
    delete=True,
)
"""The claims by which such a run is judged."""

HELD_MAX: Final = 5
"""A larger window is not filled in a run that is meant to be read."""


def counterexample_of(
    found: Violation,
    source: str,
    facts: RecordedFacts | None = None,
    records: str = "",
    remark: str = "",
) -> Counterexample:
    """Return a violation as the counterexample that reports and `replay` show.

    `facts` are the recorded facts about it, if known. `records` is the file of its records, and
    `remark` a note on that file.
    """
    facts = RecordedFacts(found) if facts is None else facts
    rule, names = RULES[found.rule], _names(facts)
    expected, seen = rule.expected.format(**names), rule.seen.format(**names)
    early = found.chain or (found.witness,)
    witnesses = tuple(dict.fromkeys(filter(None, (found.message, *early))))

    def made(values: Values) -> Counterexample:
        steps = steps_of(found, values)
        reason = "; ".join(
            filter(None, ("it is the least run that shows the same", *_own(steps, facts), remark))
        )
        return Counterexample(
            format="brokerproof-counterexample/1",
            candidate=source,
            requirement=found.requirement,
            expected=expected,
            seen=f"{seen} (run {found.run}, queue {found.queue}; times as recorded)",
            witnesses=witnesses,
            steps=steps,
            certificate=Certificate(grade="not certified", reason=reason),
            # At its last step such a run shows only a waiting message. The drained queue of the
            # recording shows that the message is lost, and not late.
            also=("quiescence",) if rule.cases[0].requirement == "nothing-lost" else (),
            claims=CLAIMS,
            recorded=facts.events(),
            records=records,
        )

    if not facts.records:
        return made(made_up(found))
    tried = (made(values) for values in _values(facts))
    return next((each for each in tried if _shows(each)), None) or made(made_up(found))


def _shows(found: Counterexample) -> bool:
    """Return whether a run shows the violation, and does not without its last step."""
    asked = frozenset((found.requirement,))
    sound = structs.replace(found, steps=found.steps[:-1])
    is_shown = rejudge(found, asked).outcome is Replay.SAME
    return is_shown and rejudge(sound, asked).outcome is Replay.KEPT


def _values(facts: RecordedFacts) -> Iterator[Values]:
    """Yield the names and numbers of the recording, then fewer and fewer of them."""
    own = made_up(facts.found)
    subscriber = facts.late_subscriber
    names = replace(
        own,
        first=facts.first_subscriber or own.first,
        late=subscriber or own.late,
        browser=facts.browser or own.browser,
        channels=facts.channels,
    )
    held = facts.held_by(subscriber)
    if 0 < len(held) <= HELD_MAX:
        names = replace(names, held=held)
    numbers = replace(names, levels=facts.levels, priorities=facts.priorities)
    if all(each in PRIORITIES for each in facts.priorities.values()) and (
        (facts.levels or 0) <= LEVELS_MAX
    ):
        yield replace(numbers, windows=facts.windows)
        yield numbers
    yield replace(names, windows=facts.windows)
    yield names


def _own(steps: Sequence[Line], facts: RecordedFacts) -> Iterator[str]:
    """Yield the values of a run's own, and the recorded ones that they replace."""
    if not facts.records:
        yield "its names and numbers are its own, but for those of messages and queue"
        return
    different = list(dict.fromkeys(_differences(steps, facts)))
    if different:
        yield f"of its own it has {', '.join(different)}"
    else:
        yield "its names and numbers are those of the recording"


def _differences(steps: Sequence[Line], facts: RecordedFacts) -> Iterator[str]:
    own = made_up(facts.found)
    stands_for = {
        ALL: "the consumer that drained the queue",
        OTHERS: "all that took what came before",
    }
    roles = {
        own.browser: facts.browser,
        own.first: facts.first_subscriber,
        own.late: facts.late_subscriber,
    }
    stands_for |= {ours: theirs for ours, theirs in roles.items() if theirs and theirs != ours}
    for move in (line.move for line in steps):
        match move:
            case Declare(order=order):
                levels = order.levels if isinstance(order, Priority) else 0
                if facts.levels is None:
                    yield "what the queue is declared as"
                elif levels != facts.levels:
                    yield f"{levels} levels for {facts.levels or 'none'}"
            case Publish(message=message):
                recorded = facts.publish(message.id)
                if recorded is None:
                    yield f"message {message.id}"
                elif facts.levels and recorded.priority != message.priority:
                    yield f"priority {message.priority} for {recorded.priority} of {message.id}"
            case Consume(consumer=consumer, credit=credit):
                subscribed = facts.subscription(consumer)
                if consumer in stands_for and consumer not in facts.subscribers:
                    yield f"{consumer} for {stands_for[consumer]}"
                elif subscribed is None and consumer not in facts.subscribers:
                    yield f"consumer {consumer}"
                elif subscribed is None:
                    get = "the get " if facts.is_get(consumer) else ""
                    yield f"a subscription of {get}{consumer}, of whom none is recorded"
                elif (subscribed.window or None) != credit.messages:
                    ours, theirs = (_limit(w) for w in (credit.messages, subscribed.window))
                    yield f"{ours} for {theirs} of {consumer}"
            case _:
                pass


def _limit(window: int | None) -> str:
    return f"window {window}" if window else "no limit"


def _names(facts: RecordedFacts) -> dict[str, object]:
    """Return the values for the words of a rule."""
    found = facts.found
    rule = RULES[found.rule]
    window = facts.window(found.witness)
    if facts.late is not None:
        subscriber = facts.subscriber(facts.late)
    elif rule.concerns_a_get:
        subscriber = "the get"
    else:
        is_one = rule.sides is not None and rule.sides.same_subscriber
        subscriber = "one subscriber" if is_one else "a consumer"
    return {
        "message": found.message,
        "witness": found.witness,
        "subscriber": subscriber,
        "had_by": facts.named(found.witness or "a consumer"),
        "got": "was shown" if facts.late is not None and facts.browses(facts.late) else "got",
        "window": "" if window is None else f" of {window}",
        "room": "" if window is None else f", with a window of {window},",
        "held": f"{window + found.strength}" if window else f"{found.strength} too many",
        "late": _span(found.late),
        "early": _span(found.early),
        "there_by": f"{found.early[0]:,}",
        "chain": ", then ".join(found.chain) or f"the last of them {found.witness}",
        "until": "was never given" if found.early[1] >= NEVER else "was given later",
    }


def _span(times: tuple[int, int]) -> str:
    if times[1] >= NEVER:
        return f"from {times[0]:,} on"
    return f"between {times[0]:,} and {times[1]:,}"

"""The pages of invariants, one for each family of systems, made of their files.

python -m tests.spec.invariants_page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from brokerproof.spec.invariants import Binding, ByTest, Invariant, invariants_of

PAGES: Mapping[str, str] = {
    "qpid": "docs/reference/qpid-invariants.md",
    "rabbitmq": "docs/reference/rabbitmq-invariants.md",
    "activemq": "docs/reference/activemq-invariants.md",
}


class Head(NamedTuple):
    """What a page begins with, and how it calls each system; one that has no other is not told."""

    introduction: str
    systems: Mapping[str, str]


QPID = """\
# Invariants of Qpid's queues, and what holds each

Clients are promised what the [requirements](../findings/planted-faults.md) say. Behind that stands
what a queue keeps inside: that no message lies behind a place, that one runner at most is at work.
These invariants are known by ids from notes on Qpid's releases; each is stated here in our own
words, with the document or the versions that it comes from, and is bound to what holds it:

* **model**: a statement that is proved for any number of messages and consumers, or, where it is
  about what happens in the end, explored in a scope ([proofs](../explanation/proofs.md)). The
  variant named is refuted. The models of threads are tied to the reference, access by access.
* **requirement**: what `brokerproof check` asks of every candidate that claims what it needs. The
  [planted fault](../findings/planted-faults.md) named breaks it.
* **interleavings**: the reference's own code under every order of accesses of small cases
  ([interleavings](../explanation/interleavings.md)). The fault named is one that needs threads.
* **test**: a test of the reference, with its twin on a broken copy, or a comparison with something
  plain. Where no fault is planted it is an example, or a search, and nothing shows what it would
  find.

A test resolves every name below, so none of them can go stale. Made of `spec/qpid/invariants.toml`
by `python -m tests.spec.invariants_page`; on a terminal it is `brokerproof requirements
--invariants`, and `brokerproof requirements ENT-1` for one (of an id that is a
requirement as well, it tells that).
"""

RABBITMQ = """\
# Invariants of RabbitMQ's paging queue, and what holds each

The reference of RabbitMQ's queue is the one of version 2.8.2, which has five places, q1, q2, delta,
q3 and q4, and pages its messages from memory to disk. What it keeps inside is known by ids from
notes on its releases; each is stated here in our own words, with the versions that have it, and is
bound to what holds it:

* **model**: a statement that is proved for any number of messages, segments of any size, and any
  batch and target, or, where it is about what happens in the end, explored in a scope
  ([proofs](../explanation/proofs.md)). The variant named breaks that statement, which a test looks
  at.
* **requirement**: what `brokerproof check` asks of every view that a candidate shows of such a
  queue, after each operation. The [planted fault](../findings/planted-faults.md) named breaks it.
* **test**: a test of the reference's own code: long random runs, after each step of which
  everything is held, crashes at every change of the disk, or examples. Its twin is named with the
  case, where it has several: a mistake planted in the code, after which the same is found broken.
  That clients do not see paging (I24) is proved of a model too: it refines the contract. Where no
  fault is planted it is an example, and nothing shows what it would find.

Most of these are rules of `spec/rabbitmq/view_rules.py`, which judge a view between
operations. Releases assert by themselves those whose ids begin with A, D, F, L, M, R and W, and PD;
the reference asserts them too (`reference/rabbitmq/paging/invariants.py`). In one point the
reference is a later version: what is requeued to q3 leaves memory, as from 3.1.2 on. With what
2.8.2 does, I5 and I6 do not hold, and a reduction may never end (I18).

A test resolves every name below, so none of them can go stale. Made of
`spec/rabbitmq/invariants.toml` by `python -m tests.spec.invariants_page`; on a terminal it is
`brokerproof requirements --invariants rabbitmq`, and `brokerproof requirements Q1` for one (of an
id that is a requirement as well, it tells that).
"""

ACTIVEMQ = """\
# Invariants of ActiveMQ's queue, and what holds each

The reference of ActiveMQ's queue reads its messages from a store by a cursor, as in 5.1 to 5.3, and
is the design without known defects; each defect of 5.1.0 can be put back by a parameter of its
address. What such a queue keeps inside is known by ids from notes on its releases; each is stated
here in our own words, with the versions that have it, and is bound to what holds it:

* **model**: a statement that is proved for any number of messages and any window of the audit, or,
  where it is about what happens in the end, explored in a scope
  ([proofs](../explanation/proofs.md)). The variant named breaks that statement.
* **requirement**: what `brokerproof check` asks of every view that a candidate shows of such a
  queue, after each operation, or of what it does. The [planted
  fault](../findings/planted-faults.md) named breaks it. `documented-steps` holds two views against
  the model `cursor-page-in`, which has one order and one persistence class: it is read of what is
  persistent in a queue without levels. Of levels, of publishes that wait, of groups and of a purge
  it says nothing, and the report counts such steps.
* **test**: a test of the reference's own code. Its twin is a mistake planted in the code, after
  which the same is found broken; or it compares with something plain, which is its own twin. Where
  no fault is planted it is an example, and nothing shows what it would find.

Which of these each defect of 5.1.0 breaks, alone and under tiny sizes, is recorded in
`tests/faults/test_cursor_defects.py`: no two of the four that lost messages break the same.

A test resolves every name below, so none of them can go stale. Made of
`spec/activemq/invariants.toml` by `python -m tests.spec.invariants_page`; on a terminal it is
`brokerproof requirements --invariants activemq`, and `brokerproof requirements AMQ-I5` for one (of
an id that is a requirement as well, it tells that).
"""

COMPARED = frozenset(
    {
        "test_a_list_holds_what_was_added_and_not_removed_in_order",
        "test_a_list_is_the_sorted_list_of_what_was_added_and_not_deleted",
        "test_every_call_moves_as_the_table_says",
        "test_from_first_to_last_a_group_is_taken_by_one_consumer",
        "test_the_round_of_subscriptions_is_that_of_a_plain_list",
    }
)
"""The tests without a twin that compare with something plain: a list, a table, a dictionary."""

HEADS: Mapping[str, Head] = {
    "qpid": Head(QPID, {"qpid-push": "push", "qpid-priority": "priority", "qpid-pull": "pull"}),
    "rabbitmq": Head(RABBITMQ, {"rabbitmq-paging": "paging"}),
    "activemq": Head(ACTIVEMQ, {"activemq-cursor": "cursor"}),
}


def page_of(family: str) -> str:
    """Return the page of a family."""
    head, found = HEADS[family], [*invariants_of(family).values()]
    bare = [each for each in found if not each.held]
    partly = [each for each in found if each.held and each.uncovered]
    counts = (
        f"{len(found)} invariants: {len(found) - len(bare) - len(partly)} are held, {len(partly)} "
        f"in part, {len(bare)} by nothing.\n"
    )
    parts = [
        head.introduction,
        counts,
        "## What is not held, and why\n",
        "| id | what is kept | what is missing |\n| --- | --- | --- |\n" + "".join(_gaps(found)),
        "## What holds each\n",
        _line(
            *_columns(head, ("id", "of", "what is kept", "source", "held by", "what breaks that"))
        )
        + _line(*_columns(head, ("---",) * 6))
        + "".join(_line(*_columns(head, _row(head, each))) for each in found),
    ]
    return "\n".join(parts)


def _gaps(found: list[Invariant]) -> Iterator[str]:
    for each in sorted(found, key=lambda one: bool(one.held)):
        if each.uncovered:
            part = "in part: " if each.held else ""
            yield f"| {each.id} | {each.statement} | {part}{each.uncovered} |\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _columns(head: Head, row: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out of which system it is, where there is only one."""
    return row if len(head.systems) > 1 else (row[0], *row[2:])


def _row(head: Head, each: Invariant) -> tuple[str, ...]:
    of = ", ".join(head.systems[name] for name in each.systems)
    sources = "; ".join(map(str, each.sources))
    held = "<br>".join(map(_held, each.held)) or "nothing"
    broken = "<br>".join(_broken(binding) for binding in each.held)
    return each.id, of, each.statement, sources, held, broken


def _held(binding: Binding) -> str:
    kind, _, name = str(binding).partition(" ")
    if kind == "interleavings":
        return str(binding)
    if kind == "test":
        return f"{kind} `{name.partition(':')[2]}`"
    return f"{kind} `{name}`"


def _broken(binding: Binding) -> str:
    name = binding.broken_by.rpartition(":")[2]
    if name:
        return f"`{name}`"
    is_compared = isinstance(binding, ByTest) and name_of(binding) in COMPARED
    return "it is compared with something plain" if is_compared else "no fault is planted"


def name_of(binding: ByTest) -> str:
    """Return the name of the test alone."""
    return binding.test.rpartition(":")[2]


def main() -> None:
    """Write the pages."""
    for family, path in PAGES.items():
        Path(path).write_text(page_of(family), encoding="utf-8")


if __name__ == "__main__":
    main()

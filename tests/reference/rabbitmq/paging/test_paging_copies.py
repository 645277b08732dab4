"""Copies go their own way, and states with one name behave alike."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import (
    Parameters,
    fingerprint_node,
)
from brokerproof.reference.shared.copies import copied
from tests.reference.rabbitmq.paging.paging_bench import (
    NAME,
    PagingBench,
    body,
    broken_invariants,
    msg_id,
    ready_of,
    seen_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.rabbitmq.paging import Node

Seen = list[object]


def drive(node: Node, seed: int, first: int) -> Seen:
    """Run operations drawn from a seed, with messages from `first` on, and return the results.

    Tags and numbers are counted from the next one, since states that are alike may differ in them.
    """
    draw = random.Random(seed)  # noqa: S311
    queue = node.queues[NAME]
    base = queue.next_seq
    seen: Seen = []
    for number in range(first, first + 25):
        what = draw.choice(("publish", "publish", "fetch", "ack", "requeue", "target", "sync"))
        tags = sorted(queue.pending)
        if what == "publish":
            persistent = draw.random() < 0.5
            queue.publish(
                msg_id(number), body(number), persistent=persistent, needs_confirming=persistent
            )
        elif what == "fetch":
            fetched = queue.fetch(ack_required=draw.random() < 0.7)
            if fetched is not None:
                tag = None if fetched.tag is None else fetched.tag - base
                seen.append((*fetched[:3], tag, fetched.remaining))
        elif what == "ack" and tags:
            seen.append(queue.acknowledge([draw.choice(tags)]))
        elif what == "requeue" and tags:
            seen.append(queue.requeue([draw.choice(tags)]))
        elif what == "target":
            queue.set_target(draw.choice([0, 1, None]))
        elif what == "sync":
            node.sync()
        seen.append((what, queue.length, queue.needs_timeout(), sorted(queue.drain_confirmed())))
    places = (queue.q4, queue.q3, queue.q2, queue.q1)
    seen.append([[(one.seq - base, *one.fields()[1:]) for one in place] for place in places])
    seen.append([(seq - base, *others) for seq, *others in ready_of(seen_of(queue))])
    assert broken_invariants(queue) == set()
    return seen


@pytest.mark.parametrize("seed", range(25))
def test_a_copy_has_the_name_of_its_original_and_behaves_alike(seed: int) -> None:
    bench = walk(seed)
    copy = copied(bench.node)
    name = fingerprint_node(bench.node)
    assert fingerprint_node(copy) == name
    seen = drive(copy, seed, 10_000)
    assert fingerprint_node(bench.node) == name, "the original did not go along"
    bench.check()
    assert drive(bench.node, seed, 10_000) == seen
    assert fingerprint_node(bench.node) == fingerprint_node(copy)


def test_states_with_one_name_behave_alike_though_their_numbers_differ() -> None:
    """Walk in a small world where states recur, and drive each two that have one name."""
    parameters = Parameters(segment=2, batch=1, journal_limit=2, file_size=1, cache_bytes=0)
    by_name: dict[Hashable, Node] = {}
    pairs = 0
    for seed in range(12):
        draw = random.Random(seed)  # noqa: S311
        bench = PagingBench(parameters)
        bench.set_target(draw.choice([0, 1]))
        for _ in range(60):
            match draw.choice(("publish", "fetch", "ack", "sync")):
                case "publish" if bench.queue.length < 2:
                    # Few ids, so that the same ones come again.
                    bench.published = (bench.queue.next_seq % 4) + 100
                    bench.publish(persistent=draw.random() < 0.7)
                case "fetch":
                    bench.fetch()
                case "ack" if bench.oracle.pending:
                    bench.acknowledge(sorted(bench.oracle.pending))
                case "sync":
                    bench.sync()
            name = fingerprint_node(bench.node, with_rates=False)
            node = copied(bench.node)
            known = by_name.setdefault(name, node)
            if known.queues[NAME].next_seq != node.queues[NAME].next_seq:
                assert drive(copied(known), seed, 10_000) == drive(node, seed, 10_000)
                pairs += 1
    assert pairs > 20


def test_states_that_differ_have_different_names() -> None:
    names = set()
    bench = PagingBench(Parameters(segment=2, batch=1))
    for persistent in (False, True, True, False):
        bench.publish(persistent=persistent)
        names.add(fingerprint_node(bench.node))
    bench.fetch()
    names.add(fingerprint_node(bench.node))
    bench.set_target(1)
    names.add(fingerprint_node(bench.node))
    bench.sync()
    names.add(fingerprint_node(bench.node))
    bench.requeue([0])
    names.add(fingerprint_node(bench.node))
    assert len(names) == 8

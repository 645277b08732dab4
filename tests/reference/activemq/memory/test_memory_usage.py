"""The usage tree: percentages, limits, notifications of space, and the size of a message."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.reference.activemq.memory import usage
from brokerproof.reference.activemq.memory.usage import (
    Charged,
    MemoryUsage,
)
from brokerproof.reference.shared.copies import copied
from tests.reference.activemq.memory.usage_bench import Listener, Waiter, name_of
from tests.reference.activemq.release_answers import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokerproof.reference.activemq.memory.notices import Notice

WAIT_S = 30
"""After so long a thread that does not end is a failure; it ends at once."""


def family(limit: int = 10, of_child: int | None = 10) -> tuple[MemoryUsage, MemoryUsage]:
    """Return a broker's node and a queue's below it."""
    root = MemoryUsage(limit)
    return root, MemoryUsage(of_child, root)


@given(used=st.integers(0, 10**12), limit=st.integers(1, 10**10), delta=st.integers(1, 40))
def test_a_percentage_is_whole_and_rounded_down_twice(used: int, limit: int, delta: int) -> None:
    node = MemoryUsage(limit, min_delta=delta)
    node.increase(used)
    exact = 100 * used
    assert node.percent % delta == 0
    assert node.percent * limit <= exact
    assert exact < (node.percent + delta) * limit


def test_without_a_limit_nothing_is_ever_used_up() -> None:
    node = MemoryUsage(0)
    node.increase(10**12)
    assert (node.percent, node.is_full(), node.room_for(10**12)) == (0, False, True)


def test_a_node_and_all_above_it_count_the_same_bytes() -> None:
    root, child = family(100, 10)
    other = MemoryUsage(10, root)
    child.increase(4)
    other.increase(3)
    child.decrease(1)
    assert (root.used, child.used, other.used) == (6, 3, 3)
    assert (root.percent, child.percent, other.percent) == (6, 30, 30)
    with pytest.raises(AssertionError, match="more is given back"):
        child.decrease(4)


def test_a_node_is_full_when_it_or_one_above_has_reached_the_mark() -> None:
    root, child = family(10, 5)
    child.increase(5)
    assert (root.is_full(), child.is_full()) == (False, True)
    assert (root.is_full(50), root.is_full(51)) == (True, False)
    child.decrease(1)
    root.increase(6)
    assert (root.is_full(), child.percent, child.is_full()) == (True, 80, True)


def test_a_part_of_a_limit_follows_the_parent_and_a_limit_of_its_own_does_not() -> None:
    root = MemoryUsage(1000)
    producers = MemoryUsage(None, root, 0.6)
    consumers = MemoryUsage(None, root, 0.29)
    queue, own = MemoryUsage(None, producers), MemoryUsage(50, producers)
    assert [each.limit for each in (producers, consumers, queue, own)] == [600, 290, 600, 50]
    queue.increase(60)
    own.increase(40)
    root.set_limit(100)
    assert [each.limit for each in (producers, consumers, queue, own)] == [60, 29, 60, 50]
    assert [each.percent for each in (root, producers, queue, own)] == [100, 166, 100, 80]
    queue.set_limit(600)
    root.set_limit(200)
    assert (queue.limit, queue.portion, queue.percent) == (600, 0.0, 10)
    queue.set_portion(0.5)
    assert (queue.limit, queue.percent) == (60, 100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MemoryUsage(None),
        lambda: MemoryUsage(-1),
        lambda: MemoryUsage(1, min_delta=0),
        lambda: MemoryUsage(None, MemoryUsage(1), 0.0),
        lambda: MemoryUsage(1).set_limit(-1),
        lambda: MemoryUsage(1).set_portion(0.5),
        lambda: MemoryUsage(1, MemoryUsage(1), execute=print),
    ],
)
def test_what_makes_no_node_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"limit|settled"):
        make()


class Heard(NamedTuple):
    """A callback that logs a name, and a change if there is one."""

    name: str
    log: list[str]

    def space_available(self) -> None:
        """There is space."""
        self.log.append(self.name)

    def usage_changed(self, old: int, new: int) -> None:
        """The percentage has changed."""
        self.log.append(f"{self.name}:{old}-{new}")


def answers_as_the_release(kind: type[MemoryUsage]) -> None:
    """Demand the answers that were written down, in all there is to see."""
    log: list[str] = []
    nodes = [kind(100, min_delta=5)]
    nodes += [kind(None, nodes[0], 0.5, 5)]
    nodes += [kind(None, nodes[1], 0.5, 5)]
    for number, node in enumerate(nodes):
        node.add_listener(Heard(str(number), log))
    for line in MEMORY.strip().splitlines():
        done, answer, *told = [each.strip() for each in line.split("|")]
        what, at, value = done.split()
        node, said = nodes[int(at)], "-"
        match what:
            case "inc":
                node.increase(int(value))
            case "dec":
                node.decrease(int(value))
            case "limit":
                node.set_limit(int(value))
            case "portion":
                node.set_portion(float(value))
            case _:
                said = str(node.notify_when_not_full(Heard(value, log))).lower()
        seen = [said, *(f"{each.limit}/{each.used}/{each.percent}" for each in nodes)]
        assert (" ".join(seen), " ".join(log)) == (answer, "".join(told)), line
        log.clear()


class ParentFirst(MemoryUsage):
    """Counts above before it counts here."""

    __slots__ = ()

    def path(self) -> Iterator[MemoryUsage]:
        """Yield the root first."""
        return iter([*super().path()][::-1])


def test_a_tree_answers_as_the_release_did() -> None:
    answers_as_the_release(MemoryUsage)
    with pytest.raises(AssertionError):
        answers_as_the_release(ParentFirst)


def test_listeners_are_told_of_each_change_the_node_s_own_first_when_all_is_counted() -> None:
    log: list[str] = []
    root, child = family(20, 10)
    root.add_listener(Listener("root", log, root))
    child.add_listener(leaver := Listener("leaver", log, root))
    child.add_listener(Listener("child", log, root))
    child.increase(1)
    child.remove_listener(leaver)
    child.increase(9)
    assert log[:3] == ["leaver 0-10 of 1", "child 0-10 of 1", "root 0-5 of 1"]
    assert log[3:] == ["child 10-100 of 10", "root 5-50 of 10"]


def test_a_change_below_the_delta_is_no_event() -> None:
    log: list[str] = []
    node = MemoryUsage(100, min_delta=10)
    node.add_listener(Listener("node", log, node))
    for _ in range(12):
        node.increase(1)
    assert log == ["node 0-10 of 10"]


def test_a_callback_runs_once_when_the_node_is_not_full_any_more() -> None:
    log: list[str] = []
    node = MemoryUsage(10)
    assert not node.notify_when_not_full(Waiter("too early", log))
    node.increase(12)
    for name in ("a", "b"):
        assert node.notify_when_not_full(Waiter(name, log))
    node.decrease(1)
    assert log == []
    node.decrease(2)
    assert log == ["a", "b"]
    node.increase(1)
    node.decrease(1)
    assert log == ["a", "b"]


def test_a_new_limit_makes_space_as_well() -> None:
    log: list[str] = []
    root, child = family(10, None)
    child.increase(10)
    assert child.notify_when_not_full(Waiter("a", log))
    root.set_limit(11)
    assert log == ["a"]


def looked_at_again(log: list[str]) -> None:
    """Demand that a waiter for a full parent goes on to wait for its own node."""
    root, child = family(10, 5)
    child.increase(5)
    root.increase(5)
    assert child.notify_when_not_full(Waiter("a", log))
    root.decrease(1)
    assert log == [], "the parent has space, the node has not"
    child.decrease(1)
    assert log == ["a"]


def test_a_waiter_for_the_parent_waits_for_its_own_node_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at_again([])
    monkeypatch.setattr(usage, "_LookAgain", lambda _, callback: callback)
    with pytest.raises(AssertionError):
        looked_at_again([])


def test_a_wait_goes_down_all_the_levels() -> None:
    log: list[str] = []
    root, middle = family(10, 9)
    leaf = MemoryUsage(8, middle)
    leaf.increase(8)
    middle.increase(1)
    root.increase(1)
    assert leaf.notify_when_not_full(Waiter("a", log))
    for node in (root, middle):
        node.decrease(1)
        assert log == []
    leaf.decrease(1)
    assert log == ["a"]


def test_a_callback_that_fills_the_node_again_comes_before_what_it_brings_about() -> None:
    log: list[str] = []
    node = MemoryUsage(10)
    node.increase(10)

    def fill_again() -> None:
        node.increase(5)
        node.notify_when_not_full(Waiter("c", log))
        log.append("filled")

    node.notify_when_not_full(Waiter("a", log, fill_again))
    node.notify_when_not_full(Waiter("b", log))
    node.add_listener(Listener("node", log, node))
    node.decrease(1)
    assert log == ["a", "filled", "b", "node 100-90 of 14", "node 90-140 of 14"]
    node.decrease(5)
    assert log[5:] == ["c", "node 140-90 of 9"]


def test_the_executor_that_is_handed_the_notices_decides_when_they_are_told() -> None:
    log: list[str] = []
    later: list[Notice] = []
    node = MemoryUsage(10, execute=later.append)
    node.add_listener(Listener("node", log, node))
    node.increase(10)
    node.notify_when_not_full(Waiter("a", log))
    node.decrease(10)
    assert log == []
    for notice in later:
        notice.deliver()
    assert log == ["node 0-100 of 0", "a", "node 100-0 of 0"]


def test_a_callback_that_fails_does_not_keep_the_others_from_being_told() -> None:
    log: list[str] = []
    node = MemoryUsage(10)
    node.increase(10)
    node.notify_when_not_full(Waiter("a", log, dict[str, str]().popitem))
    node.notify_when_not_full(Waiter("b", log))
    with pytest.raises(KeyError):
        node.decrease(1)
    node.increase(1)
    assert log == ["a", "b"]


def every_waiter_goes_on(root: MemoryUsage, child: MemoryUsage) -> None:
    """Demand that all waiters for a node go on when it stops, each only once (AMQ-4361)."""
    log: list[str] = []
    child.increase(5)
    own = Waiter("own", log, lambda: child.notify_when_not_full(Waiter("again", log)))
    assert child.notify_when_not_full(own)
    root.increase(5)
    assert child.notify_when_not_full(Waiter("above", log))
    assert root.notify_when_not_full(Waiter("other", log))
    child.stop()
    assert log == ["own", "above"]
    assert not child.notify_when_not_full(Waiter("late", log))
    root.decrease(5)
    child.decrease(5)
    assert log == ["own", "above", "other"]


class Deaf(MemoryUsage):
    """Stops, and leaves its waiters waiting, as before AMQ-4361."""

    __slots__ = ()

    def stop(self) -> None:
        """Only mark it."""
        self.is_stopped = True


def test_when_a_node_stops_its_waiters_go_on() -> None:
    every_waiter_goes_on(*family(10, 5))
    root = MemoryUsage(10)
    with pytest.raises(AssertionError):
        every_waiter_goes_on(root, Deaf(5, root))


def test_when_the_root_stops_so_do_all_below() -> None:
    log: list[str] = []
    root = MemoryUsage(10)
    child = MemoryUsage(None, root, 0.5)
    child.increase(5)
    child.notify_when_not_full(Waiter("a", log))
    child.add_listener(Listener("child", log, child))
    root.stop()
    assert (log, child.is_stopped) == (["a"], True)
    root.set_limit(20)
    assert child.limit == 5, "a child that left follows no limit"
    child.decrease(5)
    assert (log, child.percent, root.used) == (["a"], 0, 0), "no waiter is told of anything now"


def test_a_stopped_node_stays_in_the_tree_while_something_is_charged_to_it() -> None:
    root, child = family()
    child.increase(3)
    child.stop()
    copy, its_child = copied((root, child))
    its_child.decrease(3)
    assert (copy.used, copy.children, root.used) == (0, [], 3)
    child.decrease(3)
    assert root.children == []
    child.increase(1)
    assert root.children == [child]


def in_a_thread(wait: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start a thread that waits; return it, and the list into which it puts its answer."""
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(wait()), daemon=True)
    thread.start()
    return thread, answers


@pytest.mark.parametrize("end", ["space", "stop"])
@pytest.mark.parametrize("full", ["root", "child"])
def test_a_thread_waits_until_there_is_space_or_the_node_stops(end: str, full: str) -> None:
    root, child = family(10, 5)
    node = root if full == "root" else child
    node.increase(10)
    thread, answers = in_a_thread(child.wait_for_space)
    assert answers == []
    if end == "space":
        node.decrease(4)
        node.decrease(2)
    else:
        child.stop()
    thread.join(WAIT_S)
    assert answers == [end == "space"]


def test_a_thread_is_not_woken_where_only_one_of_two_has_space() -> None:
    root, child = family(10, 5)
    child.increase(5)
    root.increase(5)
    root.decrease(1)
    assert child.wait_for_space(0.001) is False
    child.decrease(1)
    assert child.wait_for_space(0.001) is True
    assert child.wait_for_space() is True


def test_threads_that_charge_at_once_lose_nothing() -> None:
    root, child = family(10**9, 10**9)

    def charge() -> None:
        for size in range(2000):
            child.increase(size)
            child.decrease(size - size // 2)

    threads = [in_a_thread(charge)[0] for _ in range(4)]
    for thread in threads:
        thread.join(WAIT_S)
    assert root.used == child.used == 4 * sum(size // 2 for size in range(2000))


def never_above(usage: MemoryUsage, has_room: Callable[[int], bool]) -> None:
    """Demand that a check before each addition keeps usage within the limit (AMQ-I17)."""
    draw = random.Random(1)  # noqa: S311
    for _ in range(300):
        size = draw.randrange(1, 5)
        if has_room(size):
            usage.increase(size)
        elif usage.used:
            usage.decrease(draw.randrange(usage.used + 1))
        assert all(node.used <= node.limit for node in usage.path())


def test_there_is_room_up_to_the_limit_itself_here_and_above() -> None:
    root, child = family(10, 8)
    child.increase(3)
    assert [child.room_for(size) for size in (5, 6)] == [True, False]
    root.increase(4)
    assert [child.room_for(size) for size in (3, 4)] == [True, False]


def test_asking_for_room_never_exceeds_a_limit_and_asking_for_full_does() -> None:
    _, child = family(12, 10)
    never_above(child, child.room_for)
    assert child.used
    _, child = family(12, 10)
    with pytest.raises(AssertionError):
        never_above(child, lambda _: not child.is_full())


def test_a_copy_of_the_tree_behaves_alike_and_is_independent() -> None:
    log: list[str] = []
    root, child = family(10, 5)
    leaf = MemoryUsage(None, child, 0.5, min_delta=20)
    content = Charged(5, child)
    content.retain()
    root.increase(5)
    waiter, listener = Waiter("a", log), Listener("l", [], leaf)
    assert leaf.notify_when_not_full(waiter)
    leaf.add_listener(listener)
    parts = root, child, leaf, content, waiter, listener
    copy, its_child, its_leaf, mine, its_waiter, its_listener = copied(parts)
    assert copy.fingerprint(name_of) == root.fingerprint(name_of)
    assert mine.fingerprint() == content.fingerprint()
    before = root.fingerprint(name_of)
    copy.decrease(1)
    assert its_waiter.log == []
    assert mine.release() == 0
    copy.set_limit(100)
    its_child.set_limit(8)
    its_leaf.increase(1)
    assert (its_waiter.log, its_listener.log) == (["a"], ["l 0-20 of 1"])
    assert (log, root.fingerprint(name_of)) == ([], before)
    assert (content.references, root.used, copy.used) == (1, 10, 5)
    root.decrease(1)
    content.release()
    assert log == ["a"]


def test_trees_that_differ_have_other_fingerprints() -> None:
    def named(change: Callable[[MemoryUsage, MemoryUsage], object]) -> object:
        root, child = family(10, 5)
        child.increase(5)
        root.increase(5)
        change(root, child)
        return root.fingerprint(name_of)

    changes: list[Callable[[MemoryUsage, MemoryUsage], object]] = [
        lambda _, __: None,
        lambda root, _: root.set_limit(11),
        lambda root, _: root.increase(1),
        lambda _, child: child.increase(1),
        lambda _, child: child.set_portion(0.5),
        lambda _, child: child.stop(),
        lambda _, child: child.notify_when_not_full(Waiter("a", [])),
        lambda root, _: root.notify_when_not_full(Waiter("a", [])),
        lambda root, _: root.notify_when_not_full(Waiter("b", [])),
        lambda root, _: root.add_listener(Listener("l", [], root)),
        lambda root, child: child.add_listener(Listener("l", [], root)),
        lambda root, _: MemoryUsage(5, root),
        lambda root, _: MemoryUsage(5, root, min_delta=2),
    ]
    names = [named(each) for each in changes]
    assert len(set(names)) == len(names)
    assert [named(each) for each in changes] == names

"""The linked container against a plain list, and its records against each other (AMQ-I30)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq.disk.data_files import DataFiles
from brokerproof.reference.activemq.disk.linked_container import (
    FreeList,
    LinkedContainer,
)
from brokerproof.reference.activemq.disk.store_records import (
    NOT_SET,
    RECORD_BYTES,
    Links,
    record_of,
)
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import RealDirectory, SimulatedDisk
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

if TYPE_CHECKING:
    from pathlib import Path

    from brokerproof.reference.activemq.parameters import FreeListRule

FILE_BYTES = 40
KEYS = "abcdefgh"
CAUGHT = (AssertionError, FileNotFoundError, KeyError)


def container_on(disk: SimulatedDisk, rule: FreeListRule = "whole") -> LinkedContainer:
    return LinkedContainer(disk, "c", data_file_bytes=FILE_BYTES, free_list=rule)


def filled(disk: SimulatedDisk, keys: str, rule: FreeListRule = "whole") -> LinkedContainer:
    """Return a container with an entry for each key."""
    container = container_on(disk, rule)
    for key in keys:
        container.put(key, key.encode())
    return container


def backwards(container: LinkedContainer) -> list[str]:
    """Return all keys, from the last to the first."""
    keys = []
    at = container.last()
    while at is not None:
        keys.append(container.key_at(at))
        assert len(keys) <= len(container)
        at = container.previous(at)
    return keys


def assert_sound(
    container: LinkedContainer, disk: SimulatedDisk, expected: dict[str, bytes]
) -> None:
    """Hold a container against a plain map, and its file against the invariants."""
    assert list(container.entries()) == list(expected.items())
    assert backwards(container) == list(expected)[::-1]
    assert len(container) == len(expected)
    for key in KEYS:
        assert container.get(key) == expected.get(key)
        assert (key in container) == (key in expected)
    content, _ = disk.content()["index-c"]
    offsets = range(0, len(content), RECORD_BYTES)
    records = {at: record_of(content[at : at + RECORD_BYTES]) for at in offsets}
    reached = [0]
    while (after := records[reached[-1]].links.next) != NOT_SET:
        assert records[after].links.previous == reached[-1]
        reached.append(after)
    assert records[0].links.previous == NOT_SET
    active = {at for at, record in records.items() if record.links.is_active}
    assert set(reached) == active, "what is active is reached, what is free is not"
    free = container._free.reachable()
    assert len(set(free)) == len(free)
    assert active.isdisjoint(free)
    if container._free_rule == "whole":
        assert active.union(free) == set(offsets)
    in_use = dict.fromkeys(container._data.in_use, 0)
    for at in reached[1:]:
        in_use[records[at].key.file] += 1
        in_use[records[at].value.file] += 1
    assert container._data.in_use == in_use
    assert {f"data-c-{number}" for number in in_use} == set(disk.names()) - {"index-c"}


def walk(seed: int, rule: FreeListRule = "whole", steps: int = 60) -> None:
    """Put, remove, load and copy at random."""
    draw = random.Random(seed)  # noqa: S311
    disk = SimulatedDisk()
    container = container_on(disk, rule)
    expected: dict[str, bytes] = {}
    for number in range(steps):
        move, key = draw.random(), draw.choice(KEYS)
        if move < 0.5:
            value = b"%d" % number * draw.randrange(5)
            assert container.put(key, value) == expected.pop(key, None)
            expected[key] = value
        elif move < 0.9:
            assert container.remove(key) == expected.pop(key, None)
        elif move < 0.94:
            container = container_on(disk, rule)
        elif move < 0.98:
            original, name = disk, container.fingerprint()
            disk, container = copied((disk, container))
            assert container.fingerprint() == name
            original.delete("index-c")
        else:
            container.clear()
            expected = {}
        assert_sound(container, disk, expected)


@pytest.mark.parametrize("rule", ["whole", "two"])
@pytest.mark.parametrize("seed", range(15))
def test_any_run_keeps_the_list_whole(seed: int, rule: FreeListRule) -> None:
    walk(seed, rule)


LINK_BACK = "self._write_links(after, links_after._replace(previous=before))"

MISTAKES = {
    "M-80: the successor keeps its back pointer": (LinkedContainer, "remove", LINK_BACK, "pass"),
    "the predecessor keeps its next": (
        LinkedContainer,
        "remove",
        "links_before._replace(next=after)",
        "links_before",
    ),
    "the last stays the last": (
        LinkedContainer,
        "remove",
        "self._last, self._before_last = before, links_before.previous",
        "pass",
    ),
    "the last keeps the one before it": (
        LinkedContainer,
        "remove",
        "self._before_last = before\n    self._data.release(key_item)",
        "pass\n    self._data.release(key_item)",
    ),
    "a key's room is not given back": (
        LinkedContainer,
        "remove",
        "self._data.release(key_item)",
        "pass",
    ),
    "a removed record stays active": (
        LinkedContainer,
        "remove",
        "self._disk.write(self.index_name, offset, _FREE)",
        "pass",
    ),
    "a removed record is not used again": (
        LinkedContainer,
        "remove",
        "self._free.put(offset)",
        "pass",
    ),
    "a key that is put again is there twice": (
        LinkedContainer,
        "put",
        "replaced = self.remove(key)",
        "replaced = self.get(key)",
    ),
    "a new entry is not linked": (
        LinkedContainer,
        "put",
        "self._write_links(self._last, Links(True, self._before_last, offset))",
        "pass",
    ),
    "a free record is given out twice": (
        FreeList,
        "take",
        "self._records.popleft()",
        "self._records[0]",
    ),
    "a load forgets the free records": (LinkedContainer, "_load", "inactive)", "[])"),
    "a load forgets the last": (
        LinkedContainer,
        "_load",
        "self._before_last, self._last = self._last, at",
        "pass",
    ),
    "a load counts no values": (
        LinkedContainer,
        "_load",
        "items += (record.key, record.value)",
        "items += (record.key,)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_list_is_found_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, function, old, new = MISTAKES[name]
    plant(monkeypatch, owner, function, old, new)
    with pytest.raises(CAUGHT):  # noqa: PT012 - one of the seeds
        for seed in range(15):
            walk(seed)


def walk_backwards_after_unlinking() -> None:
    """Remove the middle of three, then the last; append; and go back (M-80)."""
    disk = SimulatedDisk()
    container = filled(disk, "abc")
    container.remove("b")
    container.remove("c")
    container.put("d", b"d")
    assert backwards(container) == ["d", "a"]


def test_unlinking_leaves_the_way_back_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    walk_backwards_after_unlinking()
    plant(monkeypatch, LinkedContainer, "remove", LINK_BACK, "pass")
    with pytest.raises(AssertionError):
        walk_backwards_after_unlinking()


class StaleLinks(LinkedContainer):
    """A container that reads the links of a record once (M-82)."""

    def refresh(self, offset: int) -> Links:
        """Return the entry that was read first."""
        seen: dict[int, Links] = self.__dict__.setdefault("seen", {})
        return seen.setdefault(offset, super().refresh(offset))


def go_on_after_a_neighbour_was_removed(container: LinkedContainer) -> None:
    """Stand on the first, look at the next one, remove that, and go on (M-82)."""
    for key in "abc":
        container.put(key, b"")
    at = container.first()
    assert at is not None
    second = container.next(at)
    assert second is not None
    assert container.key_at(second) == "b"
    container.remove("b")
    third = container.next(at)
    assert third is not None
    assert container.key_at(third) == "c"
    container.put("d", b"")
    container.remove("c")
    fourth = container.next(at)
    assert fourth is not None
    assert container.key_at(fourth) == "d"


def test_a_position_on_an_entry_goes_on_though_its_neighbours_were_removed() -> None:
    go_on_after_a_neighbour_was_removed(container_on(SimulatedDisk()))
    with pytest.raises(AssertionError):
        go_on_after_a_neighbour_was_removed(StaleLinks(SimulatedDisk(), "c"))


def test_a_position_on_a_removed_entry_does_not_go_on() -> None:
    container = filled(SimulatedDisk(), "abc")
    at = container.offset_of("b")
    assert at is not None
    container.remove("b")
    with pytest.raises(AssertionError, match="stands on a record that was removed"):
        container.next(at)
    with pytest.raises(AssertionError, match="stands on a record that was removed"):
        container.value_at(at)


def records_after_cycles(rule: FreeListRule, held: int, cycles: int = 10) -> int:
    """Return how many records the file has after so many entries came and went so often."""
    disk = SimulatedDisk()
    container = container_on(disk, rule)
    for _ in range(cycles):
        for key in KEYS[:held]:
            container.put(key, b"")
        for key in KEYS[:held]:
            container.remove(key)
    return disk.size("index-c") // RECORD_BYTES - 1


@pytest.mark.parametrize("held", range(1, 6))
def test_the_file_grows_only_where_the_free_list_reaches_two_records(held: int) -> None:
    """M-84: 5.1 loses all freed records but two."""
    assert records_after_cycles("whole", held) == held
    assert records_after_cycles("two", held) == held + 9 * max(0, held - 2)


def test_a_load_finds_the_free_records_that_were_lost() -> None:
    disk = SimulatedDisk()
    container = filled(disk, "abcde", "two")
    for key in "abcde":
        container.remove(key)
    assert len(container._free.reachable()) == 2
    assert len(container_on(disk, "two")._free.reachable()) == 5


def test_putting_again_moves_to_the_tail() -> None:
    container = filled(SimulatedDisk(), "abc")
    assert container.put("a", b"new") == b"a"
    assert list(container.entries()) == [("b", b"b"), ("c", b"c"), ("a", b"new")]


def test_operations_cost_no_more_than_is_documented() -> None:
    disk = SimulatedDisk()
    container = filled(disk, "abcd")
    before = disk.counts.copy()
    container.put("e", b"e")
    assert disk.counts - before == {"append": 2, "write": 2}, "key, value; two records"
    before = disk.counts.copy()
    container.remove("b")
    assert disk.counts - before == {"read": 4, "write": 3}, "record, value, neighbours; three"
    before = disk.counts.copy()
    at = container.first()
    assert at is not None
    container.next(at)
    assert disk.counts - before == {"read": 2}
    assert disk.counts["sync"] == 0


def test_real_files_have_the_bytes_of_simulated_ones(tmp_path: Path) -> None:
    simulated, real = SimulatedDisk(), RealDirectory(tmp_path)
    for disk in (simulated, real):
        container = LinkedContainer(disk, "c", data_file_bytes=FILE_BYTES)
        draw = random.Random(1)  # noqa: S311
        for number in range(200):
            if draw.random() < 0.6:
                container.put(draw.choice(KEYS), b"%d" % number)
            else:
                container.remove(draw.choice(KEYS))
    real.close()
    content = {name: content for name, (content, _) in simulated.content().items()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == content
    assert len(content) >= 3


def test_states_that_behave_alike_have_one_name() -> None:
    disk = SimulatedDisk()
    container = filled(disk, "ab")
    copy = copied(container)
    container.remove("a")
    assert container.fingerprint() != copy.fingerprint()
    copy.remove("a")
    assert container.fingerprint() == copy.fingerprint()
    assert container._data.fingerprint() == copy._data.fingerprint()
    assert isinstance(container._data, DataFiles)
    assert hash(container.fingerprint()) == hash(copy.fingerprint())

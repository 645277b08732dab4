"""Reading in batches: the loops, resets of the position, and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq.disk.journaled_store import JournaledStore, QueueStores
from brokerproof.reference.activemq.disk.reference_store import (
    NoMessage,
    Recovered,
    ReferenceStore,
    SetBatch,
    StoreParameters,
)
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import SimulatedDisk
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

if TYPE_CHECKING:
    from brokerproof.reference.activemq.parameters import Duplicates, Reading

READINGS: tuple[Reading, ...] = ("stop", "advance", "document", "printed")


def body(index: int) -> bytes:
    return b"body of %d" % index


def store_with(
    count: int,
    *,
    reading: Reading = "stop",
    duplicates: Duplicates = "free",
    set_batch: SetBatch = "honoured",
) -> JournaledStore:
    """Return a store whose index has the messages 1 to `count`."""
    parameters = StoreParameters(reading=reading, duplicates=duplicates, set_batch=set_batch)
    store = QueueStores(SimulatedDisk(), parameters).open("q")
    for index in range(1, count + 1):
        store.add(str(index), body(index))
    store.flush()
    return store


class Fixed:
    """A listener with preset answers, and space for a preset number of calls."""

    def __init__(self, answers: dict[str, Recovered], asked_max: int = 99) -> None:
        self.answers = answers
        self.asked_left = asked_max
        self.seen: list[str] = []

    def has_space(self) -> bool:
        """Whether it has had few enough calls."""
        self.asked_left -= 1
        return self.asked_left >= 0

    def recover(self, key: str, value: bytes) -> Recovered:
        """Give the preset answer; without one, take the message."""
        assert value == body(int(key))
        self.seen.append(key)
        return self.answers.get(key, Recovered.TAKEN)


def at(store: JournaledStore) -> tuple[str | None, str | None]:
    """Return the keys on which the position stands, and that was recovered last."""
    references = store.references
    pos = references.pos
    return None if pos is None else references.container.key_at(pos), references.last_id


def read(store: JournaledStore, most: int, listener: Fixed) -> int:
    """Read a batch from the index alone."""
    return store.references.recover_next(most, listener, store)


@pytest.mark.parametrize(
    ("reading", "position"), [("stop", "1"), ("document", "1"), ("printed", "1"), ("advance", "3")]
)
def test_what_is_refused_is_passed_by_5_1_alone(reading: Reading, position: str) -> None:
    store = store_with(4, reading=reading)
    listener = Fixed({"2": Recovered.NO_ROOM})
    assert read(store, 2, listener) == (2 if reading == "advance" else 1)
    last = "3" if reading == "advance" else "1"
    assert at(store) == (position, last)
    assert listener.seen == (["1", "2", "3"] if reading == "advance" else ["1", "2"])


@pytest.mark.parametrize("reading", READINGS)
def test_one_entry_is_looked_at_though_there_is_no_space(reading: Reading) -> None:
    """Only the loop of 5.3 calls the listener itself; the others answer for it."""
    store = store_with(3, reading=reading)
    listener = Fixed({"1": Recovered.NO_ROOM}, asked_max=0)
    assert read(store, 9, listener) == 0
    assert listener.seen == (["1"] if reading == "stop" else [])
    assert at(store) == ("1" if reading == "advance" else None, None)


@pytest.mark.parametrize("reading", READINGS)
def test_without_space_a_duplicate_is_passed_by_5_1_and_5_3_alone(reading: Reading) -> None:
    store = store_with(3, reading=reading)
    listener = Fixed({"1": Recovered.DUPLICATE}, asked_max=0)
    assert read(store, 9, listener) == 0
    assert listener.seen == (["1"] if reading == "stop" else [])
    assert at(store) == ("1" if reading in {"stop", "advance"} else None, None)


@pytest.mark.parametrize("reading", READINGS)
def test_a_batch_ends_when_it_is_full_or_space_is(reading: Reading) -> None:
    store = store_with(9, reading=reading)
    assert read(store, 2, Fixed({})) == 2
    assert at(store) == ("2", "2")
    asks = 1 if reading == "stop" else 2
    assert read(store, 9, Fixed({}, asked_max=3 * asks - 1)) == 3
    assert at(store) == ("5", "5")
    assert read(store, 9, Fixed({})) == 4
    assert read(store, 9, Fixed({})) == 0, "nothing is behind the last"
    assert at(store) == ("9", "9")


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("duplicates", ["free", "counted"])
def test_a_duplicate_is_passed_and_may_use_up_the_batch(
    reading: Reading, duplicates: Duplicates
) -> None:
    """M-05: where they are counted, a batch of duplicates yields nothing though more is there."""
    store = store_with(5, reading=reading, duplicates=duplicates)
    listener = Fixed(dict.fromkeys("123", Recovered.DUPLICATE))
    assert read(store, 2, listener) == 2
    if duplicates == "counted":
        assert (listener.seen, at(store)) == (["1", "2"], ("2", "2"))
    else:
        assert (listener.seen, at(store)) == (list("12345"), ("5", "5"))


def test_a_duplicate_that_is_free_is_not_the_last_recovered() -> None:
    store = store_with(3)
    assert read(store, 9, Fixed(dict.fromkeys("23", Recovered.DUPLICATE))) == 1
    assert at(store) == ("3", "1")


@pytest.mark.parametrize("reading", ["stop", "advance", "document"])
def test_what_is_acknowledged_and_still_there_is_passed(reading: Reading) -> None:
    store = store_with(4, reading=reading)
    for key in "23":
        store.remove(key)
    listener = Fixed({})
    assert read(store, 1, listener) == 1
    assert at(store) == ("1", "1")
    assert read(store, 1, listener) == 1
    assert (listener.seen, at(store)) == (["1", "4"], ("4", "4"))
    store.reset_batching()
    read(store, 3, Fixed({}))
    store.flush()
    assert [key for key, _ in store.references.container.entries()] == ["1", "4"]


def test_at_the_end_of_what_is_acknowledged_nothing_was_recovered_last() -> None:
    store = store_with(2)
    store.remove("2")
    assert read(store, 9, Fixed({})) == 1
    assert at(store) == ("2", None)


def test_the_printed_loop_asks_for_the_id_of_a_message_that_is_not_there() -> None:
    store = store_with(4, reading="printed")
    store.remove("3")
    listener = Fixed({})
    for _ in range(2):
        with pytest.raises(NoMessage, match="3"):
            store.recover_next(9, listener)
        assert at(store) == ("2", "2"), "it comes to the same entry each time"
    assert listener.seen == ["1", "2"]
    store.flush()
    assert store.recover_next(9, listener) == 1
    assert listener.seen == ["1", "2", "4"]


def test_removing_the_last_recovered_or_where_the_position_is() -> None:
    """The next batch begins at the head then, and only then."""
    for removed, after in (("1", ("3", "2")), ("2", (None, None)), ("3", (None, None))):
        store = store_with(4)
        read(store, 9, Fixed({"3": Recovered.DUPLICATE, "4": Recovered.NO_ROOM}))
        assert at(store) == ("3", "2")
        store.remove(removed)
        assert at(store) == ("3", "2"), "the acknowledgement waits in the front"
        store.flush()
        assert at(store) == after
        if after == (None, None):
            listener = Fixed({})
            read(store, 9, listener)
            assert listener.seen == [key for key in "1234" if key != removed]


def test_an_empty_store_is_read_from_the_head() -> None:
    store = store_with(2)
    read(store, 9, Fixed({}))
    store.clear()
    assert at(store) == (None, None)
    store.add("3", body(3))
    assert store.recover_next(9, Fixed({})) == 1
    store.remove("3")
    assert store.count() == 0
    assert at(store) == (None, None)


def put_again_where_the_position_is() -> None:
    """A message that is stored again takes the freed record, on which the position stood."""
    store = store_with(4)
    listener = Fixed({"2": Recovered.DUPLICATE, "3": Recovered.NO_ROOM})
    assert read(store, 9, listener) == 1
    assert at(store) == ("2", "1")
    store.add("2", body(2))
    store.flush()
    again = Fixed({})
    assert store.recover_next(9, again) == 4
    assert again.seen == ["1", "3", "4", "2"]


def test_a_message_stored_again_is_unlinked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    put_again_where_the_position_is()
    plant(
        monkeypatch,
        ReferenceStore,
        "put",
        "replaced = self.remove(key)",
        "replaced = self.container.remove(key)",
    )
    with pytest.raises(AssertionError):
        put_again_where_the_position_is()


def go_on_behind_what_was_cached() -> None:
    """Set the position to the last of three of which two were cached; the third is next (M-11)."""
    store = store_with(3)
    store.set_batch("2")
    listener = Fixed({})
    store.recover_next(9, listener)
    assert listener.seen == ["3"]


def test_a_position_that_is_set_is_that_of_the_last_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on_behind_what_was_cached()
    plant(
        monkeypatch,
        ReferenceStore,
        "set_batch",
        "self.container.offset_of(key)",
        "self.container.next(self.container.offset_of(key))",
    )
    with pytest.raises(AssertionError):
        go_on_behind_what_was_cached()


def test_a_position_that_is_set_may_be_gone_or_not_count_or_wait_in_the_front() -> None:
    store = store_with(3)
    read(store, 1, Fixed({}))
    store.set_batch("unknown")
    assert at(store) == (None, "1"), "gone: from the head"
    store.add("4", body(4))
    store.set_batch("4")
    assert at(store) == ("4", "1")
    old = store_with(3, set_batch="ignored")
    read(old, 1, Fixed({}))
    old.add("4", body(4))
    old.set_batch("3")
    assert at(old) == ("1", "1")
    assert list(old.added) == ["4"], "what is ignored flushes nothing"


def read_what_is_not_in_the_index_yet() -> None:
    store = store_with(0)
    store.add("1", body(1))
    listener = Fixed({})
    assert store.recover_next(9, listener) == 1
    store.add("2", body(2))
    store.add("3", body(3))
    store.remove("2")
    assert store.recover_next(9, listener) == 1
    assert listener.seen == ["1", "3"]


def test_a_batch_that_recovers_nothing_is_tried_once_more_after_a_flush(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_what_is_not_in_the_index_yet()
    plant(monkeypatch, JournaledStore, "recover_next", "self.flush()", "pass")
    with pytest.raises(AssertionError):
        read_what_is_not_in_the_index_yet()


def test_without_space_and_after_a_success_nothing_is_flushed() -> None:
    store = store_with(2)
    store.add("3", body(3))
    assert store.recover_next(9, Fixed({"1": Recovered.NO_ROOM}, asked_max=0)) == 0
    assert list(store.added) == ["3"]
    listener = Fixed({})
    assert store.recover_next(9, listener) == 2
    assert listener.seen == ["1", "2"]
    assert list(store.added) == ["3"]


@pytest.mark.parametrize("reading", READINGS)
def test_a_full_recovery_stops_at_the_first_that_is_refused(reading: Reading) -> None:
    store = store_with(3, reading=reading)
    store.add("4", body(4))
    listener = Fixed({"1": Recovered.DUPLICATE, "3": Recovered.NO_ROOM})
    assert store.recover(listener) == 1
    assert listener.seen == ["1", "2", "3"]
    assert at(store) == (None, None)
    assert store.recover(Fixed({})) == 4


def test_a_copy_has_the_name_of_its_original_and_goes_its_own_way() -> None:
    disk = SimulatedDisk()
    stores = QueueStores(disk, StoreParameters())
    store = stores.open("q")
    for index in range(1, 6):
        store.add(str(index), body(index))
    store.flush()
    copy = copied(stores)
    assert copy.fingerprint() == stores.fingerprint()
    assert read(store, 2, Fixed({})) == 2
    assert copy.fingerprint() != stores.fingerprint()
    assert at(copy.open("q")) == (None, None)
    assert read(copy.open("q"), 2, Fixed({})) == 2
    assert copy.fingerprint() == stores.fingerprint()
    store.reset_batching()
    assert copy.fingerprint() != stores.fingerprint()

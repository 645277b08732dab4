"""The records of the linked store: their size, their links, and invalid records."""

from __future__ import annotations

import pytest

from brokerproof.reference.activemq.disk.store_records import (
    HEAD_BYTES,
    LINKS_BYTES,
    NOT_SET,
    RECORD_BYTES,
    IndexRecord,
    Item,
    Links,
    content_of,
    item_bytes,
    links_bytes,
    links_of,
    record_bytes,
    record_of,
)

RECORD = IndexRecord(Links(True, 51, NOT_SET), Item(1, 2, 3), Item(4, 1 << 40, 6))


def test_a_record_has_51_bytes_of_which_the_first_19_are_its_links() -> None:
    assert (RECORD_BYTES, LINKS_BYTES, HEAD_BYTES) == (51, 19, 5)
    data = record_bytes(RECORD)
    assert len(data) == RECORD_BYTES
    assert data[:2] == (31317).to_bytes(2, "big")
    assert data[:LINKS_BYTES] == links_bytes(RECORD.links)
    assert record_of(data) == RECORD
    assert links_of(data[:LINKS_BYTES]) == RECORD.links


def test_links_alone_can_be_replaced() -> None:
    freed = Links(False, NOT_SET, NOT_SET)
    data = links_bytes(freed) + record_bytes(RECORD)[LINKS_BYTES:]
    assert record_of(data) == RECORD._replace(links=freed)


def test_what_is_no_record_and_no_whole_item_is_an_error() -> None:
    for torn in (bytes(RECORD_BYTES), b"\0" + record_bytes(RECORD)[1:]):
        with pytest.raises(AssertionError, match="offsets lead to records"):
            record_of(torn)
        with pytest.raises(AssertionError, match="offsets lead to records"):
            links_of(torn[:LINKS_BYTES])
    data = item_bytes(b"value")
    assert content_of(data, Item(1, 0, 5)) == b"value"
    with pytest.raises(AssertionError, match="own items"):
        content_of(data[1:] + b"\0", Item(1, 0, 5))
    for size in (4, 6):
        with pytest.raises(AssertionError, match="whole"):
            content_of(data, Item(1, 0, size))

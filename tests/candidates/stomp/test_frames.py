"""Frames of STOMP: what is written is read again, in every version and however it arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.candidates.stomp.frames import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    VERSIONS,
    Frame,
    GarbledFrameError,
    Reader,
    Version,
    encoded,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
HEADERS = st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=4)
BODIES = st.binary(max_size=30)


def read(version: Version, *pieces: bytes) -> list[Frame]:
    """Return the frames that a reader gives for bytes that arrive in pieces."""
    reader = Reader(version)
    return [frame for piece in pieces for frame in reader.read(piece)]


@given(HEADERS, BODIES, st.integers(1, 40))
def test_a_frame_is_read_as_it_was_written(
    headers: dict[str, str], body: bytes, piece: int
) -> None:
    frames = [Frame("SEND", headers, body), Frame("ACK", headers)]
    sent = b"\n".join(encoded(frame, "1.2") for frame in frames)
    pieces = [sent[at : at + piece] for at in range(0, len(sent), piece)]
    first, second = read("1.2", *pieces)
    assert dict(first.headers) == headers | {"content-length": str(len(body))}
    assert (first.command, first.body) == ("SEND", body)
    assert (second.command, second.headers, second.body) == ("ACK", headers, b"")


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_special_signs_are_escaped(version: Version) -> None:
    frame = Frame("ACK", {"a:\n\\": ":\\"})
    assert encoded(frame, version) == b"ACK\na\\c\\n\\\\:\\c\\\\\n\n\0"
    assert read(version, encoded(frame, version)) == [frame]


def test_a_carriage_return_has_a_form_in_version_1_2_only() -> None:
    frame = Frame("ACK", {"id": "a\rb"})
    assert read("1.2", encoded(frame, "1.2")) == [frame]
    with pytest.raises(GarbledFrameError, match=r"STOMP 1\.1 has no form"):
        encoded(frame, "1.1")


def test_version_1_0_has_no_escapes() -> None:
    frame = Frame("ACK", {"id": "a:b\\n"})
    assert encoded(frame, "1.0") == b"ACK\nid:a:b\\n\n\n\0"
    assert read("1.0", encoded(frame, "1.0")) == [frame]
    for name, value in (("a", "b\nc"), ("a:b", "c"), ("a\nb", "c")):
        with pytest.raises(GarbledFrameError):
            encoded(Frame("ACK", {name: value}), "1.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_greeting_is_never_escaped(version: Version) -> None:
    frame = Frame("CONNECTED", {"session": "ID:vm\\n:1"})
    assert read(version, b"CONNECTED\nsession:ID:vm\\n:1\n\n\0") == [frame]
    assert encoded(Frame("CONNECT", {"login": "a\\b"}), version) == b"CONNECT\nlogin:a\\b\n\n\0"


def test_ends_of_lines_between_frames_are_heart_beats() -> None:
    frames = read(
        "1.2", b"\n\r\n\nRECEIPT\r\nreceipt-id:1\r\n\r\n\0\n\n", b"\n", b"\r\nERROR\n\nno\0"
    )
    assert [frame.command for frame in frames] == ["RECEIPT", "ERROR"]
    assert frames[0].headers == {"receipt-id": "1"}
    assert frames[1].body == b"no"


def test_a_body_of_stated_length_may_hold_any_byte() -> None:
    [frame] = read("1.2", b"MESSAGE\ncontent-length:3\n\n\0\n", b"\0\0")
    assert frame.body == b"\0\n\0"


def test_of_repeated_headers_the_first_counts() -> None:
    [frame] = read("1.2", b"MESSAGE\na:1\na:2\n\n\0")
    assert frame.headers == {"a": "1"}


@pytest.mark.parametrize(
    "sent",
    [
        b"MESSAGE\nno colon\n\n\0",
        b"MESSAGE\nid:\\x\n\n\0",
        b"MESSAGE\nid:a\\\n\n\0",
        b"MESSAGE\nid:\xff\n\n\0",
        b"MESSAGE\ncontent-length:-1\n\n\0",
        b"MESSAGE\ncontent-length:2\n\nabc\0",
        f"MESSAGE\ncontent-length:{BODY_BYTES_MAX + 1}\n\n".encode(),
        b"x" * (HEAD_BYTES_MAX + 1),
    ],
)
def test_what_is_not_stomp_is_an_error(sent: bytes) -> None:
    with pytest.raises(GarbledFrameError):
        read("1.2", sent)

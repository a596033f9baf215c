"""Values of suppression buffers: what they count for, and every format of their changelog."""

from __future__ import annotations

import pytest

from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.state.buffers.values import HEADERS, BufferValue, pack, read
from pykstreams.state.encoding.record_context import Origin, RawContext, context_bytes, pack_context

CHANGELOG = Origin("app-x-changelog", 3, -1)

CONTEXT = bytes.fromhex(
    "0000000000000007"  # timestamp
    "0000000000000005"  # offset
    "00000002"  # length of the topic
    "696e"  # in
    "00000001"  # partition
    "00000002"  # number of headers
    "00000001" + "71" + "00000001" + "01"  # q = 01
    "00000002" + "c3a9" + "ffffffff"  # é = null
)


def raw(headers: tuple[tuple[str, bytes | None], ...] = (("q", b"\x01"), ("é", None))) -> RawContext:
    return RawMessage("in", 1, 5, 99, b"key", b"value", ()), 7, headers


def row(data: str, version: int | None, *, prior: bytes | None = None, timestamp: int = 50) -> tuple[object, ...]:
    """What is read of a row, comparable."""
    headers = () if version is None else (("v", bytes([version])),)
    time, value = read(bytes.fromhex(data.replace(" ", "")), headers, timestamp, prior, CHANGELOG)
    message, context_time, context_headers = value.raw
    where = (message.topic(), message.partition(), message.offset(), context_time, context_headers)
    return time, value.prior, value.old, value.new, where


WHERE = ("in", 1, 5, 7, (("q", b"\x01"), ("é", None)))


def test_a_context_is_written_with_its_place_and_headers() -> None:
    assert pack_context(raw()) == CONTEXT


def test_what_a_punctuator_brought_has_an_empty_topic_and_keeps_its_headers() -> None:
    packed = pack_context((None, 7, (("h", b""),)))

    place = "0000000000000007" + "ffffffffffffffff" + "00000000" + "ffffffff"
    assert packed.hex() == place + "00000001" + "00000001" + "68" + "00000000"


def test_a_context_counts_its_numbers_topic_and_headers() -> None:
    assert context_bytes(raw()) == 8 + 8 + 4 + len("in") + len("q") + 1 + len("é")


def test_an_old_value_equal_to_the_prior_one_is_counted_and_written_once() -> None:
    same, other = BufferValue(b"12", b"12", b"3", raw(())), BufferValue(b"12", b"13", b"3", raw(()))

    assert (same.size, other.size) == (22 + 2 + 1, 22 + 2 + 2 + 1)
    assert pack(9, same)[30:] == bytes.fromhex("00000002 3132 fffffffe 00000001 33 0000000000000009")
    assert pack(9, other)[30:] == bytes.fromhex("00000002 3132 00000002 3133 00000001 33 0000000000000009")


def test_values_that_are_null_are_written_as_null() -> None:
    assert pack(9, BufferValue(None, None, None, raw(()))).hex()[60:] == "ffffffff" * 3 + "0000000000000009"


@pytest.mark.parametrize("prior", [None, b"", b"p"])
@pytest.mark.parametrize("old", [None, b"", b"p", b"old"])
@pytest.mark.parametrize("new", [None, b"", b"new"])
def test_what_is_written_is_read(prior: bytes | None, old: bytes | None, new: bytes | None) -> None:
    packed = pack(9, BufferValue(prior, old, new, raw()))

    assert row(packed.hex(), 3) == (9, prior, old, new, WHERE)
    assert HEADERS == (("v", b"\x03"),)


def test_version_2_has_the_change_before_the_prior_value() -> None:
    change = "0000000a 00000001 6f 00000001 6e"
    data = CONTEXT.hex() + change + "00000001 70" + "0000000000000009"

    assert row(data, 2) == (9, b"p", b"o", b"n", WHERE)


def test_version_2_may_be_a_version_3() -> None:
    """Kafka Streams 2.4.0, 2.4.1 and 2.5.0 wrote the one and said the other."""
    packed = pack(9, BufferValue(b"p", b"o", b"n", raw()))

    assert row(packed.hex(), 2) == (9, b"p", b"o", b"n", WHERE)


@pytest.mark.parametrize(("known", "prior"), [(None, b"o"), (b"p", b"p")])
def test_version_1_takes_the_prior_value_that_is_known_or_else_the_old_one(known: bytes | None, prior: bytes) -> None:
    data = "0000000000000009" + CONTEXT.hex() + "0000000a 00000001 6f 00000001 6e"

    assert row(data, 1, prior=known) == (9, prior, b"o", b"n", WHERE)


def test_version_0_takes_the_changelog_for_the_origin() -> None:
    data = "0000000000000009" + "ffffffff 00000001 6e"

    assert row(data, None) == (9, None, None, b"n", ("app-x-changelog", 3, -1, 50, ()))


def test_a_context_without_a_number_of_headers_has_none() -> None:
    context = CONTEXT.hex()[:52] + "ffffffff"
    data = context + "ffffffff" * 3 + "0000000000000009"

    assert row(data, 3) == (9, None, None, None, ("in", 1, 5, 7, ()))


@pytest.mark.parametrize(
    ("data", "version", "said"),
    [
        (CONTEXT.hex(), 3, "4 bytes are wanted at 50 of 50"),
        (CONTEXT.hex() + "fffffffd", 3, "-3 bytes are wanted at 54 of 54"),
        (CONTEXT.hex()[:52] + "fffffffe", 3, "a record has -2 headers"),
        (CONTEXT.hex(), 2, r"it is neither v2 \(4 bytes are wanted at 50 of 50\) nor v3 \("),
        ("0000000000000009" + CONTEXT.hex() + "ffffffff", 1, "it has no change"),
        ("00", None, "8 bytes are wanted at 0 of 1"),
        ("00", 4, r"its header 'v' is b'\\x04'"),
    ],
)
def test_what_is_no_row_is_refused(data: str, version: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        row(data, version)


def test_the_last_header_v_counts() -> None:
    packed = pack(9, BufferValue(None, None, b"n", raw()))

    time, value = read(packed, (("v", b"\x07"), ("w", b""), ("v", b"\x03")), 0, None, CHANGELOG)

    assert (time, value.new) == (9, b"n")

"""The text beside committed offsets, against what Kafka Streams 4.3.1 wrote (``TopicPartitionMetadata``)."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata, decode, encode

FORTY = {f"name-{i * 7919 % 1000}": i for i in range(40)}

WRITTEN_BY_JAVA = [
    pytest.param(-1, {}, "Av//////////", id="0 entries of -1"),
    pytest.param(0, {}, "AgAAAAAAAAAA", id="0 entries of 0"),
    pytest.param(1718000000123, {}, "AgAAAZAAx5x7", id="0 entries of 1718000000123"),
    pytest.param(9223372036854775807, {}, "An//////////", id="0 entries of 9223372036854775807"),
    pytest.param(5, {"k": 7}, "AgAAAAAAAAAFAAAAAQAAAAFrAAAAAAAAAAc=", id="1 entries of 5"),
    pytest.param(
        5,
        {"KSTREAM-AGGREGATE-0000000003-emit": 1718000000000, "b": -1},
        ("AgAAAAAAAAAFAAAAAgAAAAFi//////////8AAAAhS1NUUkVBTS1BR0dSRUdBVEUtMDAwMDAwMDAwMy1lbWl0AAABkADHnAA="),
        id="2 entries of 5",
    ),
    pytest.param(
        5,
        {
            "zeta": 1,
            "alpha": 2,
            "mid": 3,
            "KSTREAM-X-0000000001": 4,
            "KSTREAM-X-0000000002": 5,
            "ä€😀": 6,
            "": 0,
        },
        (
            "AgAAAAAAAAAFAAAABwAAAAR6ZXRhAAAAAAAAAAEAAAAUS1NUUkVBTS1YLTAwMDAwMDAwMDEAAAAAAAAABAAAAAAAAA"
            "AAAAAAAAAAABRLU1RSRUFNLVgtMDAwMDAwMDAwMgAAAAAAAAAFAAAACcOk4oKs8J+YgAAAAAAAAAAGAAAABWFscGhh"
            "AAAAAAAAAAIAAAADbWlkAAAAAAAAAAM="
        ),
        id="7 entries of 5",
    ),
    pytest.param(
        9,
        FORTY,
        (
            "AgAAAAAAAAAJAAAAKAAAAAduYW1lLTU2AAAAAAAAABgAAAAIbmFtZS0zODAAAAAAAAAAFAAAAAhuYW1lLTE2NQAAAA"
            "AAAAAjAAAABm5hbWUtMwAAAAAAAAAlAAAACG5hbWUtNDYxAAAAAAAAABMAAAAIbmFtZS03ODUAAAAAAAAADwAAAAhu"
            "YW1lLTI0NgAAAAAAAAAiAAAABm5hbWUtMAAAAAAAAAAAAAAACG5hbWUtNDg5AAAAAAAAAB8AAAAIbmFtZS04NDEAAA"
            "AAAAAAJwAAAAhuYW1lLTU0MgAAAAAAAAASAAAACG5hbWUtODY2AAAAAAAAAA4AAAAIbmFtZS0zMjcAAAAAAAAAIQAA"
            "AAhuYW1lLTkyMgAAAAAAAAAmAAAACG5hbWUtNjIzAAAAAAAAABEAAAAIbmFtZS05NDcAAAAAAAAADQAAAAhuYW1lLT"
            "QwOAAAAAAAAAAgAAAACG5hbWUtMTA5AAAAAAAAAAsAAAAIbmFtZS03MDQAAAAAAAAAEAAAAAduYW1lLTg0AAAAAAAA"
            "ACQAAAAIbmFtZS0xOTAAAAAAAAAACgAAAAhuYW1lLTI3MQAAAAAAAAAJAAAAB25hbWUtMjgAAAAAAAAADAAAAAhuYW"
            "1lLTM1MgAAAAAAAAAIAAAACG5hbWUtNTk1AAAAAAAAAAUAAAAIbmFtZS01NzAAAAAAAAAAHgAAAAhuYW1lLTQzMwAA"
            "AAAAAAAHAAAACG5hbWUtNjc2AAAAAAAAAAQAAAAIbmFtZS0xMzcAAAAAAAAAFwAAAAhuYW1lLTI5OQAAAAAAAAAVAA"
            "AACG5hbWUtNjUxAAAAAAAAAB0AAAAIbmFtZS04OTQAAAAAAAAAGgAAAAhuYW1lLTUxNAAAAAAAAAAGAAAACG5hbWUt"
            "NzU3AAAAAAAAAAMAAAAIbmFtZS0yMTgAAAAAAAAAFgAAAAhuYW1lLTczMgAAAAAAAAAcAAAACG5hbWUtOTc1AAAAAA"
            "AAABkAAAAIbmFtZS04MzgAAAAAAAAAAgAAAAhuYW1lLTgxMwAAAAAAAAAbAAAACG5hbWUtOTE5AAAAAAAAAAE="
        ),
        id="40 entries of 9",
    ),
]


@pytest.mark.parametrize(("time", "metadata", "text"), WRITTEN_BY_JAVA)
def test_encoding_gives_the_bytes_of_kafka_streams(time: int, metadata: dict[str, int], text: str) -> None:
    encoded = encode(time, metadata)

    assert text == encoded


@pytest.mark.parametrize(("time", "metadata", "text"), WRITTEN_BY_JAVA)
def test_what_kafka_streams_wrote_can_be_read(time: int, metadata: dict[str, int], text: str) -> None:
    assert (time, metadata) == decode(text)


@given(st.integers(-(2**63), 2**63 - 1), st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)))
def test_decoding_gives_what_was_encoded(time: int, metadata: dict[str, int]) -> None:
    assert (time, metadata) == decode(encode(time, metadata))


def test_version_1_has_a_partition_time_only() -> None:
    assert (7, {}) == decode("AQAAAAAAAAAH")


@pytest.mark.parametrize("text", ["", None])
def test_no_text_means_that_nothing_is_known(text: str | None) -> None:
    assert (-1, {}) == decode(text)


@pytest.mark.parametrize("text", ["no base64!", "AA==", "A///", "CQAAAAAAAAAH", "AgAAAAAAAAAFAAAAAQAAAAFr"])
def test_unreadable_text_counts_as_none_and_warns(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert (-1, {}) == decode(text)

    assert "cannot be read" in caplog.text


def test_only_a_put_makes_a_commit_necessary() -> None:
    metadata = ProcessorMetadata()
    metadata.update({"emit": 5})
    assert not metadata.needs_commit

    metadata.put("emit", 6)

    assert metadata.needs_commit


def test_update_keeps_the_larger_of_two_values() -> None:
    metadata = ProcessorMetadata({"a": 5, "b": 1})

    metadata.update({"a": 3, "b": 2, "c": 0})

    assert {"a": 5, "b": 2, "c": 0} == dict(metadata.values())


def test_text_of_releases_that_wrote_a_nul_behind_it_is_read(caplog: pytest.LogCaptureFixture) -> None:
    assert decode("AgAAAAAAAAAF\0") == (5, {})
    assert not caplog.records

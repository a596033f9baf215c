"""The offsets that a reset asks for: each option, and offsets that are not there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.reset.targets import (
    AtTime,
    Current,
    Earliest,
    Given,
    Latest,
    ShiftBy,
    Target,
    ToOffset,
    duration_ms,
    offsets_for,
    read_offsets,
)

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class TwoPartitions:
    """Offsets 10 to 100 in A, where one record a ms begins at time 0; nothing in B."""

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {A: 10, B: 5}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {A: 100, B: 5}

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        if timestamp == -1:  # brokers take it for the end (ListOffsetsRequest.LATEST_TIMESTAMP, 4.3.1)
            return {A: 100, B: 5}
        return {A: 10 + timestamp if timestamp < 90 else -1, B: -1}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Current(), {}),
        (Earliest(), {A: 10, B: 5}),
        (Latest(), {A: 100, B: 5}),
        (AtTime(7), {A: 17, B: 5}),
        (AtTime(-1), {A: 10, B: 5}),
        (AtTime(90), {A: 100, B: 5}),
        (ShiftBy(-20), {A: 30, B: 5}),
        (ShiftBy(1000), {A: 100, B: 5}),
        (ToOffset(3), {A: 10, B: 5}),
        (ToOffset(42), {A: 42, B: 5}),
        (Given({A: 7}), {A: 10}),
    ],
    ids=str,
)
def test_target_becomes_offsets_that_are_there(target: Target, expected: dict[TopicPartition, int]) -> None:
    assert expected == offsets_for(target, [A, B], {A: 50}, TwoPartitions())


def test_file_that_names_a_partition_which_is_not_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="bills-0, which the application does not read"):
        offsets_for(Given({TopicPartition("bills", 0): 1}), [A], {}, TwoPartitions())


def test_file_of_offsets_is_read_as_kafkas_tools_write_it(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text('orders,0,42\n\n"orders","1","7"\n', encoding="utf-8")

    assert Given({A: 42, B: 7}) == read_offsets(file)


@pytest.mark.parametrize("line", ["orders,0", "orders,x,1", "orders,0,-1", ",0,1"])
def test_wrong_line_of_a_file_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"orders,0,1\n{line}\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="line 2 of"):
        read_offsets(file)


def test_file_of_offsets_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes(b"orders,0,1\n\xff\xfe\n")

    with pytest.raises(ConfigError, match=r"offsets.csv' cannot be read"):
        read_offsets(file)


@pytest.mark.parametrize("text", ["7D", "P", "PT", "P7", "-P1D", f"P{'9' * 400}D"])
def test_wrong_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected one such as P7D"):
        duration_ms(text)

"""When an epoch of a source with several partitions counts as done."""

from __future__ import annotations

import pytest

from benchmarks.programs.peers.epochs import Epochs


def records(told: str) -> list[int]:
    return [int(line.split()[1]) for line in told.splitlines()]


def test_an_epoch_is_told_once_when_the_next_one_begins(capfd: pytest.CaptureFixture[str]) -> None:
    epochs = Epochs("lines")
    epochs.began()
    for partition in range(4):
        epochs.ended(partition, 10 * partition)
        assert records(capfd.readouterr().out) in ([0], [])
    epochs.began()
    epochs.began()

    assert records(capfd.readouterr().out) == [60]


def test_an_epoch_that_some_partitions_have_not_ended_is_not_told(capfd: pytest.CaptureFixture[str]) -> None:
    epochs = Epochs("lines")
    for partition in range(3):
        epochs.ended(partition, 5)
        epochs.began()

    assert records(capfd.readouterr().out) == [0]


def test_a_partition_without_records_counts_as_none(capfd: pytest.CaptureFixture[str]) -> None:
    epochs = Epochs("lines")
    for partition, offset in enumerate((None, -2, 0, 7)):
        epochs.ended(partition, offset)
    epochs.began()

    assert records(capfd.readouterr().out) == [0, 7]

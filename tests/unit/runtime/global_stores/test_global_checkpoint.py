"""The checkpoint of global stores: what it remembers, and what it does with a file that is of no use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykstreams.core.errors import ProcessorStateError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.global_stores import checkpoint as global_checkpoint
from pykstreams.runtime.global_stores.checkpoint import GlobalCheckpoint

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_offsets_come_back_by_topic(tmp_path: Path) -> None:
    GlobalCheckpoint(tmp_path).add(1, {A0: 5, A1: 6, B0: 7})
    found = GlobalCheckpoint(tmp_path)

    assert found.load()
    assert found.offsets("a", 1) == {A0: 5, A1: 6}
    assert found.offsets("b", 1) == {B0: 7}


def test_store_that_lost_its_last_commits_gets_the_offsets_of_the_one_it_has(tmp_path: Path) -> None:
    checkpoint = GlobalCheckpoint(tmp_path)
    for number in (1, 2, 3):
        checkpoint.add(number, {A0: number * 10})

    assert [checkpoint.offsets("a", number) for number in (1, 2, 3, 9)] == [{A0: 10}, {A0: 20}, {A0: 30}, {A0: 30}]


@pytest.mark.parametrize("number", [None, 0])
def test_store_that_is_older_than_every_known_commit_has_no_offsets(tmp_path: Path, number: int | None) -> None:
    checkpoint = GlobalCheckpoint(tmp_path)
    checkpoint.add(1, {A0: 10})

    assert checkpoint.offsets("a", number) is None


def test_only_the_latest_commits_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_checkpoint, "_KEPT", 3)
    checkpoint = GlobalCheckpoint(tmp_path)
    for number in range(1, 6):
        checkpoint.add(number, {A0: number})

    assert len(json.loads((tmp_path / "checkpoint.json").read_text())["commits"]) == 3
    assert checkpoint.offsets("a", 2) is None
    assert checkpoint.last == 5


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "commits": []}', '{"version": 1, "commits": [{}]}'])
def test_file_that_makes_no_sense_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "checkpoint.json").write_text(text)

    assert not GlobalCheckpoint(tmp_path).load()


def test_folder_that_cannot_be_written_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ProcessorStateError, match=r"checkpoint.json' cannot be written: .* look at the disk"):
        GlobalCheckpoint(tmp_path / "missing").add(1, {})

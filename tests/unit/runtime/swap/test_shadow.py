"""The next state of a task that cannot be made: the task works on without it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.swap.shadow import Shadow, ShadowParts
from tests.unit.runtime.swap.fake_offsets import FakeOffsets

TASK = TaskId(0, 0)
ORDERS = TopicPartition("orders", 0)


def shadow(folder: Path) -> Shadow:
    """A shadow whose folder is made next."""
    generation: Any = SimpleNamespace(
        start_of=lambda task_id, inputs, committed: dict.fromkeys(inputs, (0, "")), check=lambda *_: None
    )
    nothing: Any = None
    parts = ShadowParts({0: nothing}, nothing, nothing, FakeOffsets(), nothing, lambda task_id: folder)
    live: Any = SimpleNamespace(id=TASK, input_partitions=[ORDERS])
    return Shadow(live, {ORDERS: (3, "")}, generation, parts)


@pytest.mark.parametrize("name", ["next", "gone"])
def test_a_disk_that_refuses_the_folder_of_the_next_state_is_why_there_is_none(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of another kind would end the worker, whose task is as good as before."""
    if name == "next":
        (tmp_path / "next").write_text("a file")  # which cannot be deleted as a folder either
    refused = shadow(tmp_path if name == "next" else tmp_path / "gone")

    assert refused.step() is False
    assert isinstance(refused.failure, BootstrapError)
    assert "look at the disk (space, permissions)" in str(refused.failure)
    assert ("task 0_0: what was made as its next state was not deleted" in caplog.text) == (name == "next")

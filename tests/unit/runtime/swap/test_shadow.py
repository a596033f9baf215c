"""The next state of a task that cannot be made: the task works on without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykstreams.core.errors import BootstrapError, ClusterUnavailableError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.swap.shadow import Shadow, ShadowParts
from pykstreams.topology.plan import SubtopologyPlan
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


class Parts:
    """What a shadow lets go of at its end; those that are named fail at that."""

    def __init__(self, folder: Path, failing: list[str]) -> None:
        self.folder = folder
        self.failing = failing
        self.let_go: list[str] = []

    def end_of(self, part: str) -> Callable[[], None]:
        def end() -> None:
            self.let_go.append(part)
            if part in self.failing:
                raise RuntimeError(f"{part} failed")

        return end

    def writing(self) -> Shadow:
        """A shadow that waits for what it has written."""

        def undelivered() -> None:
            raise ClusterUnavailableError("no broker answers")

        def nothing(*_: object) -> None:
            """Takes whatever it is given."""

        generation: Any = SimpleNamespace(
            number=1,
            start_of=lambda task_id, inputs, committed: dict.fromkeys(inputs, (0, "")),
            check=nothing,
            take_over=nothing,
            observed_times=lambda task_id: {},
            needs_everything=lambda committed: False,
        )
        task: Any = SimpleNamespace(
            open_stores=nothing,
            start=nothing,
            add=nothing,
            is_ready=lambda: False,
            settle=lambda: True,
            prepare_commit=dict,
            post_commit=nothing,
            buffered_of=lambda place: 0,
            metadata=SimpleNamespace(put=nothing),
            stores={},
            buffered=False,
            unfinished=False,
            stream_time=0,
            close=self.end_of("task"),
        )
        reader: Any = SimpleNamespace(
            assign=nothing,
            unassign=nothing,
            fetch=lambda timeout: RestoreBatch(positions={ORDERS: 3}),
            close=self.end_of("reader"),
        )
        output: Any = SimpleNamespace(begin=lambda: None, flush=undelivered, abort=self.end_of("output"))
        parts = ShadowParts(
            {0: SubtopologyPlan(0, {}, {}, (), (), (), {}, {}, {}, {}, ())},
            lambda *_: task,
            lambda: reader,
            FakeOffsets(),
            output,
            lambda task_id: self.folder,
        )
        live: Any = SimpleNamespace(id=TASK, input_partitions=[ORDERS], stores={}, stream_time=0)
        made = Shadow(live, {ORDERS: (3, "")}, generation, parts)
        made.swap({ORDERS: (3, "")})
        for _ in range(3):
            assert made.step() is True
        return made


@pytest.mark.parametrize("failing", [["output"], ["reader"], ["task"], ["output", "reader", "task"]])
def test_everything_is_let_go_of_whatever_fails_and_no_failure_is_lost(tmp_path: Path, failing: list[str]) -> None:
    parts = Parts(tmp_path, failing)
    made = parts.writing()

    with pytest.raises(RuntimeError) as raised:
        made.discard()

    told: list[str] = []
    error: BaseException | None = raised.value
    while error is not None:
        told.insert(0, str(error))
        error = error.__context__
    assert told == [f"{part} failed" for part in failing]
    assert parts.let_go == ["output", "reader", "task"]
    assert not (tmp_path / "next").exists()


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

"""The id of a task, and the errors that go with it."""

from __future__ import annotations

import pickle

import pytest

from pykstreams.core.errors import StreamsError, TaskIdFormatError
from pykstreams.core.ids import TaskId


def test_the_text_of_a_task_id_is_read_back() -> None:
    assert TaskId.parse(str(TaskId(1, 30))) == TaskId(1, 30)


@pytest.mark.parametrize("text", ["", "1", "1_", "_3", "1_x", "-1_3", "1_3_5"])
def test_text_that_is_no_task_id_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(TaskIdFormatError, match=f"task id is '{text}'; expected <subtopology>_<partition>"):
        TaskId.parse(text)


@pytest.mark.parametrize("error", [StreamsError("broken", task_id=TaskId(0, 1)), TaskIdFormatError("no id")])
def test_errors_go_by_the_module_that_has_all_of_them(error: StreamsError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(error).__module__ == "pykstreams.core.errors"
    assert (type(again), str(again), again.task_id) == (type(error), str(error), error.task_id)

"""Errors come from other processes as they were raised there."""

from __future__ import annotations

import pickle

import pytest

from pykstreams.core.errors import (
    ClusterError,
    DamagedStoreError,
    DeliveryError,
    DiskFullError,
    MissingInternalTopicsError,
    ProcessingError,
    StreamsError,
    TaskCorruptedError,
    TopologyError,
    WrongTypeError,
)
from pykstreams.core.ids import TaskId

TASK = TaskId(0, 3)


@pytest.mark.parametrize(
    "error",
    [
        StreamsError("why", task_id=TASK),
        TopologyError("why"),
        ClusterError("why"),
        DeliveryError("why", name="MSG_SIZE_TOO_LARGE", retriable=True),
        ProcessingError("why", node="MAP", topic="in", partition=1, offset=2, task_id=TASK),
        DamagedStoreError("why", store="counts"),
        DiskFullError("why", folder="disk", task_id=TASK),
        TaskCorruptedError([TASK]),
        MissingInternalTopicsError("why", ["one"]),
        WrongTypeError("why", topic="in", serde="string"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_another_process_has_its_class_text_facts_and_notes(error: Exception) -> None:
    error.add_note("of attempt 3")

    found = pickle.loads(pickle.dumps(error))

    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))

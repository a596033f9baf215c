"""The id of a task, and the errors that go with it: the base of all errors may name a task, and bad text raises one.

They are imported from ``core.ids`` and ``core.errors``. The errors say that they are of the latter: the module of an
exception is in the headers of dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass


class StreamsError(Exception):
    """The application cannot go on; ``task_id`` names the task where that is known."""

    __module__ = "pykstreams.core.errors"

    def __init__(self, message: str, *, task_id: TaskId | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id

    def __reduce__(self) -> tuple[object, ...]:
        """Lets an error come whole from another process, whatever its class is made of."""
        return _as_it_was, (type(self), self.args, self.__dict__)


class TaskIdFormatError(StreamsError):
    """Text that should have been a task id is none."""

    __module__ = "pykstreams.core.errors"


@dataclass(frozen=True, order=True, slots=True)
class TaskId:
    """A task: one partition number of one sub-topology; its text is ``<subtopology>_<partition>``."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Reads ``"1_3"``; raises ``TaskIdFormatError`` for anything else.

        >>> TaskId.parse("1_3")
        TaskId(subtopology=1, partition=3)
        """
        left, _, right = text.partition("_")
        if not (left.isdecimal() and right.isdecimal()):
            raise TaskIdFormatError(f"task id is {text!r}; expected <subtopology>_<partition>, such as '0_3'")
        return cls(int(left), int(right))


def _as_it_was(kind: type[StreamsError], said: tuple[object, ...], facts: dict[str, object]) -> StreamsError:
    error = kind.__new__(kind, *said)
    error.__dict__.update(facts)
    return error

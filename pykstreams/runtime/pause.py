"""Whether the tasks of an application stand still, for all threads that work on them (``pausedTopologies``, 4.3.1).

While they do no record is processed, no punctuator runs, and no state is restored or kept up; the group is served,
inputs are read as far as there is room, and what was done is committed. It is a wish that each thread takes note of at
its next turn.
"""

from __future__ import annotations


class Pause:
    """Set and cleared by the user; any thread may ask."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

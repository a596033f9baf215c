"""``JoinKind``: inner, left, right and outer joins of streams and tables."""

from __future__ import annotations

from enum import Enum, auto


class JoinKind(Enum):
    """Which sides of a join have results also where they find no partner on the other side."""

    INNER = auto()
    LEFT = auto()
    RIGHT = auto()
    OUTER = auto()

    @property
    def keeps_left(self) -> bool:
        """Whether the left side has such results, so that the right value of a result may be missing."""
        return self in (JoinKind.LEFT, JoinKind.OUTER)

    @property
    def keeps_right(self) -> bool:
        """Whether the right side has such results, so that the left value of a result may be missing."""
        return self in (JoinKind.RIGHT, JoinKind.OUTER)

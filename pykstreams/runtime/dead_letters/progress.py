"""Which letters of a partition were replayed, as a group keeps it: beside an offset, in the text that goes with it.

All before the offset were; behind it those that the text names as ranges, counted from the offset: ``1:3-7,12``. So
letters can be replayed in any selection, and none of them twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from pykstreams.core.errors import StreamsError

LONGEST_TEXT: Final = 4000
"""Brokers take 4096 bytes (``offset.metadata.max.bytes``)."""
_VERSION: Final = "1:"


class Replayed:
    """The replayed offsets of one partition: ranges that do not touch, in order."""

    def __init__(self, offset: int = 0, text: str = "") -> None:
        """Goes on from what ``committed`` has given; ``StreamsError`` for the text of somebody else."""
        self._starts: list[int] = [0]
        self._ends: list[int] = [max(offset, 0)]
        for start, end in _ranges(text):
            self.add(offset + start, offset + end)

    def has(self, offset: int) -> bool:
        """Whether a letter was replayed."""
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    def add(self, start: int, end: int) -> None:
        """Notes that all from ``start`` up to, and without, ``end`` were replayed, or that there is nothing."""
        if start >= end:
            return
        first = next((at for at, found in enumerate(self._ends) if found >= start), len(self._ends))
        last = first
        while last < len(self._starts) and self._starts[last] <= end:
            start, end = min(start, self._starts[last]), max(end, self._ends[last])
            last += 1
        self._starts[first:last], self._ends[first:last] = [start], [end]

    def committed(self) -> tuple[int, str]:
        """Offset and text; ``StreamsError`` when the text would be longer than brokers take."""
        offset = self._ends[0]
        rest = zip(self._starts[1:], self._ends[1:], strict=True)
        ranges = ",".join(
            f"{start - offset}-{end - 1 - offset}" if end - start > 1 else f"{start - offset}" for start, end in rest
        )
        text = _VERSION + ranges if ranges else ""
        if len(text) > LONGEST_TEXT:
            raise StreamsError(
                f"the letters that were replayed lie in {len(self._starts)} places, which is more than a group can "
                "keep; replay those between them, too, or take another group for a further selection"
            )
        return offset, text


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    if not text:
        return
    try:
        if not text.startswith(_VERSION):
            raise ValueError(f"it does not begin with {_VERSION!r}")
        for one in text.removeprefix(_VERSION).split(","):
            start, _, last = one.partition("-")
            yield int(start), int(last or start) + 1
    except ValueError as error:
        raise StreamsError(
            f"the group has committed {text!r} beside its offset, which does not tell what was replayed ({error}); "
            "give a group that nothing else uses"
        ) from error

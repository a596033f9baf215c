"""A window store as operators see it, kept in a dict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pykstreams.core.types import Headers
from pykstreams.core.windows import Window, Windowed


class FakeWindowStore:
    """Rows by (key, start of the window); with ``cached`` it keeps changes until ``flush``."""

    def __init__(self, size: int, *, cached: bool = False) -> None:
        self.contents: dict[tuple[Any, int], tuple[Any, int]] = {}
        self.broken: Exception | None = None
        self.sends_old_values: bool | None = None
        self._size = size
        self._cached = cached
        self._dirty: dict[tuple[Any, int], None] = {}
        self._listener: Callable[..., None] | None = None

    def get_row(self, key: Any, start: int) -> tuple[Any, int] | None:
        if self.broken is not None:
            raise self.broken
        return self.contents.get((key, start))

    def put_row(self, key: Any, start: int, value: Any, timestamp: int) -> None:
        self._dirty[key, start] = None
        if value is None:
            self.contents.pop((key, start), None)
        else:
            self.contents[key, start] = (value, timestamp)

    take_row = get_row
    keep_row = put_row

    def rows(self, key: Any, time_from: int, time_to: int, reverse: bool = False) -> Iterator[tuple[int, Any, int]]:
        starts = sorted((start for k, start in self.contents if k == key and time_from <= start <= time_to))
        for start in reversed(starts) if reverse else starts:
            yield (start, *self.contents[key, start])

    def rows_between(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed[Any], Any, int]]:
        if self.broken is not None:
            raise self.broken
        for start, key in sorted((start, key) for key, start in self.contents if time_from <= start <= time_to):
            yield (self._windowed(key, start), *self.contents[key, start])

    def on_flush(self, listener: Callable[..., None], send_old_values: bool) -> bool:
        self.sends_old_values = send_old_values
        self._listener = listener
        return self._cached

    def flush(self, headers: Headers = ()) -> None:
        assert self._listener is not None
        for key, start in self._dirty:
            value, timestamp = self.contents[key, start]
            self._listener(self._windowed(key, start), (value, None, True), timestamp, headers)
        self._dirty.clear()

    def _windowed(self, key: Any, start: int) -> Windowed[Any]:
        return Windowed(key, Window(start, start + self._size))

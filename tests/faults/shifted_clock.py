"""A wall clock that jumps: a worker adds to the machine's what a file says, at every look.

Only what pykstreams takes for the time is shifted, not the clock of librdkafka, and not the time of intervals
(``monotonic``): those are the machine's when its wall clock is set, too.
"""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path
from typing import Any

from pykstreams.core.clock import SystemClock

SETTING = "app.clock.file"
_SHIFT = struct.Struct("<q")


def follow(config: Any) -> None:
    """Has this process follow the file that the settings name, if they do."""
    name = config.get(SETTING)
    if not name:
        return
    with Path(str(name)).open("rb") as file:
        shift = mmap.mmap(file.fileno(), _SHIFT.size, access=mmap.ACCESS_READ)

    def now_ms(self: SystemClock) -> int:
        (ms,) = _SHIFT.unpack(shift)
        return time.time_ns() // 1_000_000 + int(ms)

    SystemClock.now_ms = now_ms  # type: ignore[method-assign]


def shift(file: Path, ms: int) -> None:
    """Sets the clocks of those who follow a file forward by so much, or back; creates it."""
    if not file.exists():
        file.write_bytes(bytes(_SHIFT.size))
    with file.open("r+b") as shifted:
        shifted.write(_SHIFT.pack(ms))

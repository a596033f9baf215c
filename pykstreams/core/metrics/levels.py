"""How much is measured: ``metrics.recording.level``."""

from __future__ import annotations

from enum import Enum


class RecordingLevel(Enum):
    """The level of a sensor, or that of an application, which records sensors of its own level and of those before."""

    INFO = "INFO"
    DEBUG = "DEBUG"
    TRACE = "TRACE"

    def records(self, level: RecordingLevel) -> bool:
        """Whether an application of this level records sensors of another."""
        return _ORDER[level] <= _ORDER[self]


_ORDER = {level: order for order, level in enumerate(RecordingLevel)}

"""Where a source starts to read when its group has no offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pykstreams.core.types import Duration, duration_ms


@dataclass(frozen=True, slots=True)
class AutoOffsetReset:
    """The start of a source without committed offset: ``EARLIEST``, ``LATEST``, ``NONE`` or ``by_duration``.

    Wherever one is taken, ``"earliest"``, ``"latest"`` and ``"none"`` do too (KIP-1106 adds ``by_duration``).
    """

    strategy: str
    duration_ms: int | None = None

    EARLIEST: ClassVar[AutoOffsetReset]
    LATEST: ClassVar[AutoOffsetReset]
    NONE: ClassVar[AutoOffsetReset]

    @classmethod
    def by_duration(cls, duration: Duration) -> AutoOffsetReset:
        """Starts at the first record that is younger than the duration."""
        return cls("by_duration", duration_ms(duration, "offset reset duration"))

    @classmethod
    def of(cls, value: AutoOffsetReset | str | None) -> AutoOffsetReset | None:
        """Reads what a user gave; ``ValueError`` for an unknown word."""
        if value is None or isinstance(value, AutoOffsetReset):
            return value
        if value not in ("earliest", "latest", "none"):
            raise ValueError(
                f"offset reset policy is {value!r}; expected 'earliest', 'latest', 'none' or an AutoOffsetReset"
            )
        return cls(value)


AutoOffsetReset.EARLIEST = AutoOffsetReset("earliest")
AutoOffsetReset.LATEST = AutoOffsetReset("latest")
AutoOffsetReset.NONE = AutoOffsetReset("none")

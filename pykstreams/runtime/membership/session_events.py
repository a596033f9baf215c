"""The ends of a member's time in its group, as its session reports them to the worker."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.errors import StreamsError


@dataclass(frozen=True, slots=True)
class Expelled:
    """The group goes on without this member; others may have its tasks."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The group will not have this member, however often it asks."""

    error: StreamsError

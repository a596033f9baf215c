"""How long a member may be silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_HEARTBEAT_INTERVAL_MS: Final = 3000
"""The interval that clients take where nothing is set."""

_HEARTBEATS_PER_SESSION: Final = 3
"""As many as Kafka's documentation of ``heartbeat.interval.ms`` advises, at least."""


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """The times of a session, in seconds.

    :param heartbeat_s: from one heartbeat to the next.
    :param session_s: how long the group keeps a member of which it does not hear.
    """

    heartbeat_s: float
    session_s: float

    @classmethod
    def of_settings(cls, settings: Mapping[str, object], session_timeout_ms: int) -> SessionTimes:
        """The times of a member that tells the coordinator its session, by the settings of its consumer."""
        heartbeat_ms = int(str(settings.get("heartbeat.interval.ms", _HEARTBEAT_INTERVAL_MS)))
        return cls(heartbeat_ms / 1000, session_timeout_ms / 1000)

    @classmethod
    def of_brokers(cls, heartbeat_s: float, least_s: float) -> SessionTimes:
        """The times of a streams group, of which a member is told the interval of heartbeats only.

        The session lasts for several of them (by default nine: 5 and 45 s), so it is not taken for longer than it is.

        >>> SessionTimes.of_brokers(5, least_s=6), SessionTimes.of_brokers(0.5, least_s=6)
        (SessionTimes(heartbeat_s=5, session_s=15), SessionTimes(heartbeat_s=0.5, session_s=6))
        """
        return cls(heartbeat_s, max(least_s, _HEARTBEATS_PER_SESSION * heartbeat_s))

    @property
    def patience_s(self) -> float:
        """After which time without an answer a member is in doubt: later than a heartbeat, and before the end.

        >>> SessionTimes(2, 6).patience_s
        4.0
        """
        return (self.heartbeat_s + self.session_s) / 2

    @property
    def takeover_s(self) -> float:
        """How soon after a moment at which a member was heard of regularly others can have its tasks.

        The last heartbeat before that moment may have been sent one interval earlier.

        >>> SessionTimes(2, 6).takeover_s
        4
        """
        return self.session_s - self.heartbeat_s

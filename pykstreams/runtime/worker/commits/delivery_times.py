"""How long records without transactions may be on their way (docs/decisions/0050-time-in-the-producer.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.clients.coordinators.coordinator_requests import group_settings
from pykstreams.runtime.membership.session_times import SessionTimes

_BEYOND_LINGER_S: Final = 1.0
"""How long a record may wait at least when ``linger.ms`` has passed, which the client wants to be shorter."""


@dataclass(frozen=True, slots=True)
class DeliveryTimes:
    """The times, in seconds.

    :param record_s: how long a record may wait in the producer, so that no other owner of its task is ahead of it.
    :param give_up_s: how long it is sent again (``delivery.timeout.ms``).
    """

    record_s: float
    give_up_s: float

    @classmethod
    def of(cls, config: StreamsConfig) -> DeliveryTimes:
        """The times that the settings give."""
        consumer = config.get_main_consumer_configs(config.application_id, "", 1)
        session = SessionTimes.of_settings(consumer, group_settings(config, None).session_timeout_ms)
        producer = config.get_producer_configs("")
        give_up_s = int(str(producer["delivery.timeout.ms"])) / 1000 or math.inf  # 0 stands for no end
        linger_s = float(str(producer["linger.ms"])) / 1000
        return cls(min(give_up_s, max(session.takeover_s, linger_s + _BEYOND_LINGER_S)), give_up_s)

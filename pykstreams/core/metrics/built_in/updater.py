"""Metrics of restoring and of standby tasks: ``stream-state-updater-metrics``."""

from __future__ import annotations

from typing import Final

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.specs import GaugeSpec, MetricSpec, SensorSpec, Spec
from pykstreams.core.metrics.stats import Rate, WindowedCount

GROUP: Final = "stream-state-updater-metrics"
_TAGS: Final = ("thread-id",)


def _rate(name: str, stat: Rate, description: str) -> SensorSpec:
    return SensorSpec(GROUP, _TAGS, RecordingLevel.INFO, (MetricSpec(name, stat, description),))


ACTIVE_RESTORING: Final = GaugeSpec(
    GROUP, _TAGS, "active-restoring-tasks", "The number of active tasks that are being restored"
)
ACTIVE_PAUSED: Final = GaugeSpec(
    GROUP, _TAGS, "active-paused-tasks", "The number of active tasks to be restored while the application is paused"
)
STANDBY_UPDATING: Final = GaugeSpec(
    GROUP, _TAGS, "standby-updating-tasks", "The number of standby tasks whose changelogs are followed"
)
STANDBY_PAUSED: Final = GaugeSpec(
    GROUP, _TAGS, "standby-paused-tasks", "The number of standby tasks while the application is paused"
)
IDLE_RATIO: Final = _rate("idle-ratio", Rate(), "The share of time without anything to restore or to follow")
RESTORE_RATIO: Final = _rate("active-restore-ratio", Rate(), "The share of time spent restoring active tasks")
STANDBY_RATIO: Final = _rate("standby-update-ratio", Rate(), "The share of time spent following changelogs")
RESTORE_CALLS: Final = _rate(
    "restore-call-rate", Rate(WindowedCount()), "The number of fetches of changelogs per second"
)
RESTORE_RECORDS: Final = _rate("restore-records-rate", Rate(), "The number of changelog records restored per second")

SPECS: Final[tuple[Spec, ...]] = (
    ACTIVE_RESTORING,
    ACTIVE_PAUSED,
    STANDBY_UPDATING,
    STANDBY_PAUSED,
    IDLE_RATIO,
    RESTORE_RATIO,
    STANDBY_RATIO,
    RESTORE_CALLS,
    RESTORE_RECORDS,
)

"""Whether a changelog keeps what a job has written to it: history may be older than the topic keeps records.

Brokers go by the time of day, and stores by that of the data: a window of years ago is in its store for as long as
nothing newer comes, and is deleted from a changelog that keeps records for two days.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

_MS_PER_HOUR = 3_600_000


def expiring(topic: str, settings: Mapping[str, str], oldest_ms: int, now_ms: int) -> str | None:
    """Says that the broker will delete records of a topic, what that means and what to do, if it will.

    :param settings: of the topic, as the broker has them.
    :param oldest_ms: the lowest timestamp of its records.
    """
    retention = int(settings.get("retention.ms") or -1)
    age = now_ms - oldest_ms
    if "delete" not in settings.get("cleanup.policy", "") or retention < 0 or age <= retention:
        return None
    enough = -(-(age + retention) // _MS_PER_HOUR) * _MS_PER_HOUR
    first = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=oldest_ms)
    return (
        f"changelog {topic!r} keeps records for {timedelta(milliseconds=retention)} (retention.ms={retention}), and "
        f"those that were written begin at {first.isoformat(timespec='seconds')}: the broker deletes the older ones "
        "soon, and what restores the store from the topic does not get them. Keep them: kafka-configs.sh --alter "
        f"--entity-type topics --entity-name {topic} --add-config retention.ms={enough}; or have the topic made so, by "
        "windowstore.changelog.additional.retention.ms in the settings of the job"
    )

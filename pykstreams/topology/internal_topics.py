"""Names and settings of the topics that an application owns, as Kafka Streams creates them."""

from __future__ import annotations

from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.plan import InternalTopic

REPARTITION_SUFFIX = "-repartition"
CHANGELOG_SUFFIX = "-changelog"

_CREATE_TIME = {"message.timestamp.type": "CreateTime"}
_VERSIONED_EXTRA_LAG_MS = 24 * 60 * 60 * 1000
_MAX_LONG = 2**63 - 1


def repartition_topic(name: str, partitions: int | None, config: StreamsConfig) -> InternalTopic:
    """A repartition topic: kept until it is purged (``RepartitionTopicConfig``, 4.3.1)."""
    settings = {
        **_CREATE_TIME,
        "cleanup.policy": "delete",
        "segment.bytes": str(50 * 1024 * 1024),
        "retention.ms": "-1",
        **config.topic_settings,
    }
    return InternalTopic(name, "repartition", partitions, settings)


def changelog_topic(name: str, store: StoreBuilder[Any], config: StreamsConfig) -> InternalTopic:
    """The changelog topic of a store; what the user gave for it wins, then the ``topic.`` settings.

    Window and session stores are compacted and deleted after their retention plus
    ``windowstore.changelog.additional.retention.ms``; versioned stores are not compacted within their history plus a
    day (``WindowedChangelogTopicConfig``, ``VersionedChangelogTopicConfig``, 4.3.1).
    """
    settings = {**_CREATE_TIME, "cleanup.policy": "compact", **config.topic_settings}
    history_ms, retention_ms = store.history_retention_ms, store.retention_ms
    if history_ms is not None:
        settings["min.compaction.lag.ms"] = str(min(history_ms + _VERSIONED_EXTRA_LAG_MS, _MAX_LONG))
    elif retention_ms is not None:
        additional_ms = config.windowstore_changelog_additional_retention_ms
        settings = {**_CREATE_TIME, "cleanup.policy": "compact,delete", **config.topic_settings}
        settings["retention.ms"] = str(min(retention_ms + additional_ms, _MAX_LONG))
    return InternalTopic(name, "changelog", None, {**settings, **store.topic_config})

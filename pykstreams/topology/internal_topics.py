"""Names and settings of the topics that an application owns, as Kafka Streams creates them."""

from __future__ import annotations

from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.plan import InternalTopic

REPARTITION_SUFFIX = "-repartition"
CHANGELOG_SUFFIX = "-changelog"

_CREATE_TIME = {"message.timestamp.type": "CreateTime"}


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
    """The changelog topic of a key-value store: compacted; the user's settings win, then those under ``topic.``.

    Source: ``UnwindowedUnversionedChangelogTopicConfig``, 4.3.1.
    """
    settings = {**_CREATE_TIME, "cleanup.policy": "compact", **config.topic_settings, **store.topic_config}
    return InternalTopic(name, "changelog", None, settings)

"""Names and settings of the topics that an application owns, as Kafka Streams creates them."""

from __future__ import annotations

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.core.names import fault_of_name
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.plan import InternalTopic

_LAST_LONG = 2**63 - 1
_DAY_MS = 24 * 60 * 60 * 1000
_CREATE_TIME = {"message.timestamp.type": "CreateTime"}


def repartition_topic(
    name: str, partitions: int | None, config: StreamsConfig, *, decides: bool = False
) -> InternalTopic:
    """A repartition topic: kept until it is purged (``RepartitionTopicConfig``, 4.3.1)."""
    settings = {
        **_CREATE_TIME,
        "cleanup.policy": "delete",
        "segment.bytes": str(50 * 1024 * 1024),
        "retention.ms": "-1",
        **config.topic_settings,
    }
    cure = "give its step a shorter name (Grouped, Joined, StreamJoined, Repartitioned)"
    return InternalTopic(_checked(name, "repartition", cure), "repartition", partitions, settings, decides)


def changelog_topic(name: str, store: StoreBuilder[TaskStore], config: StreamsConfig) -> InternalTopic:
    """The changelog topic of a store: compacted; the user's settings win, then those under ``topic.``.

    Those of windows and sessions are also deleted in time: after the retention of the store and as much more as
    ``windowstore.changelog.additional.retention.ms`` says, unless the store has a ``retention.ms`` of its own. Those of
    versioned stores are compacted a day after the history retention at the earliest, unless the store has a
    ``min.compaction.lag.ms`` of its own.

    Sources: ``UnwindowedUnversionedChangelogTopicConfig``, ``WindowedChangelogTopicConfig``,
    ``VersionedChangelogTopicConfig``, 4.3.1.
    """
    retention_ms = store.retention_ms
    policy = "compact" if retention_ms is None else "compact,delete"
    settings = {**_CREATE_TIME, "cleanup.policy": policy, **config.topic_settings, **store.topic_config}
    if retention_ms is not None and "retention.ms" not in store.topic_config:
        additional = config.windowstore_changelog_additional_retention_ms
        settings["retention.ms"] = str(min(retention_ms + additional, _LAST_LONG))
    history_ms = store.history_retention_ms
    if history_ms is not None and "min.compaction.lag.ms" not in store.topic_config:
        settings["min.compaction.lag.ms"] = str(min(history_ms + _DAY_MS, _LAST_LONG))
    checked = _checked(name, "changelog", "give its store another name")
    return InternalTopic(checked, "changelog", None, settings, least_retention_ms=retention_ms)


def _checked(name: str, kind: str, cure: str) -> str:
    """Returns the name if a topic can have it (``InternalTopicConfig``, 4.3.1)."""
    if (fault := fault_of_name(name)) is not None:
        raise TopologyError(f"{kind} topic {name!r} {fault}; {cure}")
    return name

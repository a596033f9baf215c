"""The constants of ``StreamsConfig``: Java's names for keys, prefixes and values.

Invariant: a constant that ends in ``_CONFIG`` is the name of a setting in ``pykstreams.core.settings.keys``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class GroupProtocol(StrEnum):
    """Who shares the tasks among the workers: the workers, or the brokers."""

    CLASSIC = "classic"
    STREAMS = "streams"


class ConfigNames:
    """Java's constants, verbatim."""

    MAX_TASK_IDLE_MS_DISABLED: Final = -1
    STATE_CLEANUP_DIR_MAX_AGE_MS_DISABLED: Final = -1
    MAX_RACK_AWARE_ASSIGNMENT_TAG_LIST_SIZE: Final = 5
    MAX_RACK_AWARE_ASSIGNMENT_TAG_KEY_LENGTH: Final = 20
    MAX_RACK_AWARE_ASSIGNMENT_TAG_VALUE_LENGTH: Final = 30
    TOPIC_PREFIX: Final = "topic."
    CONSUMER_PREFIX: Final = "consumer."
    MAIN_CONSUMER_PREFIX: Final = "main.consumer."
    RESTORE_CONSUMER_PREFIX: Final = "restore.consumer."
    GLOBAL_CONSUMER_PREFIX: Final = "global.consumer."
    PRODUCER_PREFIX: Final = "producer."
    ADMIN_CLIENT_PREFIX: Final = "admin."
    CLIENT_TAG_PREFIX: Final = "client.tag."
    NO_OPTIMIZATION: Final = "none"
    OPTIMIZE: Final = "all"
    REUSE_KTABLE_SOURCE_TOPICS: Final = "reuse.ktable.source.topics"
    MERGE_REPARTITION_TOPICS: Final = "merge.repartition.topics"
    SINGLE_STORE_SELF_JOIN: Final = "single.store.self.join"
    UPGRADE_FROM_24: Final = "2.4"
    UPGRADE_FROM_25: Final = "2.5"
    UPGRADE_FROM_26: Final = "2.6"
    UPGRADE_FROM_27: Final = "2.7"
    UPGRADE_FROM_28: Final = "2.8"
    UPGRADE_FROM_30: Final = "3.0"
    UPGRADE_FROM_31: Final = "3.1"
    UPGRADE_FROM_32: Final = "3.2"
    UPGRADE_FROM_33: Final = "3.3"
    UPGRADE_FROM_34: Final = "3.4"
    UPGRADE_FROM_35: Final = "3.5"
    UPGRADE_FROM_36: Final = "3.6"
    UPGRADE_FROM_37: Final = "3.7"
    UPGRADE_FROM_38: Final = "3.8"
    UPGRADE_FROM_39: Final = "3.9"
    UPGRADE_FROM_40: Final = "4.0"
    UPGRADE_FROM_41: Final = "4.1"
    UPGRADE_FROM_42: Final = "4.2"
    AT_LEAST_ONCE: Final = "at_least_once"
    EXACTLY_ONCE_V2: Final = "exactly_once_v2"
    RACK_AWARE_ASSIGNMENT_STRATEGY_NONE: Final = "none"
    RACK_AWARE_ASSIGNMENT_STRATEGY_MIN_TRAFFIC: Final = "min_traffic"
    RACK_AWARE_ASSIGNMENT_STRATEGY_BALANCE_SUBTOPOLOGY: Final = "balance_subtopology"
    METRICS_LATEST: Final = "latest"
    ACCEPTABLE_RECOVERY_LAG_CONFIG: Final = "acceptable.recovery.lag"
    ALLOW_OS_GROUP_WRITE_ACCESS_CONFIG: Final = "allow.os.group.write.access"
    APPLICATION_ID_CONFIG: Final = "application.id"
    APPLICATION_SERVER_CONFIG: Final = "application.server"
    BOOTSTRAP_SERVERS_CONFIG: Final = "bootstrap.servers"
    BUFFERED_RECORDS_PER_PARTITION_CONFIG: Final = "buffered.records.per.partition"
    BUILT_IN_METRICS_VERSION_CONFIG: Final = "built.in.metrics.version"
    CLIENT_ID_CONFIG: Final = "client.id"
    COMMIT_INTERVAL_MS_CONFIG: Final = "commit.interval.ms"
    CONNECTIONS_MAX_IDLE_MS_CONFIG: Final = "connections.max.idle.ms"
    DEFAULT_CLIENT_SUPPLIER_CONFIG: Final = "default.client.supplier"
    DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG: Final = "deserialization.exception.handler"
    PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG: Final = "production.exception.handler"
    DSL_STORE_SUPPLIERS_CLASS_CONFIG: Final = "dsl.store.suppliers.class"
    DSL_STORE_FORMAT_CONFIG: Final = "dsl.store.format"
    DSL_STORE_FORMAT_DEFAULT: Final = "DEFAULT"
    DSL_STORE_FORMAT_HEADERS: Final = "HEADERS"
    DEFAULT_KEY_SERDE_CLASS_CONFIG: Final = "default.key.serde"
    DEFAULT_VALUE_SERDE_CLASS_CONFIG: Final = "default.value.serde"
    DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG: Final = "default.timestamp.extractor"
    ENABLE_METRICS_PUSH_CONFIG: Final = "enable.metrics.push"
    ENSURE_EXPLICIT_INTERNAL_RESOURCE_NAMING_CONFIG: Final = "ensure.explicit.internal.resource.naming"
    GROUP_PROTOCOL_CONFIG: Final = "group.protocol"
    DEFAULT_GROUP_PROTOCOL: Final = "classic"
    ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG: Final = "errors.dead.letter.queue.topic.name"
    LOG_RECORD_VALUES_CONFIG: Final = "log.record.values"
    LOG_SUMMARY_INTERVAL_MS_CONFIG: Final = "log.summary.interval.ms"
    MAX_TASK_IDLE_MS_CONFIG: Final = "max.task.idle.ms"
    MAX_WARMUP_REPLICAS_CONFIG: Final = "max.warmup.replicas"
    METADATA_MAX_AGE_CONFIG: Final = "metadata.max.age.ms"
    METRICS_NUM_SAMPLES_CONFIG: Final = "metrics.num.samples"
    METRICS_RECORDING_LEVEL_CONFIG: Final = "metrics.recording.level"
    METRIC_REPORTER_CLASSES_CONFIG: Final = "metric.reporters"
    METRICS_SAMPLE_WINDOW_MS_CONFIG: Final = "metrics.sample.window.ms"
    NUM_STANDBY_REPLICAS_CONFIG: Final = "num.standby.replicas"
    NUM_STREAM_THREADS_CONFIG: Final = "num.stream.threads"
    POLL_MS_CONFIG: Final = "poll.ms"
    PROBING_REBALANCE_INTERVAL_MS_CONFIG: Final = "probing.rebalance.interval.ms"
    PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG: Final = "processing.exception.handler"
    PROCESSING_GUARANTEE_CONFIG: Final = "processing.guarantee"
    PROCESSOR_WRAPPER_CLASS_CONFIG: Final = "processor.wrapper.class"
    REPARTITION_PURGE_INTERVAL_MS_CONFIG: Final = "repartition.purge.interval.ms"
    RECEIVE_BUFFER_CONFIG: Final = "receive.buffer.bytes"
    RACK_AWARE_ASSIGNMENT_NON_OVERLAP_COST_CONFIG: Final = "rack.aware.assignment.non_overlap_cost"
    RACK_AWARE_ASSIGNMENT_STRATEGY_CONFIG: Final = "rack.aware.assignment.strategy"
    RACK_AWARE_ASSIGNMENT_TAGS_CONFIG: Final = "rack.aware.assignment.tags"
    RACK_AWARE_ASSIGNMENT_TRAFFIC_COST_CONFIG: Final = "rack.aware.assignment.traffic_cost"
    RECONNECT_BACKOFF_MS_CONFIG: Final = "reconnect.backoff.ms"
    RECONNECT_BACKOFF_MAX_MS_CONFIG: Final = "reconnect.backoff.max.ms"
    REPLICATION_FACTOR_CONFIG: Final = "replication.factor"
    REQUEST_TIMEOUT_MS_CONFIG: Final = "request.timeout.ms"
    RETRY_BACKOFF_MS_CONFIG: Final = "retry.backoff.ms"
    ROCKSDB_CONFIG_SETTER_CLASS_CONFIG: Final = "rocksdb.config.setter"
    PARTITIONER_CHECK_ENABLE_CONFIG: Final = "partitioner.check.enable"
    TRACING_ENABLE_CONFIG: Final = "tracing.enable"
    ROCKSDB_MEMORY_BYTES_CONFIG: Final = "rocksdb.memory.bytes"
    SECURITY_PROTOCOL_CONFIG: Final = "security.protocol"
    SEND_BUFFER_CONFIG: Final = "send.buffer.bytes"
    STATE_CLEANUP_DELAY_MS_CONFIG: Final = "state.cleanup.delay.ms"
    STATE_CLEANUP_DIR_MAX_AGE_MS_CONFIG: Final = "state.cleanup.dir.max.age.ms"
    STATE_DIR_CONFIG: Final = "state.dir"
    STATESTORE_CACHE_MAX_BYTES_CONFIG: Final = "statestore.cache.max.bytes"
    TASK_ASSIGNOR_CLASS_CONFIG: Final = "task.assignor.class"
    TASK_TIMEOUT_MS_CONFIG: Final = "task.timeout.ms"
    UPGRADE_FROM_CONFIG: Final = "upgrade.from"
    TOPOLOGY_OPTIMIZATION_CONFIG: Final = "topology.optimization"
    WINDOW_STORE_CHANGE_LOG_ADDITIONAL_RETENTION_MS_CONFIG: Final = "windowstore.changelog.additional.retention.ms"

    @staticmethod
    def consumer_prefix(key: str) -> str:
        """The key for every consumer.

        >>> ConfigNames.consumer_prefix("max.poll.interval.ms")
        'consumer.max.poll.interval.ms'
        """
        return ConfigNames.CONSUMER_PREFIX + key

    @staticmethod
    def main_consumer_prefix(key: str) -> str:
        """The key for the consumer of the input topics."""
        return ConfigNames.MAIN_CONSUMER_PREFIX + key

    @staticmethod
    def restore_consumer_prefix(key: str) -> str:
        """The key for the consumer that reads changelogs."""
        return ConfigNames.RESTORE_CONSUMER_PREFIX + key

    @staticmethod
    def global_consumer_prefix(key: str) -> str:
        """The key for the consumer of global stores."""
        return ConfigNames.GLOBAL_CONSUMER_PREFIX + key

    @staticmethod
    def producer_prefix(key: str) -> str:
        """The key for the producer."""
        return ConfigNames.PRODUCER_PREFIX + key

    @staticmethod
    def admin_client_prefix(key: str) -> str:
        """The key for the admin client."""
        return ConfigNames.ADMIN_CLIENT_PREFIX + key

    @staticmethod
    def topic_prefix(key: str) -> str:
        """The key for internal topics when they are created."""
        return ConfigNames.TOPIC_PREFIX + key

    @staticmethod
    def client_tag_prefix(key: str) -> str:
        """The key for a tag of this worker."""
        return ConfigNames.CLIENT_TAG_PREFIX + key

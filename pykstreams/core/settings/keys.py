"""The table of settings: every key of Kafka Streams 4.3.1 with default, limits and what it does, and our own.

Plain data; ``pykstreams.core.config`` reads it, and the configuration page of the manual is made from it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pykstreams.core.handlers import (
    DeserializationExceptionHandler,
    ProcessingExceptionHandler,
    ProductionExceptionHandler,
)
from pykstreams.core.settings.types import REQUIRED, Check, Component, ConfigKey, ConfigType, Importance

_BOOLEAN = ConfigType.BOOLEAN
_CLASS = ConfigType.CLASS
_INT = ConfigType.INT
_LIST = ConfigType.LIST
_LONG = ConfigType.LONG
_STRING = ConfigType.STRING
_HIGH = Importance.HIGH
_LOW = Importance.LOW
_MEDIUM = Importance.MEDIUM

_OF_LEADERS: Final = "Where group.protocol is 'streams', the brokers share tasks out, and this has no effect."

OPTIMIZATIONS: Final = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")
EOS_COMMIT_INTERVAL_MS: Final = 100
MAX_TAGS: Final = 5

CONSUMER_PREFIX: Final = "consumer."
MAIN_CONSUMER_PREFIX: Final = "main.consumer."
RESTORE_CONSUMER_PREFIX: Final = "restore.consumer."
GLOBAL_CONSUMER_PREFIX: Final = "global.consumer."
PRODUCER_PREFIX: Final = "producer."
ADMIN_PREFIX: Final = "admin."
TOPIC_PREFIX: Final = "topic."
CLIENT_TAG_PREFIX: Final = "client.tag."
APP_PREFIX: Final = "app."

SERDE: Final = Component(
    "a serde (that of a type is Serdes.for_type(...))", ("serializer", "deserializer"), factory=True
)
_HANDLERS = (DeserializationExceptionHandler, ProcessingExceptionHandler, ProductionExceptionHandler)
_DESERIALIZATION_HANDLER = Component(
    "a deserialization exception handler",
    ("handle_error",),
    function=True,
    base=DeserializationExceptionHandler,
    alike=_HANDLERS,
)
_PROCESSING_HANDLER = Component(
    "a processing exception handler",
    ("handle_error",),
    function=True,
    base=ProcessingExceptionHandler,
    alike=_HANDLERS,
)
_PRODUCTION_HANDLER = Component(
    "a production exception handler", ("handle_error",), base=ProductionExceptionHandler, alike=_HANDLERS
)
_EXTRACTOR = Component("a timestamp extractor", function=True)
_SUPPLIERS = Component("DSL store suppliers", ("key_value_store",))
_CLIENTS = Component("a KafkaClientSupplier", ("get_consumer", "get_producer", "get_admin"))
_SETTER = Component("a RocksDBConfigSetter", ("set_config",), function=True)
_WRAPPER = Component("a ProcessorWrapper", ("wrap_processor_supplier",))
_ASSIGNOR = Component("a TaskAssignor", ("assign", "on_assignment_computed"))
_REPORTER = Component("a MetricsReporter", ("init", "metric_change", "metric_removal", "close"))

_APPLICATION_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+)"
_BROKER = re.compile(rf"(?:(?:{'|'.join(_SECURITY_PROTOCOLS)})://)?{_HOST}(?::(?P<port>\d{{1,5}}))?", re.IGNORECASE)
_HOST_AND_PORT = re.compile(rf"{_HOST}:(?P<port>\d{{1,5}})")


def _is_application_id(value: object) -> bool:
    return isinstance(value, str) and value not in (".", "..") and _APPLICATION_ID.fullmatch(value) is not None


def _is_address(form: re.Pattern[str], value: object) -> bool:
    """Whether a text has the form of an address, and the port, where there is one, is one that can be had."""
    found = form.fullmatch(value) if isinstance(value, str) else None
    return found is not None and (found["port"] is None or 1 <= int(found["port"]) <= 65_535)


def _are_brokers(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and len(set(value)) == len(value)
        and all(_is_address(_BROKER, broker) for broker in value)
    )


def _is_server(value: object) -> bool:
    return value == "" or _is_address(_HOST_AND_PORT, value)


def _are_optimizations(value: object) -> bool:
    if value in ("none", "all"):
        return True
    return isinstance(value, str) and all(part.strip() in OPTIMIZATIONS for part in value.split(","))


def _are_names(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(name, str) and name for name in value)


def _are_tags(value: object) -> bool:
    return _are_names(value) and isinstance(value, tuple) and len(value) <= MAX_TAGS


_HANDED_ON = "Handed to librdkafka under its own name."

_KEYS = (
    # high importance
    ConfigKey(
        "application.id",
        _STRING,
        REQUIRED,
        _HIGH,
        "Name of the application: its consumer group, the first part of the names of its internal topics, "
        "and the default prefix of client ids. Workers with the same id share the work.",
        check=Check("1 to 200 letters, digits, '.', '_' or '-'", _is_application_id),
    ),
    ConfigKey(
        "bootstrap.servers",
        _LIST,
        REQUIRED,
        _HIGH,
        "Brokers to ask first for the rest of the cluster, as host:port, or host for port 9092.",
        check=Check(
            "one or more different host:port, as a list or with commas between them; the port is 1 to 65535, and 9092 "
            "where there is none",
            _are_brokers,
        ),
    ),
    ConfigKey(
        "ensure.explicit.internal.resource.naming",
        _BOOLEAN,
        False,
        _HIGH,
        "Refuses a topology in which a store, a changelog or a repartition topic has a generated name. "
        "Generated names change when steps are added, and then the state behind them is lost.",
    ),
    ConfigKey(
        "num.standby.replicas",
        _INT,
        0,
        _HIGH,
        "How many other instances keep a copy of each stateful task's state up to date, so that little has to be "
        "restored when one of them takes the task over. The leader of the group goes by its own value. "
        "Where group.protocol is 'streams', the brokers go by streams.num.standby.replicas of the group instead, and "
        "this has no effect.",
        minimum=0,
    ),
    ConfigKey(
        "processing.exception.handler.global.enabled",
        _BOOLEAN,
        False,
        _HIGH,
        "Asks processing.exception.handler about failures in global stores, too. Kafka plans to do so "
        "always from 5.0 on.",
    ),
    ConfigKey(
        "state.dir",
        _STRING,
        os.path.join(tempfile.gettempdir(), "kafka-streams"),
        _HIGH,
        "Folder for local state; in it each application has a folder of its own, pykstreams/<application.id>, apart "
        "from that of a Java application of the same name. The workers of one machine may share it. Put it on a disk "
        "that survives a restart, otherwise state is read again from the changelogs.",
        check=Check("the path of a folder", lambda value: isinstance(value, str) and value != ""),
        default_text="<temporary directory>/kafka-streams",
    ),
    # medium importance
    ConfigKey(
        "acceptable.recovery.lag",
        _LONG,
        10_000,
        _MEDIUM,
        "How many changelog records, summed over its stores, a worker's copy of a task may be behind and "
        f"still count as caught up. {_OF_LEADERS}",
        minimum=0,
    ),
    ConfigKey(
        "client.id",
        _STRING,
        "",
        _MEDIUM,
        "Prefix of the ids of all clients; what kind of client it is gets appended. Empty: application.id "
        "and a unique part.",
    ),
    ConfigKey(
        "default.key.serde",
        _CLASS,
        None,
        _MEDIUM,
        "Serde for keys wherever a step gives none.",
        component=SERDE,
    ),
    *(
        ConfigKey(name, _CLASS, None, _MEDIUM, doc, not_offered=instead)
        for name, doc, instead in (
            (
                "default.list.key.serde.inner",
                "In Java: the inner serde when keys have the list serde.",
                "give the list serde itself: default.key.serde=Serdes.list(inner)",
            ),
            (
                "default.list.key.serde.type",
                "In Java: the list class when keys have the list serde.",
                "the list serde always gives a list",
            ),
            (
                "default.list.value.serde.inner",
                "In Java: the inner serde when values have the list serde.",
                "give the list serde itself: default.value.serde=Serdes.list(inner)",
            ),
            (
                "default.list.value.serde.type",
                "In Java: the list class when values have the list serde.",
                "the list serde always gives a list",
            ),
        )
    ),
    ConfigKey(
        "default.timestamp.extractor",
        _CLASS,
        "pykstreams.core.timestamps:FailOnInvalidTimestamp",
        _MEDIUM,
        "Tells the event time of a record, unless its source has an extractor of its own.",
        component=_EXTRACTOR,
    ),
    ConfigKey(
        "default.value.serde",
        _CLASS,
        None,
        _MEDIUM,
        "Serde for values wherever a step gives none.",
        component=SERDE,
    ),
    ConfigKey(
        "deserialization.exception.handler",
        _CLASS,
        "pykstreams.core.handlers:LogAndFailExceptionHandler",
        _MEDIUM,
        "Decides what happens with an input record whose key or value cannot be decoded.",
        component=_DESERIALIZATION_HANDLER,
    ),
    ConfigKey(
        "errors.dead.letter.queue.topic.name",
        _STRING,
        None,
        _MEDIUM,
        "Topic to which the built-in exception handlers send records they gave up on; a handler of your own "
        "adds its dead letters itself. Unset: none are sent.",
        check=Check("the name of a topic", lambda value: isinstance(value, str) and value != ""),
    ),
    ConfigKey(
        "group.protocol",
        _STRING,
        "classic",
        _MEDIUM,
        "How workers share tasks: classic leaves the choice to the workers, streams to the brokers (KIP-1071). "
        "All workers of an application have the same, those of Java too; all must be stopped before it is changed.",
        choices=("classic", "streams"),
        any_case=True,
    ),
    ConfigKey(
        "max.task.idle.ms",
        _LONG,
        0,
        _MEDIUM,
        "How long a task that has several inputs waits when one of them is empty, so that records are taken "
        "in the order of their timestamps. 0 waits only for records the brokers have already; -1 never "
        "waits.",
        minimum=-1,
    ),
    ConfigKey(
        "max.warmup.replicas",
        _INT,
        2,
        _MEDIUM,
        "How many extra standby tasks, over the whole application, may warm up at one time before tasks move to "
        f"them. {_OF_LEADERS}",
        minimum=1,
    ),
    ConfigKey(
        "num.stream.threads",
        _INT,
        1,
        _MEDIUM,
        "With `pykstreams run` the default of --workers, which counts processes. In KafkaStreams(...) the "
        "number of threads, which gain nothing under a global interpreter lock.",
        minimum=1,
    ),
    ConfigKey(
        "processing.exception.handler",
        _CLASS,
        "pykstreams.core.handlers:LogAndFailProcessingExceptionHandler",
        _MEDIUM,
        "Decides what happens with a record whose processing raised.",
        component=_PROCESSING_HANDLER,
    ),
    ConfigKey(
        "processing.guarantee",
        _STRING,
        "at_least_once",
        _MEDIUM,
        "at_least_once: after a failure some records are processed again. exactly_once_v2: results, state "
        "and offsets are committed in one transaction.",
        choices=("at_least_once", "exactly_once_v2"),
    ),
    ConfigKey(
        "production.exception.handler",
        _CLASS,
        "pykstreams.core.handlers:DefaultProductionExceptionHandler",
        _MEDIUM,
        "Decides what happens with an output record that cannot be encoded or sent.",
        component=_PRODUCTION_HANDLER,
    ),
    ConfigKey(
        "replication.factor",
        _INT,
        -1,
        _MEDIUM,
        "Copies of each internal topic among the brokers; -1 leaves it to the brokers' default.",
        minimum=-1,
        maximum=32_767,
    ),
    ConfigKey(
        "security.protocol",
        _STRING,
        "PLAINTEXT",
        _MEDIUM,
        f"How clients connect to brokers. {_HANDED_ON}",
        choices=_SECURITY_PROTOCOLS,
        any_case=True,
    ),
    ConfigKey(
        "statestore.cache.max.bytes",
        _LONG,
        10 * 1024 * 1024,
        _MEDIUM,
        "Memory for record caches, for all threads of a process together. The cache leaves out intermediate "
        "results of one key between two commits; 0 switches it off.",
        minimum=0,
    ),
    ConfigKey(
        "task.assignor.class",
        _CLASS,
        None,
        _MEDIUM,
        "Your own way to share tasks among instances, which the leader of the group asks. Unset: the built-in one. "
        f"{_OF_LEADERS}",
        component=_ASSIGNOR,
    ),
    ConfigKey(
        "task.timeout.ms",
        _LONG,
        300_000,
        _MEDIUM,
        "How long a task retries after errors of the cluster before the error stops the worker; 0 does not retry.",
        minimum=0,
    ),
    ConfigKey(
        "topology.optimization",
        _STRING,
        "none",
        _MEDIUM,
        "Which rewrites of the topology are on: none, all, or a choice with commas. It takes effect where "
        "the topology is built, so it must be in the settings given to StreamsBuilder.build().",
        check=Check(
            "'none', 'all', or a choice with commas from " + ", ".join(map(repr, OPTIMIZATIONS)),
            _are_optimizations,
        ),
    ),
    # low importance
    ConfigKey(
        "allow.os.group.write.access",
        _BOOLEAN,
        False,
        _LOW,
        "Lets the group of the operating system write to the state directory, not only its owner.",
    ),
    ConfigKey(
        "application.server",
        _STRING,
        "",
        _LOW,
        "host:port at which this worker answers queries; the others learn of it.",
        check=Check("host:port, the port 1 to 65535, or nothing", _is_server),
    ),
    ConfigKey(
        "buffered.records.per.partition",
        _INT,
        1000,
        _LOW,
        "A partition whose fetching was paused goes on when its buffer holds no more records than this; it "
        "is paused at ten times as many, because pausing often is costly.",
        minimum=1,
    ),
    ConfigKey(
        "built.in.metrics.version",
        _STRING,
        "latest",
        _LOW,
        "Version of the names of metrics; there is only one.",
        choices=("latest",),
    ),
    ConfigKey(
        "commit.interval.ms",
        _LONG,
        30_000,
        _LOW,
        "Time between two commits of offsets, results and state. Under exactly_once_v2 the default is 100, "
        "because readers of the output wait for the commit.",
        minimum=0,
    ),
    ConfigKey(
        "config.providers",
        _LIST,
        (),
        _LOW,
        "In Java: plug-ins that fill settings in from outside.",
        check=Check("a list of names", _are_names),
        not_offered="read the values in Python and hand them in",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        _LONG,
        540_000,
        _LOW,
        f"Connections without traffic for this long are closed; -1 keeps them. {_HANDED_ON}",
        minimum=-1,
        maximum=2_147_483_647,
    ),
    ConfigKey(
        "default.client.supplier",
        _CLASS,
        "pykstreams.runtime.clients.supplier:DefaultKafkaClientSupplier",
        _LOW,
        "Makes the consumers, producers and admin clients of a worker.",
        component=_CLIENTS,
    ),
    ConfigKey(
        "dsl.store.format",
        _STRING,
        "DEFAULT",
        _LOW,
        "DEFAULT: stores keep a timestamp where the operator needs one. HEADERS: they keep the record's headers, too. "
        "Where it changes, stores that are there are restored from their changelogs; those without one are refused.",
        choices=("DEFAULT", "HEADERS"),
        any_case=True,
    ),
    ConfigKey(
        "dsl.store.suppliers.class",
        _CLASS,
        "pykstreams.state:RocksDBDslStoreSuppliers",
        _LOW,
        "Which stores the DSL makes: RocksDB, or in memory with BuiltInDslStoreSuppliers.IN_MEMORY.",
        component=_SUPPLIERS,
    ),
    ConfigKey(
        "enable.metrics.push",
        _BOOLEAN,
        True,
        _LOW,
        f"Lets brokers that ask for it collect the metrics of the clients. {_HANDED_ON}",
    ),
    ConfigKey(
        "log.record.values",
        _BOOLEAN,
        True,
        _LOW,
        "Whether errors and logs show keys and values of records, cut after 120 characters. With false they show the "
        "type alone, in all of the process while the application runs. Texts of exceptions of your own functions, and "
        "dead letters, are not changed.",
    ),
    ConfigKey(
        "log.summary.interval.ms",
        _LONG,
        120_000,
        _LOW,
        "Time between two log lines that sum up what was processed; a negative number switches them off.",
    ),
    ConfigKey(
        "metadata.max.age.ms",
        _LONG,
        300_000,
        _LOW,
        "What is known of topics and brokers is refreshed at least this often. Handed to librdkafka under "
        "its own name, and a third of it as topic.metadata.refresh.interval.ms, so that entries are renewed "
        "before they expire.",
        minimum=1,
        maximum=86_400_000,
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        _LONG,
        300_000,
        _LOW,
        f"Without an answer about the cluster for this long, clients ask bootstrap.servers again. {_HANDED_ON}",
        minimum=0,
        maximum=2_147_483_647,
    ),
    ConfigKey(
        "metadata.recovery.strategy",
        _STRING,
        "rebootstrap",
        _LOW,
        f"What clients do when no known broker answers: ask bootstrap.servers again, or nothing. {_HANDED_ON}",
        choices=("rebootstrap", "none"),
        any_case=True,
    ),
    ConfigKey(
        "metric.reporters",
        _LIST,
        (),
        _LOW,
        "Objects that are told of metrics as they come and go: MetricsReporter.",
        component=_REPORTER,
    ),
    ConfigKey("metrics.num.samples", _INT, 2, _LOW, "How many samples rates and averages look at.", minimum=1),
    ConfigKey(
        "metrics.recording.level",
        _STRING,
        "INFO",
        _LOW,
        "How much is measured: DEBUG and TRACE add metrics that are recorded for each record and access to a store.",
        choices=("INFO", "DEBUG", "TRACE"),
    ),
    ConfigKey("metrics.sample.window.ms", _LONG, 30_000, _LOW, "Length of one such sample.", minimum=0),
    ConfigKey(
        "partitioner.check.enable",
        _BOOLEAN,
        True,
        _LOW,
        "Samples the records of input topics, and warns once of each whose keys lie in other partitions than its "
        "readers take them to be: where Kafka's murmur2 puts them, or the partitioner given to Consumed. pykstreams "
        "check looks, too.",
    ),
    ConfigKey("poll.ms", _LONG, 100, _LOW, "How long one poll for new records may wait.", minimum=0),
    ConfigKey(
        "probing.rebalance.interval.ms",
        _LONG,
        600_000,
        _LOW,
        f"How often the workers look whether a standby task that was warmed up can take its task over. {_OF_LEADERS}",
        minimum=60_000,
    ),
    ConfigKey(
        "processor.wrapper.class",
        _CLASS,
        None,
        _LOW,
        "Wraps every processor of a topology, for what cuts across them. It takes effect where the topology "
        "is built, so it must be in the settings given to StreamsBuilder or Topology.",
        component=_WRAPPER,
    ),
    ConfigKey(
        "rack.aware.assignment.non_overlap_cost",
        _INT,
        None,
        _LOW,
        f"Weight of moving a task away from where it is, against traffic between racks. {_OF_LEADERS}",
    ),
    ConfigKey(
        "rack.aware.assignment.strategy",
        _STRING,
        "none",
        _LOW,
        f"Whether tasks are placed with regard to racks. {_OF_LEADERS}",
        choices=("none", "min_traffic", "balance_subtopology"),
    ),
    ConfigKey(
        "rack.aware.assignment.tags",
        _LIST,
        (),
        _LOW,
        f"Names of client tags; active and standby tasks are spread over workers that differ in them. {_OF_LEADERS}",
        check=Check(f"at most {MAX_TAGS} names of client tags", _are_tags),
    ),
    ConfigKey(
        "rack.aware.assignment.traffic_cost",
        _INT,
        None,
        _LOW,
        f"Weight of traffic between racks, against moving tasks. {_OF_LEADERS}",
    ),
    ConfigKey(
        "receive.buffer.bytes",
        _INT,
        32_768,
        _LOW,
        "Receive buffer of TCP connections; -1 leaves it to the operating system. Handed to librdkafka as "
        "socket.receive.buffer.bytes when it is set; otherwise the operating system tunes the buffer by "
        "itself.",
        minimum=-1,
        maximum=100_000_000,
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        _LONG,
        1000,
        _LOW,
        f"Longest wait before connecting again. {_HANDED_ON}",
        minimum=0,
        maximum=3_600_000,
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        _LONG,
        50,
        _LOW,
        "First wait before connecting again; it doubles up to reconnect.backoff.max.ms, and stays as it is "
        f"when only this key is set. {_HANDED_ON}",
        minimum=0,
        maximum=3_600_000,
    ),
    ConfigKey(
        "repartition.purge.interval.ms",
        _LONG,
        30_000,
        _LOW,
        "How often records of repartition topics that were processed are deleted from the brokers.",
        minimum=0,
    ),
    ConfigKey(
        "request.timeout.ms",
        _INT,
        40_000,
        _LOW,
        "How long a client waits for an answer; how long brokers are waited for at all is task.timeout.ms. Handed to "
        "librdkafka as socket.timeout.ms, for producers also under its own name; consumers wait 10 s unless it is set.",
        minimum=10,
        maximum=300_000,
    ),
    ConfigKey(
        "retry.backoff.ms",
        _LONG,
        100,
        _LOW,
        f"Wait before a failed request is sent again. {_HANDED_ON}",
        minimum=1,
        maximum=300_000,
    ),
    ConfigKey(
        "rocksdb.config.setter",
        _CLASS,
        None,
        _LOW,
        "Is called with the name of a store, the options of its RocksDB (``rocksdict.Options``) and the configuration, "
        "before it is opened, to tune the options.",
        component=_SETTER,
    ),
    ConfigKey(
        "rocksdb.memory.bytes",
        _LONG,
        None,
        _LOW,
        "One limit for the memory that all stores on disk of a process take together: cached blocks, indexes, filters "
        "and write buffers. Without it blocks take 50 MB, write buffers up to 16 MB each and 256 MB together, and "
        "indexes and filters come on top. What a task has written since its last commit is not in it. "
        "Kafka Streams has no such setting.",
        minimum=16 << 20,
    ),
    ConfigKey(
        "send.buffer.bytes",
        _INT,
        131_072,
        _LOW,
        "Send buffer of TCP connections; -1 leaves it to the operating system. Handed to librdkafka as "
        "socket.send.buffer.bytes when it is set; otherwise the operating system tunes the buffer by "
        "itself.",
        minimum=-1,
        maximum=100_000_000,
    ),
    ConfigKey(
        "state.cleanup.delay.ms",
        _LONG,
        600_000,
        _LOW,
        "State of a task that moved to another worker is deleted here after this time.",
        minimum=0,
    ),
    ConfigKey(
        "state.cleanup.dir.max.age.ms",
        _LONG,
        -1,
        _LOW,
        "State that nobody touched for this long is deleted when a worker starts; -1 keeps it.",
        minimum=-1,
    ),
    ConfigKey(
        "tracing.enable",
        _BOOLEAN,
        False,
        _LOW,
        "Makes a span of OpenTelemetry of each record that is processed and of each that is sent; their context "
        "travels in the headers of records (W3C Trace Context). Needs pykstreams[opentelemetry].",
    ),
    ConfigKey(
        "upgrade.from",
        _STRING,
        None,
        _LOW,
        "In Java: the old version, during a rolling upgrade.",
        not_offered="there is no older version to come from",
    ),
    ConfigKey(
        "windowstore.changelog.additional.retention.ms",
        _LONG,
        86_400_000,
        _LOW,
        "Added to the time that changelogs of windows are kept, against clocks that differ.",
        minimum=0,
    ),
)

KEYS: Mapping[str, ConfigKey] = MappingProxyType({key.name: key for key in _KEYS})
"""Every setting by its dotted name, by importance."""

REMOVED_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "cache.max.bytes.buffering": "use 'statestore.cache.max.bytes'",
        "default.deserialization.exception.handler": "use 'deserialization.exception.handler'",
        "default.dsl.store": "use 'dsl.store.suppliers.class'",
        "default.production.exception.handler": "use 'production.exception.handler'",
        "window.size.ms": "give the size to TimeWindowedDeserializer",
        "windowed.inner.class.serde": "give the inner serde to the windowed serdes",
    }
)
"""Deprecated settings of Kafka Streams 4.3.1, which are unknown here, and what to do instead."""

EMIT_INTERVAL_OF_JOINS: Final = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"
EMIT_INTERVAL_OF_WINDOWS: Final = "__emit.interval.ms.kstreams.windowed.aggregation__"
EMIT_INTERVAL_MS: Final = 1000
INTERNAL_KEYS: Final = frozenset({EMIT_INTERVAL_OF_JOINS, EMIT_INTERVAL_OF_WINDOWS})
"""How many ms of wall-clock time lie at least between two looks for closed windows, ``EMIT_INTERVAL_MS`` if not set.
Kafka Streams keeps these settings to itself (``StreamsConfig.InternalConfig``, 4.3.1); the test driver sets 0."""

TOPIC_KEYS = frozenset(
    [
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.downconversion.enable",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    ]
)
"""Settings of topics, as brokers of 4.3 know them; they follow the prefix ``topic.``."""

CLIENT_PREFIXES = (
    MAIN_CONSUMER_PREFIX,
    RESTORE_CONSUMER_PREFIX,
    GLOBAL_CONSUMER_PREFIX,
    CONSUMER_PREFIX,
    PRODUCER_PREFIX,
    ADMIN_PREFIX,
)
"""Prefixes of librdkafka's keys."""

"""``StreamsConfig``: the settings of an application, checked once and never changed.

It only describes: the table of settings is in ``settings.keys``, how values are read in ``settings.parsing``,
what the Kafka clients get in ``settings.clients``.

Invariant: a configuration that exists is valid; ``originals`` holds what the user gave, in each setting's
type, and everything else is a default.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast, overload

from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.clients import ClientKind, client_settings, is_exactly_once, ownership_problems
from pykstreams.core.settings.keys import (
    CLIENT_TAG_PREFIX,
    EOS_COMMIT_INTERVAL_MS,
    KEYS,
    MAX_TAGS,
    OPTIMIZATIONS,
    TOPIC_KEYS,
    TOPIC_PREFIX,
)
from pykstreams.core.settings.names import ConfigNames, GroupProtocol
from pykstreams.core.settings.parsing import (
    dotted_name,
    is_known,
    parse_setting,
    shown,
    unknown_keyword,
    unknown_setting,
)
from pykstreams.core.settings.resolving import faults, imported
from pykstreams.core.settings.types import REQUIRED, ConfigKey, ConfigType, Importance
from pykstreams.core.types import TimestampExtractor

__all__ = ["ConfigKey", "ConfigType", "GroupProtocol", "Importance", "StreamsConfig"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_NEEDED = {
    "application.id": "give the application a name, for instance application_id='shop'",
    "bootstrap.servers": "name the brokers, for instance bootstrap_servers='localhost:9092'",
}


class _MissingSettingError(ConfigError, KeyError):
    """A setting that was asked for and has no value; a ``KeyError``, so that ``get`` works as usual."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Setting(Generic[T]):
    """A setting as an attribute of ``StreamsConfig``, in its type."""

    def __init__(self, name: str, convert: Callable[[Any], T] | None = None) -> None:
        self._name = name
        self._convert = convert

    @overload
    def __get__(self, config: None, owner: type) -> _Setting[T]: ...
    @overload
    def __get__(self, config: StreamsConfig, owner: type) -> T: ...
    def __get__(self, config: StreamsConfig | None, owner: type) -> _Setting[T] | T:
        if config is None:
            return self
        value = config[self._name]
        return cast(T, value) if self._convert is None else self._convert(value)


class _Component(Generic[T]):
    """A class-valued setting as an attribute of ``StreamsConfig``: the object, made at first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, config: None, owner: type) -> _Component[T]: ...
    @overload
    def __get__(self, config: StreamsConfig, owner: type) -> T: ...
    def __get__(self, config: StreamsConfig | None, owner: type) -> _Component[T] | T:
        if config is None:
            return self
        return cast(T, config.instance(self._name))


class StreamsConfig(ConfigNames, Mapping[str, object]):
    """Settings of an application, by Kafka's dotted names; a mapping, frozen.

    Values are checked when it is made, all in one pass: a ``ConfigError`` names every problem. Settings are
    attributes as well, with underscores for dots and in their own type. ``application.id`` and
    ``bootstrap.servers`` may be missing as long as nobody asks for them, so that a topology can be built and
    described without a cluster.

    >>> config = StreamsConfig({"application.id": "shop"}, commit_interval_ms=5000)
    >>> config["commit.interval.ms"], config.commit_interval_ms, config.poll_ms
    (5000, 5000, 100)
    >>> StreamsConfig(comit_interval_ms=5000)
    Traceback (most recent call last):
    ...
    pykstreams.core.errors.ConfigError: unknown setting 'comit_interval_ms'; did you mean \
'commit_interval_ms'? (settings of your own go under 'app.')

    :param config: settings by dotted name; another ``StreamsConfig`` gives what was set in it.
    :param kwargs: settings with underscores for dots; under ``app_`` every underscore becomes a dot.
    """

    __slots__ = ("_components", "_originals", "_values")

    _components: dict[str, object]
    _originals: Mapping[str, object]
    _values: Mapping[str, object]

    acceptable_recovery_lag = _Setting[int]("acceptable.recovery.lag")
    allow_os_group_write_access = _Setting[bool]("allow.os.group.write.access")
    application_id = _Setting[str]("application.id")
    application_server = _Setting[str]("application.server")
    bootstrap_servers = _Setting["tuple[str, ...]"]("bootstrap.servers")
    buffered_records_per_partition = _Setting[int]("buffered.records.per.partition")
    client_id = _Setting[str]("client.id")
    commit_interval_ms = _Setting[int]("commit.interval.ms")
    dsl_store_format = _Setting[str]("dsl.store.format")
    ensure_explicit_internal_resource_naming = _Setting[bool]("ensure.explicit.internal.resource.naming")
    errors_dead_letter_queue_topic_name = _Setting["str | None"]("errors.dead.letter.queue.topic.name")
    group_protocol = _Setting[GroupProtocol]("group.protocol", GroupProtocol)
    log_record_values = _Setting[bool]("log.record.values")
    log_summary_interval_ms = _Setting[int]("log.summary.interval.ms")
    max_task_idle_ms = _Setting[int]("max.task.idle.ms")
    max_warmup_replicas = _Setting[int]("max.warmup.replicas")
    metadata_max_age_ms = _Setting[int]("metadata.max.age.ms")
    metrics_num_samples = _Setting[int]("metrics.num.samples")
    metrics_recording_level = _Setting[str]("metrics.recording.level")
    metrics_sample_window_ms = _Setting[int]("metrics.sample.window.ms")
    num_standby_replicas = _Setting[int]("num.standby.replicas")
    num_stream_threads = _Setting[int]("num.stream.threads")
    partitioner_check_enable = _Setting[bool]("partitioner.check.enable")
    poll_ms = _Setting[int]("poll.ms")
    probing_rebalance_interval_ms = _Setting[int]("probing.rebalance.interval.ms")
    processing_exception_handler_global_enabled = _Setting[bool]("processing.exception.handler.global.enabled")
    processing_guarantee = _Setting[str]("processing.guarantee")
    rack_aware_assignment_non_overlap_cost = _Setting["int | None"]("rack.aware.assignment.non_overlap_cost")
    rack_aware_assignment_strategy = _Setting[str]("rack.aware.assignment.strategy")
    rack_aware_assignment_tags = _Setting["tuple[str, ...]"]("rack.aware.assignment.tags")
    rack_aware_assignment_traffic_cost = _Setting["int | None"]("rack.aware.assignment.traffic_cost")
    repartition_purge_interval_ms = _Setting[int]("repartition.purge.interval.ms")
    replication_factor = _Setting[int]("replication.factor")
    request_timeout_ms = _Setting[int]("request.timeout.ms")
    retry_backoff_ms = _Setting[int]("retry.backoff.ms")
    tracing_enable = _Setting[bool]("tracing.enable")
    rocksdb_memory_bytes = _Setting["int | None"]("rocksdb.memory.bytes")
    security_protocol = _Setting[str]("security.protocol")
    state_cleanup_delay_ms = _Setting[int]("state.cleanup.delay.ms")
    state_cleanup_dir_max_age_ms = _Setting[int]("state.cleanup.dir.max.age.ms")
    state_dir = _Setting[Path]("state.dir", Path)
    statestore_cache_max_bytes = _Setting[int]("statestore.cache.max.bytes")
    task_timeout_ms = _Setting[int]("task.timeout.ms")
    topology_optimization = _Setting[str]("topology.optimization")
    windowstore_changelog_additional_retention_ms = _Setting[int]("windowstore.changelog.additional.retention.ms")

    client_supplier = _Component[Any]("default.client.supplier")
    default_timestamp_extractor = _Component[TimestampExtractor]("default.timestamp.extractor")
    deserialization_exception_handler = _Component[object]("deserialization.exception.handler")
    dsl_store_suppliers = _Component[Any]("dsl.store.suppliers.class")
    processing_exception_handler = _Component[object]("processing.exception.handler")
    processor_wrapper = _Component[object]("processor.wrapper.class")
    production_exception_handler = _Component[object]("production.exception.handler")
    rocksdb_config_setter = _Component[object]("rocksdb.config.setter")

    def __init__(self, config: Mapping[str, object] | None = None, /, **kwargs: object) -> None:
        given = config.originals if isinstance(config, StreamsConfig) else config
        problems: list[str] = []
        originals = _read(given or {}, kwargs, problems)
        values = {key.name: key.default for key in KEYS.values() if key.default is not REQUIRED}
        values.update(originals)
        if is_exactly_once(values) and "commit.interval.ms" not in originals:
            values["commit.interval.ms"] = EOS_COMMIT_INTERVAL_MS
        problems.extend(ownership_problems(values, originals))
        problems.extend(_tag_problems(values))
        problems.extend(_group_problems(values))
        if problems:
            raise ConfigError(_together(problems))
        object.__setattr__(self, "_originals", MappingProxyType(originals))
        object.__setattr__(self, "_values", MappingProxyType(values))
        object.__setattr__(self, "_components", {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a StreamsConfig is frozen; make a changed copy: config.replace({name}={value!r})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a StreamsConfig is frozen; {name!r} cannot be deleted")

    def __getitem__(self, key: str) -> object:
        try:
            return self._values[key]
        except KeyError:
            raise _missing(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        given = ", ".join(f"{name!r}: {shown(name, value)}" for name, value in self._originals.items())
        return f"StreamsConfig({{{given}}})"

    def __reduce__(self) -> tuple[type[StreamsConfig], tuple[dict[str, object]]]:
        return (StreamsConfig, (dict(self._originals),))

    @property
    def originals(self) -> Mapping[str, object]:
        """The settings that were given, without the defaults."""
        return self._originals

    def replace(self, config: Mapping[str, object] | None = None, /, **kwargs: object) -> StreamsConfig:
        """Returns a copy with other or further settings.

        >>> StreamsConfig(poll_ms=10).replace({"client.id": "till"}, poll_ms=20).originals
        mappingproxy({'poll.ms': 20, 'client.id': 'till'})
        """
        problems: list[str] = []
        changes = _read(config or {}, kwargs, problems)
        if problems:
            raise ConfigError(_together(problems))
        return StreamsConfig({**self._originals, **changes})

    def require(self, *keys: str) -> None:
        """Raises ``ConfigError`` when a setting has no value; without names, one that a worker needs."""
        missing = [key for key in keys or _NEEDED if key not in self._values]
        if missing:
            raise ConfigError("; ".join(str(_missing(key)) for key in missing))

    def check_references(self) -> None:
        """Imports what settings name as ``module:attribute``; ``ConfigError`` tells of all that lead nowhere."""
        if problems := [str(error) for _, error in faults(self._originals)]:
            raise ConfigError(_together(problems))

    @staticmethod
    def describe() -> list[ConfigKey]:
        """Every setting with its type, default, limits and what it does; the important ones first."""
        return list(KEYS.values())

    @property
    def exactly_once(self) -> bool:
        """Whether results, state and offsets are committed in one transaction."""
        return self.processing_guarantee == self.EXACTLY_ONCE_V2

    @property
    def optimizations(self) -> frozenset[str]:
        """The rewrites of the topology that are on."""
        chosen = self.topology_optimization
        if chosen == self.OPTIMIZE:
            return frozenset(OPTIMIZATIONS)
        return frozenset(part.strip() for part in chosen.split(",")) - {self.NO_OPTIMIZATION}

    @property
    def client_tags(self) -> dict[str, str]:
        """The tags of this worker, by name."""
        return {name: str(value) for name, value in self.with_prefix(CLIENT_TAG_PREFIX).items()}

    @property
    def topic_settings(self) -> dict[str, str]:
        """The settings of internal topics (``topic.``), by the brokers' names."""
        return {name: str(value) for name, value in self.with_prefix(TOPIC_PREFIX).items() if name in TOPIC_KEYS}

    def with_prefix(self, prefix: str) -> dict[str, object]:
        """The settings that were given under a prefix, without it.

        >>> StreamsConfig({"app.region": "north"}).with_prefix("app.")
        {'region': 'north'}
        """
        return {name.removeprefix(prefix): value for name, value in self._originals.items() if name.startswith(prefix)}

    @property
    def default_key_serde(self) -> Any:
        """The serde for keys where a step gives none; ``ConfigError`` when there is none."""
        return self._serde("default.key.serde", is_key=True)

    @property
    def default_value_serde(self) -> Any:
        """The serde for values where a step gives none; ``ConfigError`` when there is none."""
        return self._serde("default.value.serde", is_key=False)

    def instance(self, key: str) -> object | None:
        """The object of a class-valued setting: imported and made at first use, then always the same.

        It is configured by ``configure(configs)`` if it has such a method.
        """
        return self._made(key, self)

    @property
    def metric_reporters(self) -> tuple[object, ...]:
        """The reporters of metrics, made and configured at first use as by ``instance``."""
        key = "metric.reporters"
        if key not in self._components:
            given = cast("Sequence[object]", self._values[key])
            self._components[key] = tuple(self._component(key, value, (self,)) for value in given)
        return cast("tuple[object, ...]", self._components[key])

    def get_main_consumer_configs(self, group_id: str, client_id: str, thread_index: int) -> dict[str, object]:
        """Settings for the consumer of the input topics, under librdkafka's names.

        :param thread_index: makes ``group.instance.id`` unique among the workers of a process.
        """
        client = self._client(ClientKind.MAIN_CONSUMER, client_id, group_id)
        if client.get("group.instance.id"):
            client["group.instance.id"] = f"{client['group.instance.id']}-{thread_index}"
        return client

    def get_restore_consumer_configs(self, client_id: str) -> dict[str, object]:
        """Settings for the consumer that reads changelogs."""
        return self._client(ClientKind.RESTORE_CONSUMER, client_id, self.application_id)

    def get_global_consumer_configs(self, client_id: str) -> dict[str, object]:
        """Settings for the consumer of global stores; ``-global-consumer`` is appended to the client id."""
        return self._client(ClientKind.GLOBAL_CONSUMER, f"{client_id}-global-consumer", self.application_id)

    def get_producer_configs(self, client_id: str) -> dict[str, object]:
        """Settings for the producer; under exactly-once the worker adds its ``transactional.id``."""
        return self._client(ClientKind.PRODUCER, client_id)

    def get_admin_configs(self, client_id: str) -> dict[str, object]:
        """Settings for the admin client."""
        return self._client(ClientKind.ADMIN, client_id)

    def _client(self, kind: ClientKind, client_id: str, group_id: str = "") -> dict[str, object]:
        self.require("bootstrap.servers")
        return client_settings(kind, self._values, self._originals, client_id=client_id, group_id=group_id)

    def _serde(self, key: str, *, is_key: bool) -> object:
        serde = self._made(key, self, is_key)
        if serde is None:
            part = "key" if is_key else "value"
            raise ConfigError(
                f"a step needs a {part} serde and none is set; give a type or a serde as {part}_serde in its options "
                f"(Consumed, Produced, Grouped, Materialized), or set {key!r}"
            )
        return serde

    def _made(self, key: str, *configure_with: object) -> object | None:
        if key not in self._components:
            self._components[key] = self._make(key, configure_with)
        return self._components[key]

    def _make(self, key: str, configure_with: tuple[object, ...]) -> object | None:
        value = self._values[key]
        return value if value is None else self._component(key, value, configure_with)

    def _component(self, key: str, value: object, configure_with: tuple[object, ...]) -> object:
        component = KEYS[key].component
        if component is None:
            return value
        made: object = imported(key, value) if isinstance(value, str) else value
        if isinstance(made, type) or (component.factory and callable(made) and not component.fits(made)):
            made = made()
        if not component.fits(made):
            raise ConfigError(
                f"setting {key!r} is {shown(key, value)}, which gives {made!r}; expected {component.what}"
            )
        configure = getattr(made, "configure", None)
        if configure is not None:
            configure(*configure_with)
        return made


def _read(config: Mapping[str, object], kwargs: Mapping[str, object], problems: list[str]) -> dict[str, object]:
    """The settings a user gave, by dotted name and parsed; what is wrong with them goes to ``problems``.

    ``TypeError`` for what holds no settings.
    """
    if not isinstance(config, Mapping):
        raise TypeError(
            f"config is {config!r}; expected a StreamsConfig, or settings by name such as {{'application.id': 'shop'}}"
        )
    named: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(name, str):
            named[name] = value
        else:
            problems.append(f"the setting {name!r} is not named by text; settings have dotted names")
    for keyword, value in kwargs.items():
        dotted = dotted_name(keyword)
        if dotted is None:
            problems.append(str(unknown_keyword(keyword)))
        elif dotted in config:
            problems.append(
                f"setting {dotted!r} is given twice: in the mapping and as {keyword}={shown(dotted, value)}"
            )
        else:
            named[dotted] = value
    read: dict[str, object] = {}
    for name, value in named.items():
        try:
            read[name] = parse_setting(name, value)
        except ConfigError as error:
            problems.append(str(error))
    return read


def _tag_problems(values: Mapping[str, object]) -> Iterator[str]:
    tags = {name.removeprefix(CLIENT_TAG_PREFIX) for name in values if name.startswith(CLIENT_TAG_PREFIX)}
    if len(tags) > MAX_TAGS:
        yield f"{len(tags)} client tags are set ({', '.join(sorted(tags))}); at most {MAX_TAGS} are allowed"
    wanted = values["rack.aware.assignment.tags"]
    for tag in wanted if isinstance(wanted, tuple) else ():
        if tag not in tags:
            needed = f"{CLIENT_TAG_PREFIX}{tag}"
            yield f"setting 'rack.aware.assignment.tags' names {tag!r}, but {needed!r} is not set"


def _group_problems(values: Mapping[str, object]) -> Iterator[str]:
    """Static members of a group whose tasks the brokers assign (``verifyStreamsProtocolCompatibility``, 4.3.1)."""
    if values["group.protocol"] == GroupProtocol.STREAMS:
        for prefix in ("", "consumer.", "main.consumer."):
            if values.get(name := f"{prefix}group.instance.id"):
                yield (
                    f"setting {name!r} is set, and the streams group protocol has no static members "
                    "yet; remove it, or set group.protocol to 'classic'"
                )


def _together(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} settings are wrong:\n" + "\n".join(f"- {problem}" for problem in problems)


def _missing(key: str) -> _MissingSettingError:
    if key in _NEEDED:
        return _MissingSettingError(f"setting {key!r} is missing; {_NEEDED[key]}")
    if is_known(key):
        return _MissingSettingError(f"setting {key!r} is not set")
    return _MissingSettingError(str(unknown_setting(key)))

"""StreamsConfig as a mapping: defaults, spellings, types, copies."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.config import GroupProtocol, StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_JOINS, KEYS, REMOVED_KEYS
from pykstreams.core.settings.librdkafka_keys import LIBRDKAFKA_KEYS
from pykstreams.core.settings.names import ConfigNames
from pykstreams.core.settings.parsing import dotted_name, is_known, parse_setting
from pykstreams.core.settings.types import REQUIRED, ConfigKey


def test_a_setting_reads_the_same_by_dotted_name_and_by_attribute() -> None:
    config = StreamsConfig({"application.id": "shop", "commit.interval.ms": 5000})

    assert config["application.id"] == config.application_id == "shop"
    assert config["commit.interval.ms"] == config.commit_interval_ms == 5000


def test_keywords_are_dotted_names_with_underscores() -> None:
    config = StreamsConfig(
        application_id="shop",
        rack_aware_assignment_non_overlap_cost=3,
        main_consumer_session_timeout_ms=9000,
        client_tag_zone="north",
        topic_segment_bytes=1000,
        log_level=3,
    )

    assert dict(config.originals) == {
        "application.id": "shop",
        "rack.aware.assignment.non_overlap_cost": 3,
        "main.consumer.session.timeout.ms": 9000,
        "client.tag.zone": "north",
        "topic.segment.bytes": "1000",
        "log_level": 3,
    }


@pytest.mark.parametrize("name", [*KEYS, *LIBRDKAFKA_KEYS])
def test_every_key_has_a_keyword_that_leads_back_to_it(name: str) -> None:
    assert dotted_name(name.replace(".", "_")) == name


@pytest.mark.parametrize("prefix", ["consumer.", "main.consumer.", "restore.consumer.", "global.consumer."])
def test_consumer_keys_of_librdkafka_are_known_under_every_consumer_prefix(prefix: str) -> None:
    assert is_known(prefix + "fetch.wait.max.ms")
    assert dotted_name((prefix + "fetch.wait.max.ms").replace(".", "_")) == prefix + "fetch.wait.max.ms"


def test_defaults_are_those_of_kafka_streams() -> None:
    config = StreamsConfig()

    assert config.commit_interval_ms == 30_000
    assert config.statestore_cache_max_bytes == 10_485_760
    assert config.max_task_idle_ms == 0
    assert config.processing_guarantee == "at_least_once"
    assert config.group_protocol is GroupProtocol.CLASSIC
    assert config.state_dir == Path(tempfile.gettempdir()) / "kafka-streams"
    assert config["default.key.serde"] is None


def test_commit_interval_defaults_to_100_ms_under_exactly_once() -> None:
    assert StreamsConfig(processing_guarantee="exactly_once_v2").commit_interval_ms == 100


def test_a_given_commit_interval_holds_under_exactly_once() -> None:
    config = StreamsConfig(processing_guarantee="exactly_once_v2", commit_interval_ms=2000)

    assert config.commit_interval_ms == 2000


def test_a_copy_of_a_configuration_keeps_the_difference_between_defaults_and_settings() -> None:
    plain = StreamsConfig(application_id="shop")

    assert dict(StreamsConfig(plain).originals) == {"application.id": "shop"}
    assert plain.replace(processing_guarantee="exactly_once_v2").commit_interval_ms == 100


def test_replace_takes_mappings_and_keywords_and_leaves_the_original_alone() -> None:
    config = StreamsConfig(poll_ms=10)
    changed = config.replace({"client.id": "till"}, poll_ms=20)

    assert (config.poll_ms, changed.poll_ms, changed.client_id) == (10, 20, "till")


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("commit.interval.ms", " 5000 ", 5000),
        ("commit.interval.ms", timedelta(seconds=5), 5000),
        ("allow.os.group.write.access", "TRUE", True),
        ("security.protocol", "sasl_ssl", "SASL_SSL"),
        ("dsl.store.format", "headers", "HEADERS"),
        ("bootstrap.servers", "a:9092, b:9092", ("a:9092", "b:9092")),
        ("bootstrap.servers", ["a:9092", "b:9092"], ("a:9092", "b:9092")),
        ("bootstrap.servers", "SASL_SSL://[::1]:9092", ("SASL_SSL://[::1]:9092",)),
        ("bootstrap.servers", "plaintext://a:65535,b:1", ("plaintext://a:65535", "b:1")),
        ("bootstrap.servers", "localhost,[::1]", ("localhost", "[::1]")),
        ("state.dir", Path("/var/lib/shop"), "/var/lib/shop"),
        ("application.server", "host:8080", "host:8080"),
        ("errors.dead.letter.queue.topic.name", None, None),
        ("group.protocol", GroupProtocol.CLASSIC, "classic"),
        ("consumer.fetch.wait.max.ms", "250", 250),
        ("producer.linger.ms", "0.5", 0.5),
        ("producer.acks", "all", "all"),
        ("producer.acks", 1, "1"),
        ("debug", ["broker", "topic"], "broker,topic"),
        ("sasl.password", " with blanks ", " with blanks "),
        ("topic.retention.ms", -1, "-1"),
    ],
)
def test_values_are_read_in_the_type_of_their_setting(name: str, given: object, read: object) -> None:
    assert StreamsConfig({name: given})[name] == read


@given(st.sampled_from(sorted(KEYS)), st.integers() | st.booleans() | st.text(max_size=8) | st.none())
def test_a_parsed_value_parses_to_itself(name: str, value: object) -> None:
    try:
        parsed = parse_setting(name, value)
    except ConfigError:
        return

    assert parse_setting(name, parsed) == parsed


@pytest.mark.parametrize("key", StreamsConfig.describe(), ids=lambda key: key.name)
def test_every_default_is_a_valid_value_and_every_key_has_a_doc(key: ConfigKey) -> None:
    assert key.doc.endswith(".")
    if key.default is not REQUIRED:
        assert key.parse(key.default) == key.default


@pytest.mark.parametrize("constant", [name for name in dir(ConfigNames) if name.endswith("_CONFIG")])
def test_every_constant_of_java_names_a_setting(constant: str) -> None:
    assert getattr(StreamsConfig, constant) in KEYS


def test_keys_of_deprecated_features_are_not_in_the_table() -> None:
    assert not set(KEYS) & set(REMOVED_KEYS)


def test_a_configuration_cannot_be_changed() -> None:
    config = StreamsConfig(poll_ms=10)

    with pytest.raises(AttributeError, match=r"frozen; make a changed copy: config.replace\(poll_ms=20\)"):
        config.poll_ms = 20
    with pytest.raises(AttributeError, match="frozen"):
        del config.poll_ms
    assert not hasattr(config.originals, "update")


def test_keys_of_the_user_are_kept_as_they_are() -> None:
    marker = object()
    config = StreamsConfig({"app.region": "north", "app.shared": marker})

    assert config.with_prefix("app.") == {"region": "north", "shared": marker}


def test_client_tags_and_topic_settings_are_given_without_their_prefix() -> None:
    config = StreamsConfig(
        {
            "client.tag.zone": "north",
            "rack.aware.assignment.tags": "zone",
            "topic.segment.bytes": 1000,
            "topic.metadata.refresh.interval.ms": 5000,
        }
    )

    assert config.client_tags == {"zone": "north"}
    assert config.topic_settings == {"segment.bytes": "1000"}


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("none", set()),
        ("all", {"reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"}),
        ("merge.repartition.topics", {"merge.repartition.topics"}),
        (
            "merge.repartition.topics, single.store.self.join",
            {"merge.repartition.topics", "single.store.self.join"},
        ),
    ],
)
def test_topology_optimization_gives_the_rewrites_that_are_on(value: str, on: set[str]) -> None:
    assert StreamsConfig(topology_optimization=value).optimizations == on


def test_secrets_are_not_shown() -> None:
    config = StreamsConfig({"sasl.password": "hunter2", "consumer.ssl.key.pem": "----KEY", "poll.ms": 1})

    assert repr(config) == "StreamsConfig({'sasl.password': '***', 'consumer.ssl.key.pem': '***', 'poll.ms': 1})"


def test_a_configuration_survives_pickling() -> None:
    config = StreamsConfig(application_id="shop", commit_interval_ms=7)

    assert dict(pickle.loads(pickle.dumps(config))) == dict(config)


def test_required_settings_may_be_missing_until_somebody_asks_for_them() -> None:
    config = StreamsConfig()

    assert "application.id" not in config
    assert config.get("application.id") is None
    assert isinstance(config, Mapping)
    with pytest.raises(ConfigError, match=r"setting 'application\.id' is missing; give the application a name"):
        _ = config.application_id
    with pytest.raises(KeyError):
        _ = config["bootstrap.servers"]


def test_require_names_everything_that_a_worker_misses() -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig().require()

    assert str(caught.value) == (
        "setting 'application.id' is missing; give the application a name, for instance application_id='shop'; "
        "setting 'bootstrap.servers' is missing; name the brokers, for instance bootstrap_servers='localhost:9092'"
    )


def test_require_is_silent_when_all_is_there() -> None:
    StreamsConfig(application_id="shop", bootstrap_servers="a:1").require()


def test_asking_for_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(KeyError) as caught:
        _ = StreamsConfig()["poll.m"]

    assert str(caught.value).startswith("unknown setting 'poll.m'; did you mean 'poll.ms'?")


def test_asking_for_a_known_key_that_was_not_set_says_so() -> None:
    with pytest.raises(KeyError) as caught:
        _ = StreamsConfig()["app.region"]

    assert str(caught.value) == "setting 'app.region' is not set"


def test_the_interval_between_looks_for_closed_windows_may_be_set_by_its_internal_name() -> None:
    config = StreamsConfig({EMIT_INTERVAL_OF_JOINS: "250"})

    assert config[EMIT_INTERVAL_OF_JOINS] == 250
    assert EMIT_INTERVAL_OF_JOINS not in StreamsConfig()
    with pytest.raises(ConfigError, match=r"joins?.spurious.*'soon'"):
        StreamsConfig({EMIT_INTERVAL_OF_JOINS: "soon"})

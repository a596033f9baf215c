"""What the Kafka clients of a worker are made with."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.librdkafka_keys import JAVA_CLIENT_KEYS, LIBRDKAFKA_KEYS, canonical_name

Settings = dict[str, object]


def make_config(**settings: object) -> StreamsConfig:
    return StreamsConfig({"application.id": "shop", "bootstrap.servers": ["a:1", "b:2"]}, **settings)


def main_consumer(config: StreamsConfig) -> Settings:
    return config.get_main_consumer_configs("shop", "till", 1)


def all_clients(config: StreamsConfig) -> list[Settings]:
    return [
        main_consumer(config),
        config.get_restore_consumer_configs("till"),
        config.get_global_consumer_configs("till"),
        config.get_producer_configs("till"),
        config.get_admin_configs("till"),
    ]


def test_all_clients_get_brokers_and_security() -> None:
    config = make_config(
        security_protocol="sasl_ssl", sasl_mechanism="PLAIN", sasl_username="me", sasl_password="x", ssl_ca_pem="y"
    )

    for client in all_clients(config):
        assert client["bootstrap.servers"] == "a:1,b:2"
        assert client["security.protocol"] == "SASL_SSL"
        assert client["sasl.mechanism"] == "PLAIN"
        assert (client["sasl.username"], client["sasl.password"], client["ssl.ca.pem"]) == ("me", "x", "y")


def test_client_ids_and_groups_are_set() -> None:
    config = make_config()

    assert main_consumer(config)["group.id"] == "shop"
    assert [client["client.id"] for client in all_clients(config)] == [
        "till",
        "till",
        "till-global-consumer",
        "till",
        "till",
    ]


def test_shared_settings_reach_librdkafka_under_its_names() -> None:
    config = make_config(
        request_timeout_ms=50_000,
        send_buffer_bytes=1000,
        receive_buffer_bytes=-1,
        connections_max_idle_ms=-1,
        metadata_max_age_ms=9000,
        retry_backoff_ms=7,
    )

    for client in all_clients(config):
        assert client["socket.timeout.ms"] == 50_000
        assert client["socket.send.buffer.bytes"] == 1000
        assert client["socket.receive.buffer.bytes"] == 0
        assert client["connections.max.idle.ms"] == 0
        assert client["metadata.max.age.ms"] == 9000
        assert client["topic.metadata.refresh.interval.ms"] == 3000
        assert client["retry.backoff.ms"] == 7
    assert config.get_producer_configs("till")["request.timeout.ms"] == 50_000


def test_connections_that_a_cut_network_has_left_dead_are_found_out_before_a_worker_is_silent_for_long() -> None:
    """After a cut of 30 s the broker's TCP sends what it has again some 20 s later only."""
    config = make_config()

    assert [10_000] * 3 == [one["socket.timeout.ms"] for one in all_clients(config)[:3]]
    assert {10_000} == {one["socket.connection.setup.timeout.ms"] for one in all_clients(config)}


def test_times_of_connections_that_a_user_sets_are_taken() -> None:
    config = make_config(request_timeout_ms=40_000, socket_connection_setup_timeout_ms=30_000)

    assert {40_000} == {one["socket.timeout.ms"] for one in all_clients(config)}
    assert {30_000} == {one["socket.connection.setup.timeout.ms"] for one in all_clients(config)}


def test_shorter_default_of_consumers_leaves_other_clients_as_they_are() -> None:
    assert make_config().get_producer_configs("till")["socket.timeout.ms"] == 40_000
    assert make_config().get_admin_configs("till")["socket.timeout.ms"] == 40_000


def test_buffers_are_left_to_the_operating_system_unless_they_are_set() -> None:
    for client in all_clients(make_config()):
        assert not [name for name in client if "buffer" in name]


def test_reconnect_backoff_stays_constant_when_only_the_first_wait_is_given() -> None:
    assert main_consumer(make_config())["reconnect.backoff.max.ms"] == 1000
    assert main_consumer(make_config(reconnect_backoff_ms=200))["reconnect.backoff.max.ms"] == 200


def test_the_main_consumer_fetches_as_measured() -> None:
    client = main_consumer(make_config())

    assert client["fetch.queue.backoff.ms"] == 1
    assert client["queued.min.messages"] == 2000
    assert client["max.partition.fetch.bytes"] == 262_144


def test_the_restore_consumer_waits_little_at_the_end_of_a_changelog_unless_told_otherwise() -> None:
    assert make_config().get_restore_consumer_configs("till")["fetch.wait.max.ms"] == 10
    told = make_config(restore_consumer_fetch_wait_max_ms=500)
    assert told.get_restore_consumer_configs("till")["fetch.wait.max.ms"] == 500


def test_consumers_never_commit_or_create_topics_by_themselves() -> None:
    for client in all_clients(make_config())[:3]:
        assert client["enable.auto.commit"] is False
        assert client["enable.auto.offset.store"] is False
        assert client["allow.auto.create.topics"] is False


def test_the_producer_partitions_like_java() -> None:
    client = make_config().get_producer_configs("till")

    assert client["partitioner"] == "murmur2_random"
    assert client["enable.idempotence"] is True
    assert (client["linger.ms"], client["batch.size"]) == (100, 16_384)
    assert client["delivery.report.only.error"] is True


def test_consumers_read_uncommitted_under_at_least_once_and_committed_under_exactly_once() -> None:
    exactly_once = make_config(processing_guarantee="exactly_once_v2")

    for client in all_clients(make_config())[:3]:
        assert client["isolation.level"] == "read_uncommitted"
    for client in all_clients(exactly_once)[:3]:
        assert client["isolation.level"] == "read_committed"


def test_a_request_does_not_outlive_its_transaction() -> None:
    client = make_config(processing_guarantee="exactly_once_v2").get_producer_configs("till")

    assert (client["transaction.timeout.ms"], client["socket.timeout.ms"]) == (10_000, 10_000)
    assert "delivery.timeout.ms" not in client


def test_the_nearer_prefix_wins() -> None:
    config = make_config(
        fetch_min_bytes=1, consumer_fetch_min_bytes=2, main_consumer_fetch_min_bytes=3, log_level=4, admin_log_level=5
    )

    assert [client.get("fetch.min.bytes") for client in all_clients(config)] == [3, 2, 2, None, None]
    assert [client["log_level"] for client in all_clients(config)] == [4, 4, 4, 4, 5]


def test_an_alias_replaces_the_default_of_the_property_it_stands_for() -> None:
    client = make_config(producer_queue_buffering_max_ms=5).get_producer_configs("till")

    assert client["linger.ms"] == 5
    assert "queue.buffering.max.ms" not in client


def test_a_users_setting_wins_over_a_shared_one() -> None:
    config = make_config(request_timeout_ms=50_000, consumer_socket_timeout_ms=1000)

    assert main_consumer(config)["socket.timeout.ms"] == 1000
    assert config.get_producer_configs("till")["socket.timeout.ms"] == 50_000


def test_offset_reset_none_is_an_error_in_librdkafkas_words() -> None:
    assert main_consumer(make_config(consumer_auto_offset_reset="none"))["auto.offset.reset"] == "error"
    assert main_consumer(make_config(consumer_auto_offset_reset="latest"))["auto.offset.reset"] == "latest"


def test_restore_and_global_consumers_start_where_they_are_told_only() -> None:
    config = make_config(consumer_auto_offset_reset="latest", consumer_group_instance_id="one")

    for client in all_clients(config)[1:3]:
        assert client["auto.offset.reset"] == "error"
        assert "group.instance.id" not in client


def test_consumers_that_are_no_members_are_not_told_how_long_a_member_may_take() -> None:
    """librdkafka refuses a client whose max.poll.interval.ms is below its session.timeout.ms, 45 s by default."""
    main, *others = all_clients(make_config(max_poll_interval_ms=8000))[:3]

    assert main["max.poll.interval.ms"] == 8000
    for client in (main, *others):
        confluent_kafka.Consumer({**client, "log_level": 0}).close()


def test_the_instance_id_is_unique_per_thread() -> None:
    assert main_consumer(make_config(consumer_group_instance_id="one"))["group.instance.id"] == "one-1"


def test_a_callback_may_be_named_as_module_and_attribute() -> None:
    assert main_consumer(make_config(error_cb="builtins:print"))["error_cb"] is print


def test_clients_need_brokers() -> None:
    with pytest.raises(ConfigError, match=r"setting 'bootstrap\.servers' is missing; name the brokers"):
        StreamsConfig().get_admin_configs("till")


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_librdkafka_accepts_what_the_clients_are_made_with(guarantee: str) -> None:
    config = make_config(processing_guarantee=guarantee, send_buffer_bytes=-1, log_level=0)

    for settings in all_clients(config)[:3]:
        confluent_kafka.Consumer(settings).close()
    transactional = {"transactional.id": "shop-1"} if config.exactly_once else {}
    confluent_kafka.Producer({**config.get_producer_configs("till"), **transactional})
    admin: dict[str, Any] = dict(config.get_admin_configs("till"))
    AdminClient(admin)


def test_the_table_knows_every_property_of_the_installed_librdkafka(tmp_path: Path) -> None:
    """A newer librdkafka may have more: then the table needs the new names."""
    libraries = list((Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*"))
    if not libraries:
        pytest.skip("librdkafka is not bundled with confluent-kafka on this platform")
    library, libc = ctypes.CDLL(str(libraries[0])), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(bytes(tmp_path / "properties"), b"w"))
    library.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    shown = re.findall(r"^(\S+) +\| +[CP*] ", (tmp_path / "properties").read_text(), re.MULTILINE)

    assert len(shown) > 150
    assert set(shown) - set(LIBRDKAFKA_KEYS) == set()


def test_canonical_names_are_canonical() -> None:
    assert {canonical_name(canonical_name(name)) for name in LIBRDKAFKA_KEYS} <= set(LIBRDKAFKA_KEYS)


def test_java_names_with_a_hint_are_not_librdkafkas() -> None:
    assert not set(JAVA_CLIENT_KEYS) & set(LIBRDKAFKA_KEYS)

"""What a user reads when a setting is wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.keys import REMOVED_KEYS

OWN = "(settings of your own go under 'app.')"

BROKERS = (
    "one or more different host:port, as a list or with commas between them; the port is 1 to 65535, and 9092 where "
    "there is none"
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # unknown keys
        ({"comit.interval.ms": 1}, f"unknown setting 'comit.interval.ms'; did you mean 'commit.interval.ms'? {OWN}"),
        ({"commit_interval_ms": 1}, f"unknown setting 'commit_interval_ms'; did you mean 'commit.interval.ms'? {OWN}"),
        ({"sasl.user": "me"}, f"unknown setting 'sasl.user'; did you mean 'sasl.username'? {OWN}"),
        ({"topic.segment.byte": 1}, f"unknown setting 'topic.segment.byte'; did you mean 'topic.segment.bytes'? {OWN}"),
        ({"zzz": 1}, f"unknown setting 'zzz' {OWN}"),
        ({"app.": 1}, f"unknown setting 'app.' {OWN}"),
        (
            {"consumer.sesion.timeout.ms": 1},
            "unknown setting 'consumer.sesion.timeout.ms': what follows 'consumer.' is a key of librdkafka; did you "
            "mean 'consumer.session.timeout.ms'?",
        ),
        (
            {"consumer.fetch.max.wait.ms": 1},
            "unknown setting 'consumer.fetch.max.wait.ms': what follows 'consumer.' is a key of librdkafka, and "
            "'fetch.max.wait.ms' belongs to the Java clients; use 'fetch.wait.max.ms'",
        ),
        (
            {"ssl.truststore.location": "x"},
            "unknown setting 'ssl.truststore.location': it belongs to the Java clients; use 'ssl.ca.location' (PEM)",
        ),
        (
            {"consumer.linger.ms": 1},
            "setting 'consumer.linger.ms' has the wrong prefix: 'linger.ms' is a setting of producers",
        ),
        (
            {"admin.session.timeout.ms": 1},
            "setting 'admin.session.timeout.ms' has the wrong prefix: 'session.timeout.ms' is a setting of consumers",
        ),
        ({5: 1}, "the setting 5 is not named by text; settings have dotted names"),
        # wrong values
        (
            {"commit.interval.ms": "soon"},
            "setting 'commit.interval.ms' has the value 'soon'; expected a whole number of milliseconds, at least 0",
        ),
        (
            {"commit.interval.ms": -1},
            "setting 'commit.interval.ms' has the value -1; expected a whole number of milliseconds, at least 0",
        ),
        (
            {"commit.interval.ms": True},
            "setting 'commit.interval.ms' has the value True; expected a whole number of milliseconds, at least 0",
        ),
        (
            {"commit.interval.ms": timedelta(microseconds=1)},
            "setting 'commit.interval.ms' has the value datetime.timedelta(microseconds=1); expected a whole number of "
            "milliseconds, at least 0",
        ),
        (
            {"num.standby.replicas": 2**31},
            "setting 'num.standby.replicas' has the value 2147483648; expected a whole number, at least 0",
        ),
        (
            {"retry.backoff.ms": 0},
            "setting 'retry.backoff.ms' has the value 0; expected a whole number of milliseconds from 1 to 300000",
        ),
        (
            {"statestore.cache.max.bytes": None},
            "setting 'statestore.cache.max.bytes' has the value None; expected a whole number of bytes, at least 0",
        ),
        (
            {"enable.metrics.push": "yes"},
            "setting 'enable.metrics.push' has the value 'yes'; expected true or false",
        ),
        (
            {"processing.guarantee": "exactly_once"},
            "setting 'processing.guarantee' has the value 'exactly_once'; expected one of 'at_least_once', "
            "'exactly_once_v2'",
        ),
        (
            {"topology.optimization": "all,merge.repartition.topics"},
            "setting 'topology.optimization' has the value 'all,merge.repartition.topics'; expected 'none', 'all', or "
            "a choice with commas from 'reuse.ktable.source.topics', 'merge.repartition.topics', "
            "'single.store.self.join'",
        ),
        (
            {"application.id": "my shop"},
            "setting 'application.id' has the value 'my shop'; expected 1 to 200 letters, digits, '.', '_' or '-'",
        ),
        (
            {"bootstrap.servers": "a:1,a:1"},
            f"setting 'bootstrap.servers' has the value 'a:1,a:1'; expected {BROKERS}",
        ),
        ({"bootstrap.servers": ""}, f"setting 'bootstrap.servers' has the value ''; expected {BROKERS}"),
        *(
            ({"bootstrap.servers": one}, f"setting 'bootstrap.servers' has the value {one!r}; expected {BROKERS}")
            for one in ("a:0", "a:65536", "a:99999", "http://a:9092", "kafka://a", "a:9092/", "a:1,a:65536")
        ),
        *(
            (
                {"application.server": one},
                f"setting 'application.server' has the value {one!r}; expected host:port, the port 1 to 65535, or "
                "nothing",
            )
            for one in ("http://me", "me", "me:0", "me:65536")
        ),
        (
            {"errors.dead.letter.queue.topic.name": ""},
            "setting 'errors.dead.letter.queue.topic.name' has the value ''; expected the name of a topic",
        ),
        ({"state.dir": ""}, "setting 'state.dir' has the value ''; expected the path of a folder"),
        (
            {"default.key.serde": "StringSerde"},
            "setting 'default.key.serde' has the value 'StringSerde'; expected a serde (that of a type is "
            "Serdes.for_type(...)): a class, an object, a function or 'module:attribute'",
        ),
        (
            {"production.exception.handler": len},
            "setting 'production.exception.handler' has the value <built-in function len>; expected a production "
            "exception handler: a class, an object or 'module:attribute'",
        ),
        (
            {"consumer.fetch.min.bytes": "many"},
            "setting 'consumer.fetch.min.bytes' has the value 'many'; expected a whole number",
        ),
        ({"check.crcs": 1}, "setting 'check.crcs' has the value 1; expected true or false"),
        ({"producer.linger.ms": "x"}, "setting 'producer.linger.ms' has the value 'x'; expected a number"),
        ({"client.rack": {}}, "setting 'client.rack' has the value {}; expected text"),
        ({"sasl.password": {}}, "setting 'sasl.password' has the value '***'; expected text"),
        ({"error_cb": 3}, "setting 'error_cb' has the value 3; expected a callable or 'module:attribute'"),
        (
            {"log_cb": 3},
            "setting 'log_cb' has the value 3; expected nothing: it can be set through librdkafka's C interface only",
        ),
        (
            {"topic.retention.ms": {}},
            "setting 'topic.retention.ms' has the value {}; expected text, a number, or true or false",
        ),
        # what is not offered
        (
            {"upgrade.from": "3.9"},
            "setting 'upgrade.from' is '3.9', which is not offered: there is no older version to come from",
        ),
        # a streams group has no static members
        (
            {"group.protocol": "streams", "consumer.group.instance.id": "till-1"},
            "setting 'consumer.group.instance.id' is set, and the streams group protocol has no static members yet; "
            "remove it, or set group.protocol to 'classic'",
        ),
        # client tags
        ({"client.tag.": "x"}, "setting 'client.tag.' names no tag; write 'client.tag.zone', for example"),
        (
            {"client.tag." + "x" * 21: "y"},
            f"setting 'client.tag.{'x' * 21}' names a tag of 21 characters; at most 20 are allowed",
        ),
        ({"client.tag.zone": ""}, "setting 'client.tag.zone' has the value ''; expected text of 1 to 30 characters"),
        (
            {"rack.aware.assignment.tags": "zone"},
            "setting 'rack.aware.assignment.tags' names 'zone', but 'client.tag.zone' is not set",
        ),
        (
            {f"client.tag.{tag}": tag for tag in "abcdef"},
            "6 client tags are set (a, b, c, d, e, f); at most 5 are allowed",
        ),
        (
            {"rack.aware.assignment.tags": "a,b,c,d,e,f"},
            "setting 'rack.aware.assignment.tags' has the value 'a,b,c,d,e,f'; expected at most 5 names of client tags",
        ),
        # what an application owns
        (
            {"consumer.enable.auto.commit": True},
            "setting 'consumer.enable.auto.commit' is True, but a Streams application needs False; remove the setting",
        ),
        (
            {"main.consumer.group.protocol": "consumer"},
            "setting 'main.consumer.group.protocol' is 'consumer', but a Streams application needs 'classic'; remove "
            "the setting",
        ),
        (
            {"allow.auto.create.topics": "true"},
            "setting 'allow.auto.create.topics' is True, but a Streams application needs False; remove the setting",
        ),
        ({"group.id": "x"}, "setting 'group.id' is 'x', but the group is named by 'application.id'"),
        (
            {"consumer.metadata.broker.list": "a:1"},
            "setting 'consumer.metadata.broker.list' is 'a:1', but there is one cluster for all clients; set "
            "'bootstrap.servers' without a prefix",
        ),
        (
            {"producer.client.id": "x"},
            "setting 'producer.client.id' is 'x', but client ids are made from 'client.id' without a prefix",
        ),
        (
            {"producer.transactional.id": "x"},
            "setting 'producer.transactional.id' is 'x', but transactional ids are made by the worker; remove "
            "the setting",
        ),
        (
            {"processing.guarantee": "exactly_once_v2", "consumer.isolation.level": "read_uncommitted"},
            "setting 'consumer.isolation.level' is 'read_uncommitted', but a Streams application needs "
            "'read_committed' under exactly_once_v2; remove the setting",
        ),
        (
            {"processing.guarantee": "exactly_once_v2", "producer.enable.idempotence": False},
            "setting 'producer.enable.idempotence' is False, but a Streams application needs True under "
            "exactly_once_v2; remove the setting",
        ),
        (
            {"processing.guarantee": "exactly_once_v2", "producer.max.in.flight": 6},
            "setting 'producer.max.in.flight' is 6, but exactly_once_v2 allows at most 5 requests in flight; lower it",
        ),
        (
            {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 20_000},
            "the transaction timeout of 10000 ms is shorter than commit.interval.ms=20000, so every transaction would "
            "time out; lower 'commit.interval.ms' or raise 'producer.transaction.timeout.ms'",
        ),
        (
            {"topic.segment.bytes": 1000, "producer.batch.size": 2000},
            "topic.segment.bytes=1000 is smaller than the producer's batch.size=2000, so a full batch could not be "
            "appended; raise the one or lower the other",
        ),
    ],
    ids=str,
)
def test_a_wrong_setting_says_what_is_wrong_and_what_to_write(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig(settings)

    assert str(caught.value) == message


@pytest.mark.parametrize(("name", "instead"), REMOVED_KEYS.items())
def test_a_deprecated_key_names_its_replacement(name: str, instead: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig({name: "x"})

    assert str(caught.value) == f"setting {name!r} is deprecated in Kafka Streams and unknown here; {instead}"


def test_a_deprecated_key_is_recognized_as_a_keyword() -> None:
    with pytest.raises(ConfigError, match=r"use 'statestore\.cache\.max\.bytes'"):
        StreamsConfig(cache_max_bytes_buffering=0)


def test_an_unknown_keyword_names_the_nearest_keyword() -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig(comit_interval_ms=1)

    assert str(caught.value) == f"unknown setting 'comit_interval_ms'; did you mean 'commit_interval_ms'? {OWN}"


def test_a_setting_given_twice_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig({"poll.ms": 1}, poll_ms=2)

    assert str(caught.value) == "setting 'poll.ms' is given twice: in the mapping and as poll_ms=2"


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        StreamsConfig({"poll.ms": "x", "zzz": 1, "group.id": "g"})

    assert str(caught.value).splitlines() == [
        "3 settings are wrong:",
        "- setting 'poll.ms' has the value 'x'; expected a whole number of milliseconds, at least 0",
        f"- unknown setting 'zzz' {OWN}",
        "- setting 'group.id' is 'g', but the group is named by 'application.id'",
    ]


def test_replace_checks_what_it_is_given() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'pol_ms'; did you mean 'poll_ms'"):
        StreamsConfig().replace(pol_ms=1)


def test_an_owned_setting_with_the_value_it_has_anyway_is_accepted() -> None:
    StreamsConfig({"consumer.enable.auto.commit": "false", "producer.delivery.report.only.error": True})

"""A running application looks at some of what it reads, and warns once of each topic whose keys lie elsewhere."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykstreams import Consumed, KStream, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.hashing import partition_for_key
from pykstreams.runtime.key_places.key_watch import EVERY, FIRST, KeyWatch
from pykstreams.topology.placement.key_placement import by_crc32
from tests.unit.runtime.cluster_fakes import Message

TEXT = Serdes.string()
CONFIG = StreamsConfig({"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT})
PARTITIONS = 4
COUNTS = {"orders": PARTITIONS, "customers": PARTITIONS, "out": PARTITIONS}
KEYS = [str(number).encode() for number in range(400)]
WRONG = [key for key in KEYS if partition_for_key(key, PARTITIONS) not in (0, by_crc32(key, PARTITIONS))]
RIGHT = [key for key in KEYS if partition_for_key(key, PARTITIONS) == 0]


def watch(consumed: Consumed[str, str] | None = None, counts: dict[str, int] | None = None) -> KeyWatch:
    builder = StreamsBuilder()
    orders: KStream[str, str] = builder.stream("orders", consumed)
    orders.join(builder.table("customers", consumed), lambda order, customer: order).to("out")
    made = KeyWatch(builder.build().plan(CONFIG))
    made.follow(counts or COUNTS)
    return made


def messages(keys: list[bytes]) -> list[Message]:
    return [Message(at, key) for at, key in enumerate(keys)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_topic_is_warned_of_once_with_what_and_where_and_a_cure(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch()
    for _ in range(3):
        watched.look(("orders", 0), messages(WRONG[:50]))
        watched.look(("customers", 0), messages(RIGHT))

    (warning,) = warnings(caplog)
    assert warning.startswith("topic 'orders': 50 of 50 sampled records lie in other partitions than Kafka's murmur2")
    assert "records of customers that lie by Kafka's murmur2 do not meet them" in warning
    assert '"partitioner": "murmur2_random"' in warning
    assert "partitioner.check.enable=false" in warning


def test_workers_of_a_process_warn_once_together(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch()
    watched.follow(COUNTS)
    watched.look(("orders", 0), messages(WRONG))
    watched.follow(COUNTS)
    watched.look(("orders", 1), messages([key for key in KEYS if partition_for_key(key, PARTITIONS) != 1]))

    assert len(warnings(caplog)) == 1


def test_right_topics_and_topics_that_do_not_matter_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch()
    watched.look(("orders", 0), messages(RIGHT))
    watched.look(("out", 0), messages(WRONG))

    assert warnings(caplog) == []


def test_keys_are_compared_with_the_partitioner_of_the_source(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch(Consumed(partitioner="consistent_random"))
    watched.look(("orders", 0), messages([key for key in KEYS if by_crc32(key, PARTITIONS) == 0]))
    before = warnings(caplog)
    watched.look(("customers", 0), messages(RIGHT))

    assert before == []
    assert len(warnings(caplog)) == 1


def test_topic_that_gets_more_partitions_is_looked_at_no_more(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch()
    watched.follow({**COUNTS, "orders": 8})
    watched.look(("orders", 0), messages(WRONG))

    assert warnings(caplog) == []


class _Counted(Message):
    asked = 0

    def key(self) -> bytes | None:
        _Counted.asked += 1
        return RIGHT[0]


def test_of_many_records_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "asked", 0)
    watched = watch()
    batch: list[Any] = [_Counted(at) for at in range(500)]
    for _ in range(100):
        watched.look(("orders", 0), batch)

    later = 100 * 500 - 500
    assert _Counted.asked == FIRST + later // EVERY


def test_keys_that_begin_to_lie_elsewhere_later_are_found(caplog: pytest.LogCaptureFixture) -> None:
    watched = watch()
    watched.look(("orders", 0), messages(RIGHT * 3))
    watched.look(("orders", 0), messages(WRONG * (EVERY // len(WRONG) + 1)))

    assert "1 of 101 sampled records" in warnings(caplog)[0]

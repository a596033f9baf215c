"""Options and queries in variables need no annotation; checked by ``mypy --strict`` and pyright, never run."""

from typing import Any, assert_type

from pykstreams import (
    Branched,
    Consumed,
    Grouped,
    Joined,
    KafkaStreams,
    KStream,
    KTable,
    Materialized,
    Produced,
    Repartitioned,
    Retry,
    StreamJoined,
    StreamsBuilder,
    TableJoined,
)
from pykstreams.query import KeyQuery, StateQueryResult, VersionedKeyQuery
from pykstreams.state import VersionedRecord

consumed = Consumed(key_serde=str)
produced = Produced(value_serde=int)
grouped = Grouped(name="by-user")
joined = Joined(name="with-users")
table_joined = TableJoined(name="with-teams")
stream_joined = StreamJoined(name="pairs")
repartitioned = Repartitioned(num_partitions=6)
stored = Materialized("counts")
retry = Retry(max_attempts=8)
large = Branched("large")


def build(builder: StreamsBuilder) -> None:
    assert_type(builder.stream("clicks", consumed), KStream[str, Any])
    clicks = builder.stream("clicks", str, int)
    counts = clicks.repartition(repartitioned).group_by_key(grouped).count(materialized=stored)
    assert_type(counts, KTable[str, int])
    clicks.to("out", produced)
    assert_type(clicks.map_values(str, retry=retry), KStream[str, str])
    branches = clicks.split().branch(lambda key, value: value > 9, large).no_default_branch()
    assert_type(branches["large"], KStream[str, int])


def ask(streams: KafkaStreams) -> None:
    assert_type(streams.query("prices", VersionedKeyQuery("tea")), StateQueryResult[VersionedRecord[Any] | None])
    assert_type(streams.query("prices", KeyQuery[str, int]("tea")), StateQueryResult[int | None])
    answer = streams.query("prices", KeyQuery("tea"))
    found = answer.only_partition_result
    if found is not None and found.result is not None:
        print(found.result)

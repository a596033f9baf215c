"""Where a partition without offset starts: by its source, else by the consumer; repartition topics at the front."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import BEGINNING, END
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.topology.offset_reset import AutoOffsetReset
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.plans import part, plan, source

ORDERS = TopicPartition("orders", 2)
BECAUSE = "has no committed offset"


def start_offsets(reset: AutoOffsetReset | None, default: str = "earliest", found: int = 40) -> StartOffsets:
    def offsets_at(partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        assert timestamp == 1_000_000 - 60_000
        return dict.fromkeys(partitions, found)

    topology = plan(
        part(0, source("A", "orders", reset=reset)),
        part(1, source("B", "shop-x-repartition", reset=reset), repartition=[("shop-x-repartition", None)]),
    )
    return StartOffsets(topology, default, offsets_at, FakeClock())


@pytest.mark.parametrize(
    ("reset", "default", "expected"),
    [
        (None, "earliest", BEGINNING),
        (None, "latest", END),
        (AutoOffsetReset.LATEST, "earliest", END),
        (AutoOffsetReset.EARLIEST, "error", BEGINNING),
        (AutoOffsetReset.by_duration(60_000), "latest", 40),
    ],
)
def test_policy_of_the_source_wins_over_that_of_the_consumer(
    reset: AutoOffsetReset | None, default: str, expected: int
) -> None:
    assert start_offsets(reset, default).start(ORDERS, because=BECAUSE) == expected


def test_duration_without_a_record_that_young_starts_at_the_end() -> None:
    found = start_offsets(AutoOffsetReset.by_duration(60_000), found=-1)

    assert found.start(ORDERS, because=BECAUSE) == END


def test_repartition_topic_starts_at_the_beginning_whatever_the_policy() -> None:
    place = TopicPartition("shop-x-repartition", 0)

    assert start_offsets(AutoOffsetReset.LATEST, "latest").start(place, because=BECAUSE) == BEGINNING


def test_policy_none_is_an_error_that_names_partition_source_and_cure() -> None:
    with pytest.raises(StreamsError) as raised:
        start_offsets(AutoOffsetReset.NONE).start(ORDERS, because=BECAUSE)

    assert str(raised.value) == (
        "partition orders-2 has no committed offset, and the offset reset policy of A is 'none'; commit an offset for "
        "group and topic first, or choose 'earliest' or 'latest' for the source (offset_reset_policy)"
    )

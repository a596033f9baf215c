"""Referred rows that lie elsewhere than left rows are sent are warned of, once, with both partitions and the cure."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.hashing import partition_for_key
from pykstreams.processors.foreign_keys.referred_row_check import ReferredRowCheck
from pykstreams.serdes import StringSerde
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from tests.unit.processors.fakes import FakeOperatorContext

COUNT = 4
HERE = 1  # the partition of the fakes' task


def keys(here: bool) -> list[str]:
    return [text for text in "abcdefghij" if (partition_for_key(text.encode(), COUNT) == HERE) is here]


def looking(partitions: int = COUNT, serializer: Any = None) -> Any:
    context = FakeOperatorContext()
    context.partitions = partitions
    context.processing.key_serde = StringSerde()  # type: ignore[assignment]
    return ReferredRowCheck("t-repartition", ReferencePartitioner(lambda key: key, serializer)).build(context)


def test_rows_in_the_right_partition_are_looked_at_again_and_again() -> None:
    look = looking()

    assert all(look(key) for key in keys(here=True))


def test_row_in_another_partition_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    key = keys(here=False)[0]
    goes_on = looking(serializer=StringSerde())(key)

    assert not goes_on
    assert (
        f"NODE: the row {key!r} lies in partition 1, but rows that refer to it are sent to partition "
        f"{partition_for_key(key.encode(), COUNT)} of topic 'shop-t-repartition', so it joins nothing; let its topic"
    ) in caplog.text


def test_single_partition_needs_no_look(caplog: pytest.LogCaptureFixture) -> None:
    assert not looking(partitions=1)("a")
    assert caplog.text == ""

"""Where producers put keys: by the names of librdkafka, by a user's function, and what is neither."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pykstreams import Consumed
from pykstreams.topology.placement.key_placement import KeyPlacement, by_crc32, by_fnv1a, placement_of


def first(key: bytes, partitions: int) -> int:
    return key[0] % partitions


@pytest.mark.parametrize("name", ["murmur2", "murmur2_random", None])
def test_murmur2_is_what_everything_takes_for_granted(name: str | None) -> None:
    assert placement_of(name) is None


@pytest.mark.parametrize(("name", "choose"), [("consistent", by_crc32), ("fnv1a", by_fnv1a)])
def test_partitioner_and_its_random_relative_put_keys_into_the_same_partitions(name: str, choose: Any) -> None:
    assert placement_of(name) == placement_of(f"{name}_random") == KeyPlacement("", choose)
    assert placement_of(name) != placement_of(first)


def test_function_is_a_partitioner_and_is_named_in_messages() -> None:
    placement = placement_of(first)

    assert placement is not None
    assert placement(b"\x07", 4) == 3
    assert "first (line" in placement.name


def test_unknown_name_is_refused_where_the_source_is_described() -> None:
    with pytest.raises(ValueError, match="'crc32'; librdkafka's are consistent, consistent_random"):
        Consumed(partitioner="crc32")


def test_what_is_neither_name_nor_function_is_refused() -> None:
    with pytest.raises(TypeError, match="partitioner is 5; expected a name"):
        Consumed(partitioner=cast("Any", 5))

"""In which partition of a store a key is: by what decides of it, and by its serializer or partitioner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pykstreams.core.types import AnyPartitioner
from pykstreams.core.windows import Windowed
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from pykstreams.state.queries.values import as_it_is


@dataclass(frozen=True, slots=True)
class Placing:
    """The key, and its serializer or partitioner, by which the keys of a store are in their partitions.

    :param key_of: returns what decides of a key.
    :param serializer, partitioner: what serializes it, or what partitions it; one of both.
    """

    key_of: Callable[[object], object]
    serializer: object
    partitioner: AnyPartitioner | None


def placing_of(store: StoreDescription, partitioners: Mapping[str, AnyPartitioner]) -> Placing:
    """Returns how the keys of a store are placed.

    :param partitioners: of stores whose records were not partitioned by the bytes of their keys, by store.
    """
    partitioner = partitioners.get(store.name)
    if partitioner is not None:
        return Placing(as_it_is, None, partitioner)
    serde = store.key_serde
    if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        return Placing(_without_window, serde.inner.serializer, None)
    return Placing(as_it_is, None if serde is None else serde.serializer, None)


def _without_window(key: object) -> object:
    """The key that decides the partition: all windows of a key are in one, as sinks partition them."""
    return key.key if isinstance(key, Windowed) else key

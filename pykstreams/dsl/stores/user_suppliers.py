"""Stores that come with what users write: suppliers of processors and transformers may have a method ``stores``."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.user_code.functions import stores_of
from pykstreams.topology.stores import GivenStore


def provided_stores(supplier: Callable[[], object]) -> tuple[GivenStore, ...]:
    """The stores that the supplier brings (``ConnectedStoreProvider.stores``, 4.3.1)."""
    return tuple(map(GivenStore, stores_of(supplier)))

"""The keys of the entries of a cache, in their order, and by the user's key inside them where that is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from pykstreams.state.engines.ordered import KeyIndex, OrderedKeys


class CachedKeys:
    """Both orders of the keys of one cache, which sleep until they are asked.

    :param part: which bytes of a key are the user's key, where ``of_key`` is called.
    """

    __slots__ = ("by_key", "in_order")

    def __init__(self, entries: Mapping[bytes, object], part: slice | None) -> None:
        self.in_order = OrderedKeys(entries)
        self.by_key = None if part is None else KeyIndex(entries, part)

    def add(self, key: bytes) -> None:
        """Adds a key that was not among them before."""
        if self.in_order.awake:
            self.in_order.add(key)
        if self.by_key is not None and self.by_key.awake:
            self.by_key.add(key)

    def discard(self, key: bytes) -> None:
        """Drops the key of an entry that has left the cache."""
        if self.in_order.awake:
            self.in_order.discard(key)
        if self.by_key is not None and self.by_key.awake:
            self.by_key.discard(key)

    def clear(self) -> None:
        """Forgets both orders."""
        self.in_order.clear()
        if self.by_key is not None:
            self.by_key.clear()

    def index(self) -> KeyIndex:
        """The keys by the user's key."""
        if self.by_key is None:
            raise ValueError("the cache has no index of users' keys")
        return self.by_key

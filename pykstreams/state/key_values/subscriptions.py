"""The store of a foreign-key join: who has asked for which foreign key.

A key-value store whose keys are ``CombinedKey(foreign key, primary key)``, so that those who asked for one foreign key
lie together, and whose values are ``SubscriptionWrapper``, with the time and headers of the subscription. It has no
cache (``SubscriptionStoreFactory``, 4.3.1). The join reads and writes it as bytes, since it has these at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.subscription import SubscriptionWrapper
from pykstreams.state.encoding.parts import PutParts, parts_taker, values_scanner
from pykstreams.state.interfaces.engine import prefix_end
from pykstreams.state.key_values.metered import MeteredTimestampedKeyValueStoreWithHeaders
from pykstreams.state.key_values.stack import key_value_parts
from pykstreams.state.spec import StoreBuilder

ScanSubscriptions: TypeAlias = Callable[[bytes], Iterator[tuple[bytes, bytes]]]
"""prefix of keys -> (key, value), in the order of keys"""


class SubscriptionStore(MeteredTimestampedKeyValueStoreWithHeaders[CombinedKey[Any, Any], SubscriptionWrapper[Any]]):
    """A store of subscriptions; ``put_subscription`` and ``subscriptions`` are closures made when it is opened."""

    put_subscription: PutParts
    subscriptions: ScanSubscriptions

    def _make_closures(self) -> None:
        super()._make_closures()
        put, scan = parts_taker(self._top, self.layout), values_scanner(self._top, self.layout)

        def subscriptions(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
            return scan(prefix, prefix_end(prefix), False)

        self.put_subscription, self.subscriptions = put, subscriptions

    def _close_closures(self) -> None:
        super()._close_closures()
        self.put_subscription = self.subscriptions = self._closed


def subscription_store(builder: StoreBuilder[SubscriptionStore]) -> SubscriptionStore:
    """Builds the store; key and value serde of the builder are those of combined keys and subscriptions."""
    return SubscriptionStore(key_value_parts(builder, SubscriptionStore.layout))

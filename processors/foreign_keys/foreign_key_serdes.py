"""The serdes that the operators of one foreign-key join share, and the topics these serdes are told.

Foreign keys, primary keys and left values are told ``<subscription topic>-fk``, ``-pk`` and ``-vh``, whatever they are
written to (``KTableImpl.doJoinOnForeignKey``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from pykstreams.core.hashing import murmur3_128
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import AnySerde, EncoderOf, bind_deserializer, bind_serializer
from pykstreams.serdes.combined_key import encode_combined_key, encode_prefix
from pykstreams.serdes.defaults import SerdeOrDefault, or_default
from pykstreams.serdes.subscription import SubscriptionWrapper, encode_subscription

HashOf: TypeAlias = Callable[[object, Headers], bytes | None]
"""(left value, headers) -> its hash, ``None`` for a value of ``None``"""


@dataclass(frozen=True, slots=True)
class ForeignKeySerdes:
    """The serdes; ``None`` for the default of the configuration. ``topic`` is the subscription topic as the script
    names it, without the application id.
    """

    topic: str
    foreign_key: SerdeOrDefault = None
    primary_key: SerdeOrDefault = None
    left_value: SerdeOrDefault = None

    def foreign_key_serde(self, context: OperatorContext) -> AnySerde:
        """Returns the serde of foreign keys, which are the keys of the right table."""
        return _given_or(self.foreign_key, lambda: context.processing.key_serde)

    def primary_key_serde(self, context: OperatorContext) -> AnySerde:
        """Returns the serde of primary keys, which are the keys of the left table."""
        return _given_or(self.primary_key, lambda: context.processing.key_serde)

    def left_value_serde(self, context: OperatorContext) -> AnySerde:
        """Returns the serde of the left table's values."""
        return _given_or(self.left_value, lambda: context.processing.value_serde)

    def foreign_key_topic(self, context: OperatorContext) -> str:
        """The topic with which the serde of foreign keys is called."""
        return self._told("-fk", context)

    def encode_foreign_key(self, context: OperatorContext) -> Encoder:
        """Writes foreign keys."""
        return bind_serializer(self.foreign_key_serde(context).serializer, self.foreign_key_topic(context))

    def encode_prefix(self, context: OperatorContext) -> Callable[[object, Headers], bytes]:
        """Writes what the keys of all subscriptions to a foreign key start with."""
        encode = encode_prefix(self.encode_foreign_key(context), self.foreign_key_topic(context))
        return cast("Callable[[object, Headers], bytes]", encode)

    def encode_subscription_key(self, context: OperatorContext) -> Callable[[object, Headers], bytes]:
        """Writes the key of a subscription: (foreign key, primary key)."""
        foreign, primary = self.encode_foreign_key(context), self.encode_primary_key(context)
        encode = encode_combined_key(foreign, primary, self.foreign_key_topic(context))
        return cast("Callable[[object, Headers], bytes]", encode)

    def encode_subscription(self, context: OperatorContext) -> EncoderOf[SubscriptionWrapper[object]]:
        """Writes the value of a subscription."""
        return encode_subscription(self.encode_primary_key(context), self._told("-pk", context))

    def encode_primary_key(self, context: OperatorContext) -> Encoder:
        """Writes primary keys."""
        return bind_serializer(self.primary_key_serde(context).serializer, self._told("-pk", context))

    def decode_primary_key(self, context: OperatorContext) -> Decoder:
        """Reads primary keys."""
        return bind_deserializer(self.primary_key_serde(context).deserializer, self._told("-pk", context))

    def hash_of_left(self, context: OperatorContext) -> HashOf:
        """Makes the function that tells versions of a left row apart: the hash of its serialized value."""
        encode = bind_serializer(self.left_value_serde(context).serializer, self._told("-vh", context))

        def hash_of(value: object, headers: Headers) -> bytes | None:
            return None if value is None else murmur3_128(cast("bytes", encode(value, headers)))

        return hash_of

    def _told(self, suffix: str, context: OperatorContext) -> str:
        return f"{context.processing.application_id}-{self.topic}{suffix}"


def _given_or(given: SerdeOrDefault, default: Callable[[], AnySerde]) -> AnySerde:
    found: AnySerde = or_default(given, default)
    return found

"""Serdes: how keys and values become bytes and come back. The folder has exactly one import name."""

if __name__ != "pykstreams.serdes":  # this folder has one name
    raise ImportError(f"{__name__!r} is not importable; import pykstreams.serdes instead")

from pykstreams.serdes.avro import AvroSerde
from pykstreams.serdes.base import (
    Deserializer,
    Serde,
    Serializer,
    bind_deserializer,
    bind_serializer,
    located,
    resolve_serde,
)
from pykstreams.serdes.change import ChangeSerde
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.composed_keys import (
    AvroCombinedKeySerde,
    ComposedKeySerde,
    JsonCombinedKeySerde,
    ProtobufCombinedKeySerde,
)
from pykstreams.serdes.factories import Serdes, WindowedSerdes
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.list_serde import ListSerde
from pykstreams.serdes.optional import OptionalSerde
from pykstreams.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UUIDSerde,
    VoidSerde,
)
from pykstreams.serdes.registry.schema_registry import (
    SchemaRegistryAvroSerde,
    SchemaRegistryJsonSerde,
    SchemaRegistryProtobufSerde,
)
from pykstreams.serdes.subscription import (
    Instruction,
    SubscriptionResponseWrapper,
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapper,
    SubscriptionWrapperSerde,
)
from pykstreams.serdes.text_values import TextSerde
from pykstreams.serdes.windowed import (
    SessionWindowedDeserializer,
    SessionWindowedSerde,
    SessionWindowedSerializer,
    TimeWindowedDeserializer,
    TimeWindowedSerde,
    TimeWindowedSerializer,
)

__all__ = [
    "AvroCombinedKeySerde",
    "AvroSerde",
    "BooleanSerde",
    "BytesSerde",
    "ChangeSerde",
    "CombinedKey",
    "CombinedKeySerde",
    "ComposedKeySerde",
    "Deserializer",
    "DoubleSerde",
    "FloatSerde",
    "Instruction",
    "IntegerSerde",
    "JsonCombinedKeySerde",
    "JsonKeySerde",
    "JsonSerde",
    "ListSerde",
    "LongSerde",
    "OptionalSerde",
    "ProtobufCombinedKeySerde",
    "SchemaRegistryAvroSerde",
    "SchemaRegistryJsonSerde",
    "SchemaRegistryProtobufSerde",
    "Serde",
    "Serdes",
    "Serializer",
    "SessionWindowedDeserializer",
    "SessionWindowedSerde",
    "SessionWindowedSerializer",
    "ShortSerde",
    "StringSerde",
    "SubscriptionResponseWrapper",
    "SubscriptionResponseWrapperSerde",
    "SubscriptionWrapper",
    "SubscriptionWrapperSerde",
    "TextSerde",
    "TimeWindowedDeserializer",
    "TimeWindowedSerde",
    "TimeWindowedSerializer",
    "UUIDSerde",
    "VoidSerde",
    "WindowedSerdes",
    "bind_deserializer",
    "bind_serializer",
    "located",
    "resolve_serde",
]

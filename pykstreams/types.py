"""Type aliases of functions, times and headers; and what types stand for where a serde is expected.

``register(type, serde)`` gives a type its serde; ``Int16``, ``Int32``, ``Float32`` and ``Annotated[T, Avro(schema)]``
are for annotations. See docs/guides/types.md.
"""

from pykstreams.core.types import (
    Aggregator,
    CommitCallback,
    Duration,
    ForeachAction,
    Headers,
    Initializer,
    KeyValueMapper,
    Merger,
    Predicate,
    Punctuator,
    Reducer,
    StateRestoreCallback,
    StreamPartitioner,
    Timestamp,
    TimestampExtractor,
    TopicNameExtractor,
    ValueJoiner,
    ValueJoinerWithKey,
    ValueMapper,
    ValueMapperWithKey,
)
from pykstreams.serdes.by_type import TYPES, SerdeMarker, SerdeOrType
from pykstreams.serdes.markers import Avro, Float32, Int16, Int32
from pykstreams.topology.placement.key_placement import KeyPartitioner

register = TYPES.register

__all__ = [
    "Aggregator",
    "Avro",
    "CommitCallback",
    "Duration",
    "Float32",
    "ForeachAction",
    "Headers",
    "Initializer",
    "Int16",
    "Int32",
    "KeyPartitioner",
    "KeyValueMapper",
    "Merger",
    "Predicate",
    "Punctuator",
    "Reducer",
    "SerdeMarker",
    "SerdeOrType",
    "StateRestoreCallback",
    "StreamPartitioner",
    "Timestamp",
    "TimestampExtractor",
    "TopicNameExtractor",
    "ValueJoiner",
    "ValueJoinerWithKey",
    "ValueMapper",
    "ValueMapperWithKey",
    "register",
]

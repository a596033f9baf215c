"""Kafka Streams for Python: streams, tables and state on Apache Kafka."""

from pykstreams._version import __version__
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterError,
    ConfigError,
    ProcessingError,
    SerdeError,
    SerializationError,
    StreamsError,
    TopologyError,
)
from pykstreams.core.handlers import (
    DeserializationExceptionHandler,
    ErrorHandlerContext,
    ErrorHandlerResponse,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
    ProcessingExceptionHandler,
    ProductionExceptionHandler,
    StreamThreadExceptionResponse,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.names import Named
from pykstreams.core.processor import (
    Cancellable,
    ContextualFixedKeyProcessor,
    ContextualProcessor,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    FixedKeyProcessorSupplier,
    ProcessingContext,
    Processor,
    ProcessorContext,
    ProcessorSupplier,
    PunctuationType,
)
from pykstreams.core.processor_wrapper import ProcessorWrapper
from pykstreams.core.record import (
    ConsumerRecord,
    FixedKeyRecord,
    KeyValue,
    ProducerRecord,
    Record,
    RecordContext,
    RecordMetadata,
    ValueAndTimestamp,
    get_header,
    set_header,
)
from pykstreams.core.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from pykstreams.core.value_transformer import (
    ValueTransformerContext,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
)
from pykstreams.core.windows import (
    CountWindows,
    EmitStrategy,
    JoinWindows,
    PartialWindow,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    Windows,
)
from pykstreams.dsl.aggregations.suppression import BufferConfig, BufferFullStrategy, Suppressed
from pykstreams.dsl.branching import Branched, BranchedKStream
from pykstreams.dsl.builder import StreamsBuilder
from pykstreams.dsl.cogrouped import CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream
from pykstreams.dsl.count_windowed import CountWindowedKStream
from pykstreams.dsl.global_table import GlobalKTable
from pykstreams.dsl.grouped import KGroupedStream
from pykstreams.dsl.grouped_table import KGroupedTable
from pykstreams.dsl.kstream import KStream
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Produced,
    Repartitioned,
    StreamJoined,
    TableJoined,
)
from pykstreams.dsl.retry import Retry
from pykstreams.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream
from pykstreams.processors.lookup import LookupCache
from pykstreams.processors.sinks.sql_sink import SqlSink
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier, KafkaClientSupplier
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.runtime.queries.metadata import HostInfo, KeyQueryMetadata, StreamsMetadata
from pykstreams.runtime.queries.store_types import QueryableStoreType, QueryableStoreTypes
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener, SuspendReason
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, ThreadMetadata
from pykstreams.serdes import Serdes
from pykstreams.state import BuiltInDslStoreSuppliers, ConnectedStoreProvider, DslStoreFormat, Stores
from pykstreams.topology.description import TopologyDescription
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.plan import InternalTopic
from pykstreams.topology.topology import Topology

__all__ = [
    "AutoOffsetReset",
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "BufferFullStrategy",
    "BuiltInDslStoreSuppliers",
    "Cancellable",
    "ClusterError",
    "CogroupedKStream",
    "ConfigError",
    "ConnectedStoreProvider",
    "Consumed",
    "ConsumerRecord",
    "ContextualFixedKeyProcessor",
    "ContextualProcessor",
    "CountWindowedKStream",
    "CountWindows",
    "DefaultKafkaClientSupplier",
    "DeserializationExceptionHandler",
    "DslStoreFormat",
    "EmitStrategy",
    "ErrorHandlerContext",
    "ErrorHandlerResponse",
    "FailOnInvalidTimestamp",
    "FixedKeyProcessor",
    "FixedKeyProcessorContext",
    "FixedKeyProcessorSupplier",
    "FixedKeyRecord",
    "GlobalKTable",
    "GroupMembershipOperation",
    "Grouped",
    "HostInfo",
    "InternalTopic",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaClientSupplier",
    "KafkaStreams",
    "KeyQueryMetadata",
    "KeyValue",
    "LagInfo",
    "LogAndContinueExceptionHandler",
    "LogAndContinueProcessingExceptionHandler",
    "LogAndFailExceptionHandler",
    "LogAndFailProcessingExceptionHandler",
    "LogAndSkipOnInvalidTimestamp",
    "LookupCache",
    "Materialized",
    "Named",
    "PartialWindow",
    "ProcessingContext",
    "ProcessingError",
    "ProcessingExceptionHandler",
    "Processor",
    "ProcessorContext",
    "ProcessorSupplier",
    "ProcessorWrapper",
    "Produced",
    "ProducerRecord",
    "ProductionExceptionHandler",
    "PunctuationType",
    "QueryableStoreType",
    "QueryableStoreTypes",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "Repartitioned",
    "Retry",
    "SerdeError",
    "Serdes",
    "SerializationError",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "SqlSink",
    "StandbyUpdateListener",
    "State",
    "StateRestoreListener",
    "Stores",
    "StreamJoined",
    "StreamThreadExceptionResponse",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "StreamsMetadata",
    "Suppressed",
    "SuspendReason",
    "TableJoined",
    "TaskId",
    "TaskMetadata",
    "ThreadMetadata",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "TopicPartition",
    "Topology",
    "TopologyDescription",
    "TopologyError",
    "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "ValueTransformerContext",
    "ValueTransformerWithKey",
    "ValueTransformerWithKeySupplier",
    "WallclockTimestampExtractor",
    "Window",
    "Windowed",
    "Windows",
    "__version__",
    "get_header",
    "set_header",
]

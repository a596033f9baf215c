"""The operators: all that is done to a record; this folder is ``pykstreams.processors`` and has no other name.

An operator is a frozen description with ``build(context)``, which gives the callable of one position in one
task.
"""

if __name__ != "pykstreams.processors":  # this folder has one name
    raise ImportError(f"{__name__!r} is not importable; import pykstreams.processors instead")

from pykstreams.processors.aggregates.count_window import CountWindowAggregate
from pykstreams.processors.aggregates.session_aggregate import (
    COUNT_OF_SESSION,
    SessionAggregate,
    SessionAggregation,
    reducing_sessions,
)
from pykstreams.processors.aggregates.sliding_aggregate import SlidingAggregate
from pykstreams.processors.aggregates.stream_aggregate import StreamAggregate, StreamCount, StreamReduce
from pykstreams.processors.aggregates.table_aggregate import TableAggregate, TableReduce, TableRepartitionMap
from pykstreams.processors.aggregates.window_aggregate import (
    COUNT,
    Aggregation,
    WindowAggregate,
    WindowedView,
    reducing,
)
from pykstreams.processors.foreign_keys.foreign_key_join import SubscriptionJoin, SubscriptionReceive, SubscriptionSend
from pykstreams.processors.foreign_keys.foreign_key_resolver import ForeignKeyResolver
from pykstreams.processors.foreign_keys.foreign_key_serdes import ForeignKeySerdes
from pykstreams.processors.foreign_keys.foreign_table_join import ForeignTableJoin, RightRowCheck
from pykstreams.processors.joins.complete_join import CompleteJoin, CompleteJoinMerger
from pykstreams.processors.joins.stream_stream_join import KeepForJoin, StreamSelfJoin, StreamStreamJoin
from pykstreams.processors.joins.stream_table_join import StreamTableJoin
from pykstreams.processors.joins.table_table_join import JoinedView, TableTableJoin, TableTableJoinMerger
from pykstreams.processors.lookup import Lookup, LookupCache
from pykstreams.processors.map_values_async import MapValuesAsync
from pykstreams.processors.printing import Print
from pykstreams.processors.stateless import (
    Branch,
    Filter,
    FilterNothing,
    FlatMap,
    FlatMapValues,
    ForEach,
    Map,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
)
from pykstreams.processors.tables.reorder import Reorder
from pykstreams.processors.tables.suppress import SuppressedView, TableSuppress
from pykstreams.processors.tables.table import TableFilter, TableMapValues, TableSource, TableToStream
from pykstreams.processors.tables.table_transform import TableTransformValues
from pykstreams.processors.tables.table_view import AnyTableView, StoredView, TableView
from pykstreams.processors.tables.time_to_live import ExpiringTable, RowsOfRecords
from pykstreams.processors.user import UserFixedKeyProcessor, UserProcessor

__all__ = [
    "COUNT",
    "COUNT_OF_SESSION",
    "Aggregation",
    "AnyTableView",
    "Branch",
    "CompleteJoin",
    "CompleteJoinMerger",
    "CountWindowAggregate",
    "ExpiringTable",
    "Filter",
    "FilterNothing",
    "FlatMap",
    "FlatMapValues",
    "ForEach",
    "ForeignKeyResolver",
    "ForeignKeySerdes",
    "ForeignTableJoin",
    "JoinedView",
    "KeepForJoin",
    "Lookup",
    "LookupCache",
    "Map",
    "MapValues",
    "MapValuesAsync",
    "PassThrough",
    "Peek",
    "Print",
    "Reorder",
    "RightRowCheck",
    "RowsOfRecords",
    "SelectKey",
    "SessionAggregate",
    "SessionAggregation",
    "SlidingAggregate",
    "StoredView",
    "StreamAggregate",
    "StreamCount",
    "StreamReduce",
    "StreamSelfJoin",
    "StreamStreamJoin",
    "StreamTableJoin",
    "SubscriptionJoin",
    "SubscriptionReceive",
    "SubscriptionSend",
    "SuppressedView",
    "TableAggregate",
    "TableFilter",
    "TableMapValues",
    "TableReduce",
    "TableRepartitionMap",
    "TableSource",
    "TableSuppress",
    "TableTableJoin",
    "TableTableJoinMerger",
    "TableToStream",
    "TableTransformValues",
    "TableView",
    "UserFixedKeyProcessor",
    "UserProcessor",
    "WindowAggregate",
    "WindowedView",
    "reducing",
    "reducing_sessions",
]

"""What each operator does to a record; this folder is ``pykstreams.processors`` and has no other name.

An operator is a frozen description with ``build(context)``, which gives the callable of one position in one
task.
"""

if __name__ != "pykstreams.processors":  # this folder has one name
    raise ImportError(f"{__name__!r} is not importable; import pykstreams.processors instead")

from pykstreams.processors.complete_join import CompleteJoin, CompleteJoinMerger
from pykstreams.processors.foreign_key_join import SubscriptionJoin, SubscriptionReceive, SubscriptionSend
from pykstreams.processors.foreign_key_resolver import ForeignKeyResolver
from pykstreams.processors.foreign_key_serdes import ForeignKeySerdes
from pykstreams.processors.foreign_table_join import ForeignTableJoin, RightRowCheck
from pykstreams.processors.map_values_async import MapValuesAsync
from pykstreams.processors.printing import Print
from pykstreams.processors.reorder import Reorder
from pykstreams.processors.session_aggregate import (
    COUNT_OF_SESSION,
    SessionAggregate,
    SessionAggregation,
    reducing_sessions,
)
from pykstreams.processors.sliding_aggregate import SlidingAggregate
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
from pykstreams.processors.stream_aggregate import StreamAggregate, StreamCount, StreamReduce
from pykstreams.processors.stream_stream_join import KeepForJoin, StreamSelfJoin, StreamStreamJoin
from pykstreams.processors.stream_table_join import StreamTableJoin
from pykstreams.processors.suppress import SuppressedView, TableSuppress
from pykstreams.processors.table import TableFilter, TableMapValues, TableSource, TableToStream
from pykstreams.processors.table_aggregate import TableAggregate, TableReduce, TableRepartitionMap
from pykstreams.processors.table_table_join import JoinedView, TableTableJoin, TableTableJoinMerger
from pykstreams.processors.table_transform import TableTransformValues
from pykstreams.processors.table_view import StoredView, TableView
from pykstreams.processors.user import UserFixedKeyProcessor, UserProcessor
from pykstreams.processors.window_aggregate import COUNT, Aggregation, WindowAggregate, WindowedView, reducing

__all__ = [
    "COUNT",
    "COUNT_OF_SESSION",
    "Aggregation",
    "Branch",
    "CompleteJoin",
    "CompleteJoinMerger",
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
    "Map",
    "MapValues",
    "MapValuesAsync",
    "PassThrough",
    "Peek",
    "Print",
    "Reorder",
    "RightRowCheck",
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

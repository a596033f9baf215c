"""Interactive queries, version 2: what ``KafkaStreams.query`` is asked and what it answers."""

from pykstreams.state.interfaces.position import Position, PositionBound
from pykstreams.state.interfaces.queries import (
    KeyQuery,
    MultiVersionedKeyQuery,
    RangeQuery,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import FailureReason, QueryConfig, QueryResult, StateQueryResult
from pykstreams.state.interfaces.versioned_store import ResultOrder

__all__ = [
    "FailureReason",
    "KeyQuery",
    "MultiVersionedKeyQuery",
    "Position",
    "PositionBound",
    "Query",
    "QueryConfig",
    "QueryResult",
    "RangeQuery",
    "ResultOrder",
    "StateQueryResult",
    "TimestampedKeyQuery",
    "TimestampedRangeQuery",
    "VersionedKeyQuery",
    "WindowKeyQuery",
    "WindowRangeQuery",
]

"""Interactive queries, version 2: what ``KafkaStreams.query`` is asked and what it answers."""

from pykstreams.state.queries.position import Position, PositionBound
from pykstreams.state.queries.queries import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Query,
    RangeQuery,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from pykstreams.state.queries.results import FailureReason, QueryConfig, QueryResult, StateQueryResult
from pykstreams.state.versions.store import ResultOrder

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

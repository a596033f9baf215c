"""Results of interactive queries: an answer, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pykstreams.state.interfaces.position import Position, PositionBound

if TYPE_CHECKING:
    from pykstreams.state.interfaces.query import Query

R = TypeVar("R")


class FailureReason(Enum):
    """Why a partition has no answer."""

    UNKNOWN_QUERY_TYPE = "unknown_query_type"
    """The store cannot answer such a query."""
    NOT_ACTIVE = "not_active"
    """``require_active`` was given, and the task is not running, or its worker is in a rebalance."""
    NOT_UP_TO_BOUND = "not_up_to_bound"
    """The store has not come as far as the bound yet: ask again."""
    NOT_PRESENT = "not_present"
    """The partition is not in this process: ask another one."""
    DOES_NOT_EXIST = "does_not_exist"
    """The store has no such partition anywhere."""
    STORE_EXCEPTION = "store_exception"
    """The store failed; the message says how."""


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """How a query is to be answered; only stores that users write see it.

    :param collect_execution_info: whether layers say what they did, by ``QueryResult.add_execution_info``.
    """

    collect_execution_info: bool


class QueryResult(Generic[R]):
    """The answer of one partition; made by ``for_result`` and its sisters."""

    __slots__ = ("_info", "_message", "_reason", "_result", "position")

    def __init__(self, result: R | None, reason: FailureReason | None, message: str) -> None:
        self._result = result
        self._reason = reason
        self._message = message
        self._info: list[str] = []
        self.position: Position | None = None
        """Up to which records the store had come when it answered, if it says so."""

    @classmethod
    def for_result(cls, result: R) -> QueryResult[R]:
        """A success; the result may be ``None``."""
        return cls(result, None, "")

    @classmethod
    def for_failure(cls, reason: FailureReason, message: str) -> QueryResult[R]:
        """A failure."""
        return cls(None, reason, message)

    @classmethod
    def for_unknown_query_type(cls, query: Query[R], store: object) -> QueryResult[R]:
        """The failure of a store that cannot answer such a query."""
        return cls.for_failure(
            FailureReason.UNKNOWN_QUERY_TYPE,
            f"a {type(store).__name__} cannot answer {query!r}; take a query that fits the kind of the store",
        )

    @classmethod
    def not_up_to_bound(
        cls, current_position: Position, position_bound: PositionBound, partition: int | None
    ) -> QueryResult[R]:
        """The failure of a store that has not come far enough; ``None`` for one that is not open yet."""
        bound = position_bound.position
        if partition is None:
            text = f"the store is not open yet, and so not up to {bound!r}; ask again"
        else:
            text = f"partition {partition} of the store is at {current_position!r}, not yet up to {bound!r}; ask again"
        return cls.for_failure(FailureReason.NOT_UP_TO_BOUND, text)

    def add_execution_info(self, message: str) -> None:
        """Adds what was done for the answer."""
        self._info.append(message)

    @property
    def execution_info(self) -> list[str]:
        """The steps taken for the answer, if execution info was asked for."""
        return list(self._info)

    @property
    def is_success(self) -> bool:
        """Whether there is a result."""
        return self._reason is None

    @property
    def is_failure(self) -> bool:
        """Whether there is a reason instead of a result."""
        return self._reason is not None

    @property
    def result(self) -> R:
        """The result; ``ValueError`` on a failure."""
        if self._reason is not None:
            raise ValueError(f"this query failed and has no result: {self._reason.name}: {self._message}")
        return cast("R", self._result)

    @property
    def failure_reason(self) -> FailureReason:
        """Why there is no result; ``ValueError`` on a success."""
        if self._reason is None:
            raise ValueError("this query did not fail, so there is no reason; look at is_failure first")
        return self._reason

    @property
    def failure_message(self) -> str:
        """The failure in words; ``ValueError`` on a success."""
        if self._reason is None:
            raise ValueError("this query did not fail, so there is no message; look at is_failure first")
        return self._message

    def with_result(self, result: Any) -> QueryResult[Any]:
        """A success with another result, and all else as here."""
        made: QueryResult[Any] = QueryResult.for_result(result)
        made._info, made.position = self._info, self.position
        return made

    def __repr__(self) -> str:
        if self._reason is None:
            return f"QueryResult(result={self._result!r}, position={self.position!r})"
        return f"QueryResult(failure_reason={self._reason.name}, failure_message={self._message!r})"


class StateQueryResult(Generic[R]):
    """The answers of all partitions that were asked, or that of a global store."""

    __slots__ = ("_global", "_partitions")

    def __init__(
        self, partition_results: Mapping[int, QueryResult[R]] | None = None, global_result: QueryResult[R] | None = None
    ) -> None:
        self._partitions = dict(partition_results or {})
        self._global = global_result

    @property
    def partition_results(self) -> dict[int, QueryResult[R]]:
        """The answers by partition, in order; empty for a global store."""
        return dict(self._partitions)

    @property
    def only_partition_result(self) -> QueryResult[R] | None:
        """The one answer with a result that is not ``None``; ``ValueError`` if there are several."""
        found = [one for one in self._partitions.values() if one.is_success and one.result is not None]
        if len(found) > 1:
            raise ValueError(f"{len(found)} partitions gave a result, and one was expected: {self._partitions!r}")
        return found[0] if found else None

    @property
    def global_result(self) -> QueryResult[R] | None:
        """The answer of a global store; ``None`` for any other."""
        return self._global

    @property
    def position(self) -> Position:
        """Up to which records the stores had come together; for the bound of a later query."""
        return merged_position(self._partitions.values() if self._global is None else (self._global,))

    def __repr__(self) -> str:
        return f"StateQueryResult(partition_results={self._partitions!r}, global_result={self._global!r})"


def merged_position(results: Iterable[QueryResult[Any]]) -> Position:
    """The highest offset of each partition."""
    position = Position()
    for one in results:
        if one.position is not None:
            position.merge(one.position)
    return position

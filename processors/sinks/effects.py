"""Effects: the rows of input records on their way into a database, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pykstreams.core.ids import TopicPartition
from pykstreams.core.types import Headers
from pykstreams.state.encoding.record_context import RawContext

Row: TypeAlias = Mapping[str, object]
"""The parameters of a statement by name."""


class DatabaseAwayError(Exception):
    """The database does not take anything at the moment; the same may succeed later."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An owner's right to write for a partition, and the offset from which on nothing is written yet."""

    epoch: int
    next_offset: int


class Transactions(Protocol):
    """The methods of ``SqlTransactions`` that are called here."""

    def claim(self, partition: TopicPartition) -> Claim: ...

    def write(
        self, rows: Sequence[Row], claims: Mapping[TopicPartition, Claim], ends: Mapping[TopicPartition, int]
    ) -> None: ...


@dataclass(slots=True)
class Effect:
    """The rows of one input record, with the record that reached the sink first for it."""

    partition: TopicPartition
    offset: int
    key: object
    value: object
    timestamp: int
    headers: Headers
    raw: RawContext
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a batch: ``done`` of its effects are in the database; then an error, which is about the next of them
    with ``blames_next``.
    """

    done: int
    error: Exception | None = None
    blames_next: bool = False

"""Foreign-key join, back at the left side: which answers count, and what they give.

Between a left row's subscription and its answer the row may have changed, perhaps to another foreign key whose answer,
from another task, has overtaken this one. So an answer carries the hash of the value that asked, and counts only if
that is still the hash of the row.

An inner join needs more: where a stale answer has no value the row is asked for anew (``AskAgain``), or, if it is
gone or has no foreign key any more, its result deleted.

Invariant: a result never joins a right row with a left value other than the one that asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from pykstreams.core.hashing import murmur3_128
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers, ValueJoiner
from pykstreams.processors.foreign_keys.foreign_key_join import AskAgain
from pykstreams.processors.foreign_keys.foreign_key_serdes import ForeignKeySerdes
from pykstreams.processors.process import Process
from pykstreams.processors.tables.table_view import TableView, serialized_rows
from pykstreams.serdes.subscription import SubscriptionResponseWrapper

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")


@dataclass(frozen=True, slots=True)
class ForeignKeyResolver(Generic[K, V, VO]):
    """Forwards ``joiner(left value, right value)`` for answers that are not stale, and ``None`` where there is no row.

    With ``left`` the joiner gets ``None`` where there is no right row. Stale answers are counted as dropped
    (``ResponseJoinProcessorSupplier``, 4.3.1).
    """

    left_rows: TableView[K, V]
    serdes: ForeignKeySerdes
    joiner: ValueJoiner[V | None, VO | None, object]
    left: bool

    def build(self, context: OperatorContext) -> Process:
        # Rows as they were when their subscriptions were sent: those that a cache holds back have sent none yet.
        read, hash_of = self.left_rows.as_forwarded().build(context), self.serdes.hash_of_left(context)
        ask_again: AskAgain[K, V] = context.shared(self.serdes.topic, AskAgain)
        joiner, left = self.joiner, self.left
        settled = left or context.one_record_at_a_time  # then no answer comes too late
        forward, fail, count_dropped = context.forward, context.fail, context.count_dropped

        def resolve(key: K, answer: SubscriptionResponseWrapper[VO], timestamp: int, headers: Headers) -> None:
            try:
                digest, right, _ = answer
                row = read(key)
                value = None if row is None else row[0]
                if hash_of(value, headers) != digest:
                    count_dropped()
                    if right is not None or settled:
                        return
                    if row is not None and ask_again.ask(key, row[0], row[1], headers):
                        return
                    result = None
                else:
                    result = None if right is None and (not left or row is None) else joiner(value, right)
            except Exception as error:
                fail(error, key, answer, timestamp, headers)
                return
            forward(key, result, timestamp, headers)

        kept = serialized_rows(
            self.left_rows.as_forwarded(),
            context,
            self.serdes.primary_key_serde(context),
            self.serdes.left_value_serde(context),
        )
        if kept is None:
            return resolve
        read_bytes, decode_value = kept
        encode_key = self.serdes.encode_primary_key(context)

        def resolve_in_bytes(key: K, answer: SubscriptionResponseWrapper[VO], timestamp: int, headers: Headers) -> None:
            """Compares the hash of the row as it is kept; bytes that somebody else has written may differ from those
            that asked, and mean the same.
            """
            counts, result = False, None
            try:
                digest, right, _ = answer
                row = read_bytes(cast("bytes", encode_key(key, headers)))
                if row is not None:
                    counts = murmur3_128(row[0]) == digest
                    if counts and (right is not None or left):
                        result = joiner(decode_value(row[0]), right)
            except Exception as error:
                fail(error, key, answer, timestamp, headers)
                return
            if counts:
                forward(key, result, timestamp, headers)
            else:
                resolve(key, answer, timestamp, headers)

        return resolve_in_bytes

"""Foreign-key join, from the left row to the right one: a left row subscribes to the row of its foreign key.

The left side sends a subscription through a topic that is partitioned by the foreign key; the right side keeps it and
answers with its row. Answers go back through a second topic, to the partition that asked; who resolves them is
``foreign_key_resolver``, and what changes of right rows do is ``foreign_table_join``. The whole is in
docs/guides/foreign-key-joins.md.

Invariant: for each left row with a foreign key the store of that key's partition has exactly one subscription, once all
messages have arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, cast

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Encoder, Headers
from pykstreams.processors.drop_reasons import OUT_OF_ORDER
from pykstreams.processors.foreign_keys.foreign_key_serdes import ForeignKeySerdes, HashOf
from pykstreams.processors.foreign_keys.serialized_answers import Answer, serialized_answers
from pykstreams.processors.process import Process
from pykstreams.processors.stores import subscription_rows
from pykstreams.processors.tables.table_view import TableView, serialized_rows
from pykstreams.serdes.base import write_same_bytes
from pykstreams.serdes.combined_key import combined_key_bytes
from pykstreams.serdes.subscription import (
    SUBSCRIPTION_VERSION,
    Instruction,
    SubscriptionWrapper,
    primary_key_bytes,
    response_of,
    subscription_of,
)
from pykstreams.state.encoding.record_context import RawContext

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")

_Message: TypeAlias = SubscriptionWrapper[object]

_RowOf: TypeAlias = Callable[[object, _Message, Headers], tuple[bytes, bytes]]
"""(foreign key, subscription, headers) -> the row of the subscription in the store"""

_FORGET: Final = Instruction.DELETE_KEY_NO_PROPAGATE
_FORGET_AND_ANSWER: Final = Instruction.DELETE_KEY_AND_PROPAGATE
_ANSWER: Final = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
_ANSWER_IF_THERE: Final = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE


class AskAgain(Generic[K, V]):
    """The state that the two ends of the left side share in one task: who sends and who resolves.

    An inner join sends no answer where it takes it for granted that there is no result to be deleted. That is wrong if
    another answer, which would have deleted it, is still on its way and will be stale when it comes: the right row was
    deleted, or the left one deleted and made anew. So a stale answer without value makes the resolver ``ask`` anew for
    the row as it is now. Kafka Streams does not, and keeps a wrong row.
    """

    def __init__(self) -> None:
        self.ask: Callable[[K, V, int, Headers], bool] = _nobody
        """(key, value, timestamp, headers) -> whether an answer will come; there is none without a foreign key"""


def _nobody(key: object, value: object, timestamp: int, headers: Headers) -> bool:
    return False


NULL_FOREIGN_KEY: Final = "the foreign key of a row to join is null"


@dataclass(frozen=True, slots=True)
class SubscriptionSend(Generic[K, V]):
    """Sends, for each change of a left row, what its old and its new foreign key are to be told.

    ``extractor(key, value)`` gives the foreign key; ``None`` joins with nothing, and is counted as dropped unless
    ``left``. An old subscription is deleted where the serialized foreign key has changed. A change of a ``versioned``
    table that is older than the newest one of its row is dropped (``SubscriptionSendProcessorSupplier``, 4.3.1).
    """

    extractor: Callable[[K, V], object]
    serdes: ForeignKeySerdes
    left: bool
    versioned: bool = False

    def build(self, context: OperatorContext) -> Process:
        return self._left(context) if self.left else self._inner(context)

    def _inner(self, context: OperatorContext) -> Process:
        extract, encode, hash_of = self._parts(context)
        partition, versioned = context.processing.task_id.partition, self.versioned
        forward, fail, drop = context.forward, context.fail, context.drop

        asking: AskAgain[K, V] = context.shared(self.serdes.topic, AskAgain)
        asking.ask = self._ask(context)
        current, ask_in_any_case = context.current, self._left(context)

        def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
            if current.replayed:
                # The row is in the store, but what it was to send may be lost, and so the old foreign key.
                ask_in_any_case(key, change, timestamp, headers)
                return
            new, old, newest = change
            if versioned and not newest:
                drop(OUT_OF_ORDER)
                return
            try:
                old_foreign = None if old is None else extract(key, old)
                foreign = None if new is None else extract(key, new)
                if old_foreign is None and foreign is None:
                    if new is not None:
                        drop(NULL_FOREIGN_KEY)
                    return
                digest = hash_of(new, headers)
                changed = (
                    old_foreign is not None
                    and foreign is not None
                    and encode(foreign, headers) != encode(old_foreign, headers)
                )
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if foreign is None:
                if new is not None:
                    drop(NULL_FOREIGN_KEY)
                message = subscription_of((digest, _FORGET_AND_ANSWER, key, partition, SUBSCRIPTION_VERSION))
                forward(old_foreign, message, timestamp, headers)
                return
            if changed:
                forward(
                    old_foreign,
                    subscription_of((digest, _FORGET, key, partition, SUBSCRIPTION_VERSION)),
                    timestamp,
                    headers,
                )
            instruction = _ANSWER if changed else _ANSWER_IF_THERE
            forward(
                foreign,
                subscription_of((digest, instruction, key, partition, SUBSCRIPTION_VERSION)),
                timestamp,
                headers,
            )

        return process

    def _ask(self, context: OperatorContext) -> Callable[[K, V, int, Headers], bool]:
        """Makes the callable that asks once more for the result of a left row as it is now."""
        extract, _, hash_of = self._parts(context)
        partition, forward = context.processing.task_id.partition, context.forward

        def ask(key: K, value: V, timestamp: int, headers: Headers) -> bool:
            foreign = extract(key, value)
            if foreign is None:
                return False
            message = subscription_of((hash_of(value, headers), _ANSWER, key, partition, SUBSCRIPTION_VERSION))
            forward(foreign, message, timestamp, headers)
            return True

        return ask

    def _left(self, context: OperatorContext) -> Process:
        extract, encode, hash_of = self._parts(context)
        partition, versioned = context.processing.task_id.partition, self.versioned
        forward, fail, drop, current = context.forward, context.fail, context.drop, context.current

        def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
            new, old, newest = change
            if versioned and not newest:
                drop(OUT_OF_ORDER)
                return
            if new is None and old is None and not current.replayed:
                return
            try:
                old_foreign = None if old is None else extract(key, old)
                foreign = None if new is None else extract(key, new)
                changed = old_foreign is not None and encode(foreign, headers) != encode(old_foreign, headers)
                digest = hash_of(new, headers)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if changed:
                forward(
                    old_foreign,
                    subscription_of((digest, _FORGET, key, partition, SUBSCRIPTION_VERSION)),
                    timestamp,
                    headers,
                )
            # Without a foreign key, too: the answer that there is no right row makes the result, or deletes it.
            forward(
                foreign, subscription_of((digest, _ANSWER, key, partition, SUBSCRIPTION_VERSION)), timestamp, headers
            )

        return process

    def _parts(self, context: OperatorContext) -> tuple[Callable[[K, V], object], Encoder, HashOf]:
        return self.extractor, self.serdes.encode_foreign_key(context), self.serdes.hash_of_left(context)


@dataclass(frozen=True, slots=True)
class SubscriptionReceive:
    """Keeps a subscription in the store, or takes it away, and forwards it (``SubscriptionReceiveProcessorSupplier``,
    4.3.1).

    One without foreign key is not kept; it is dropped unless an answer is wanted in any case.
    """

    store: str
    serdes: ForeignKeySerdes

    def build(self, context: OperatorContext) -> Process:
        put = subscription_rows(context, self.store).put_subscription
        row_of = self._as_read(context) if self._may_keep_what_was_read(context) else self._serialized(context)
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(foreign: object, message: _Message, timestamp: int, headers: Headers) -> None:
            try:
                instruction = message[1]
                if foreign is not None:
                    key, value = row_of(foreign, message, headers)
                    forgotten = instruction is _FORGET or instruction is _FORGET_AND_ANSWER
                    put(key, None if forgotten else value, timestamp, headers)
                elif instruction is not _ANSWER:
                    drop(NULL_FOREIGN_KEY)
                    return
            except Exception as error:
                fail(error, foreign, message, timestamp, headers)
                return
            forward(foreign, message, timestamp, headers)

        return process

    def _serialized(self, context: OperatorContext) -> _RowOf:
        encode_key = self.serdes.encode_subscription_key(context)
        encode = self.serdes.encode_subscription(context)

        def row_of(foreign: object, message: _Message, headers: Headers) -> tuple[bytes, bytes]:
            return encode_key((foreign, message[2]), headers), cast("bytes", encode(message, headers))

        return row_of

    def _may_keep_what_was_read(self, context: OperatorContext) -> bool:
        """Whether the bytes of the topic are those that would be written to the store, whatever topic serdes get."""
        foreign_key, primary_key = self.serdes.foreign_key_serde(context), self.serdes.primary_key_serde(context)
        return (
            context.gets_what_was_read
            and write_same_bytes(foreign_key, foreign_key)
            and write_same_bytes(primary_key, primary_key)
        )

    def _as_read(self, context: OperatorContext) -> _RowOf:
        current = context.current

        def row_of(foreign: object, message: _Message, headers: Headers) -> tuple[bytes, bytes]:
            read = cast("RawContext", current.raw)[0]
            value = read.value()
            return combined_key_bytes(read.key(), primary_key_bytes(value)), value

        return row_of


@dataclass(frozen=True, slots=True)
class SubscriptionJoin(Generic[KO, VO]):
    """Answers a subscription with the right row as it is now, with the larger timestamp of the two
    (``SubscriptionJoinProcessorSupplier``, 4.3.1).
    """

    right: TableView[KO, VO]
    serdes: ForeignKeySerdes

    def build(self, context: OperatorContext) -> Process:
        answers = serialized_answers(self.serdes, context)
        if answers is not None:
            foreign_key = self.serdes.foreign_key_serde(context)
            kept = serialized_rows(self.right.as_forwarded(), context, foreign_key, answers.value_serde)
            if kept is not None:
                return self._in_bytes(kept.read, answers.answer, context)
        return self._with_values(context)

    def _with_values(self, context: OperatorContext) -> Process:
        # What a cache holds back is told to all subscriptions when it is flushed, unless it is gone again by then.
        read = self.right.as_forwarded().build(context)
        current, fail = context.current, context.fail
        forward = current.following(context.forward)

        def process(foreign: KO | None, message: _Message, timestamp: int, headers: Headers) -> None:
            digest, instruction, key, partition, _ = message
            try:  # also where nothing will be answered: functions of the user may compute the row
                row = None if foreign is None else read(foreign)
            except Exception as error:
                fail(error, foreign, message, timestamp, headers)
                return
            if instruction is _FORGET or (row is None and instruction is _ANSWER_IF_THERE and not current.replayed):
                return
            value, time = (None, timestamp) if row is None else row
            if instruction is _FORGET_AND_ANSWER:
                value = None
            answer = response_of((digest, value, partition))
            forward(key, answer, time if time > timestamp else timestamp, headers)

        return process

    def _in_bytes(
        self, read: Callable[[bytes], tuple[bytes, int] | None], answer: Answer, context: OperatorContext
    ) -> Process:
        encode_foreign_key = self.serdes.encode_foreign_key(context)
        encode_primary_key = self.serdes.encode_primary_key(context)
        current, fail = context.current, context.fail

        def process(foreign: object, message: _Message, timestamp: int, headers: Headers) -> None:
            digest, instruction, key, partition, _ = message
            try:
                row = None if foreign is None else read(cast("bytes", encode_foreign_key(foreign, headers)))
                primary_key = cast("bytes", encode_primary_key(key, headers))
            except Exception as error:
                fail(error, foreign, message, timestamp, headers)
                return
            if instruction is _FORGET or (row is None and instruction is _ANSWER_IF_THERE and not current.replayed):
                return
            value, time = (b"", timestamp) if row is None else row
            if instruction is _FORGET_AND_ANSWER:
                value = b""
            answer(primary_key, digest, value, time if time > timestamp else timestamp, headers, partition)

        return process

"""Foreign-key join, from the right row to the left ones: a changed right row goes to all that have subscribed.

Whether rows of the right table lie where subscriptions to them arrive shows only with the first rows: their keys may be
written otherwise than the join writes foreign keys, or by another partitioner; so ``RightRowCheck`` looks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias

from pykstreams.core.errors import StreamsError
from pykstreams.core.processor import OperatorContext
from pykstreams.core.shown_values import shown
from pykstreams.core.types import AnyPartitioner, Change, Headers
from pykstreams.core.windows import Windowed
from pykstreams.processors.drop_reasons import NULL_KEY_OF_ROW_TO_JOIN, OUT_OF_ORDER
from pykstreams.processors.foreign_keys.foreign_key_serdes import ForeignKeySerdes
from pykstreams.processors.foreign_keys.row_place_check import row_place_check
from pykstreams.processors.foreign_keys.serialized_answers import SerializedAnswers, serialized_answers
from pykstreams.processors.process import Process
from pykstreams.processors.stores import subscription_rows
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.subscription import response_of, subscription_source
from pykstreams.state.interfaces.engine import Row

log = logging.getLogger(__name__)

_COMPOSED: Final = (Windowed, CombinedKey)

_Respond: TypeAlias = Callable[[Iterator[Row], int, object, Change[object], int, Headers], None]
"""(subscriptions, how many bytes of their keys are the foreign key, key, change, timestamp, headers)"""

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands in text for bytes that were none."""


class _Message(Protocol):
    """The message of a row of the right table, as it was read."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class RightRowCheck:
    """The facts about the right table's rows: the topics that they are read from under their own keys, as the script
    names them, and the user's partitioner of subscriptions, ``None`` for the default one.
    """

    topics: frozenset[str]
    partitioner: AnyPartitioner | None = None


@dataclass(frozen=True, slots=True)
class ForeignTableJoin:
    """Answers all subscriptions to the key of a changed right row with its new value; a change of a ``versioned`` table
    that is older than the newest one of its row is dropped (``ForeignTableJoinProcessorSupplier``, 4.3.1).
    """

    store: str
    serdes: ForeignKeySerdes
    check: RightRowCheck
    versioned: bool = False

    reads_messages: ClassVar[bool] = True

    def build(self, context: OperatorContext) -> Process:
        answers = serialized_answers(self.serdes, context)
        respond = self._with_values(context)
        if answers is not None:
            respond = self._in_bytes(answers, context, respond)
        subscriptions = subscription_rows(context, self.store).subscriptions
        encode_prefix = self.serdes.encode_prefix(context)
        check: Callable[[object, bytes], bool] | None = _checking(self.check, self.serdes, context)
        fail, drop, versioned = context.fail, context.drop, self.versioned

        def process(key: object, change: Change[object], timestamp: int, headers: Headers) -> None:
            nonlocal check
            if key is None:
                drop(NULL_KEY_OF_ROW_TO_JOIN)
                return
            if versioned and not change[2]:
                drop(OUT_OF_ORDER)
                return
            try:
                prefix = encode_prefix(key, headers)
                if check is not None and not check(key, prefix[4:]):
                    check = None
                found = subscriptions(prefix)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            respond(found, len(prefix), key, change, timestamp, headers)

        return process

    def _with_values(self, context: OperatorContext) -> _Respond:
        decode_key, forward, fail = self.serdes.decode_primary_key(context), context.forward, context.fail

        def respond(
            found: Iterator[Row], start: int, key: object, change: Change[object], timestamp: int, headers: Headers
        ) -> None:
            new = change[0]
            while True:
                try:
                    row = next(found, None)
                    if row is None:
                        return
                    digest, partition = subscription_source(row[1])
                    subscriber = decode_key(row[0][start:], headers)
                except Exception as error:
                    fail(error, key, change, timestamp, headers)
                    return
                forward(subscriber, response_of((digest, new, partition)), timestamp, headers)

        return respond

    def _in_bytes(self, answers: SerializedAnswers, context: OperatorContext, slowly: _Respond) -> _Respond:
        """Serializes the new value once for all who have subscribed; ``slowly`` tells where it cannot be."""
        answer, encode_value, fail = answers.answer, answers.encode_value, context.fail

        def respond(
            found: Iterator[Row], start: int, key: object, change: Change[object], timestamp: int, headers: Headers
        ) -> None:
            try:
                value = encode_value(change[0], headers) or b""
            except Exception:
                value = None  # the error is left here, or it would show as the context of the next
            if value is None:
                slowly(found, start, key, change, timestamp, headers)
                return
            while True:
                try:
                    row = next(found, None)
                    if row is None:
                        return
                    digest, partition = subscription_source(row[1])
                except Exception as error:
                    fail(error, key, change, timestamp, headers)
                    return
                answer(row[0][start:], digest, value, timestamp, headers, partition)

        return respond


def _checking(
    known: RightRowCheck, serdes: ForeignKeySerdes, context: OperatorContext
) -> Callable[[object, bytes], bool] | None:
    """Makes the check of a right row, (key, the key as foreign key in bytes) -> whether to look at the next one, too.

    Only the first row is compared byte by byte; rows are compared by partition until one is found in another. A key
    that was malformed text is skipped: no serde writes it as it was.
    """
    if not known.topics:
        return None
    owner = context.processing.application_id
    topic = f"{owner}-{serdes.topic}"
    topics = known.topics | {f"{owner}-{name}" for name in known.topics}
    partitioner, default_partition = known.partitioner, context.default_partition
    first = True

    def choose(row: tuple[object, bytes, _Message], count: int) -> object:
        key, as_foreign_key, _ = row
        chosen = None if partitioner is None else partitioner(topic, key, None, count)
        return default_partition(as_foreign_key, count) if chosen is None else chosen

    def warn(row: tuple[object, bytes, _Message], chosen: object) -> None:
        key, _, message = row
        _warn_of_partition(context, topic, key, message, chosen)

    lies_there = row_place_check(context, topic, choose, warn)

    def check(key: object, as_foreign_key: bytes) -> bool:
        nonlocal first
        raw = context.current.raw
        if raw is None or raw[0] is None or isinstance(key, _COMPOSED) or raw[0].topic() not in topics:
            return True
        if isinstance(key, str) and _REPLACEMENT in key:
            return True
        if first:
            first = False
            if partitioner is None and raw[0].key() != as_foreign_key:
                raise _unequal_serdes(context, serdes, key, raw[0], as_foreign_key)
        return lies_there((key, as_foreign_key, raw[0]))

    return check


def _unequal_serdes(
    context: OperatorContext, serdes: ForeignKeySerdes, key: object, message: _Message, as_foreign_key: bytes
) -> StreamsError:
    return StreamsError(
        f"{context.node}: the key {shown(key)} of a row of the right table is written as {shown(message.key())} in "
        f"topic {message.topic()!r} (partition {message.partition()}, offset {message.offset()}), and as "
        f"{shown(as_foreign_key)} where left rows subscribe to it (topic {serdes.topic!r}), so the two would not meet; "
        "give the right table the key serde by which its topic is written, or set TableJoined(other_partitioner=...) "
        "to what chooses the partitions of its topic",
        task_id=context.processing.task_id,
    )


def _warn_of_partition(context: OperatorContext, topic: str, key: object, message: _Message, chosen: object) -> None:
    log.warning(
        "%s: the row %s of the right table is in partition %s of topic %r, but left rows subscribe to it in partition "
        "%s of topic %r, so it joins nothing; set TableJoined(other_partitioner=...) to what chooses the partitions of "
        "%r, or let that topic be written by Kafka's default partitioner",
        context.node,
        shown(key),
        message.partition(),
        message.topic(),
        chosen,
        topic,
        message.topic(),
    )

"""Operators without state: filter, map, flat map, peek, branch.

Each one is a frozen description; ``build`` gives the callable that runs per record. A user function runs
inside ``try``, and what it raises goes to ``context.fail`` with the record that the operator got; ``forward``
is called outside of it. Invariant: a record is forwarded with the timestamp and the headers it came with.

Behaviour is that of Kafka Streams 4.3.1, classes ``KStreamFilter``, ``KStreamMap``, ``KStreamMapValues``,
``KStreamFlatMap``, ``KStreamFlatMapValues``, ``KStreamPeek``, ``ForeachProcessor``, ``PassThrough``,
``KStreamBranch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import ForeachAction, Headers, KeyValueMapper, Pairs, Predicate
from pykstreams.processors.process import FunctionContext, Process
from pykstreams.processors.user_functions import (
    NO_PAIR,
    NOT_SEVERAL,
    UNAWAITED,
    not_a_decision,
    not_a_pair,
    not_iterable,
    refuse_unawaited,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Filter(Generic[K, V]):
    """Forwards the records for which the predicate holds, or with ``negate`` those for which it does not.

    Any true or false value will do as the predicate's result (``KStreamFilter.process``, 4.3.1), but for a coroutine,
    which is always true and never meant.
    """

    predicate: Predicate[K, V]
    negate: bool = False

    def build(self, context: FunctionContext) -> Process:
        predicate, forward, fail = self.predicate, context.forward, context.fail

        def keep(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                kept = predicate(key, value)
                if not kept:
                    return
                if kept is not True and type(kept) in UNAWAITED:
                    raise not_a_decision(predicate, kept)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, value, timestamp, headers)

        def drop(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                dropped = predicate(key, value)
                if dropped:
                    if dropped is not True and type(dropped) in UNAWAITED:
                        raise not_a_decision(predicate, dropped)
                    return
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, value, timestamp, headers)

        return drop if self.negate else keep


@dataclass(frozen=True, slots=True)
class FilterNothing:
    """A filter that every record passes. As behind other filters, and unlike behind ``PassThrough``, what a sink below
    has sent is not sent for the children above (``KStreamImpl.createRepartitionedSource``, 4.3.1).
    """

    def build(self, context: OperatorContext) -> Process:
        return context.forward


@dataclass(frozen=True, slots=True)
class Map(Generic[K, V]):
    """Replaces key and value of every record; ``mapper(key, value)`` returns them as a pair.

    Anything else than a pair, ``None`` and text of two characters included, is an error of this node
    (``KStreamMap.process``, 4.3.1).
    """

    mapper: KeyValueMapper[K, V, tuple[object, object]]

    def build(self, context: FunctionContext) -> Process:
        mapper, forward, fail = self.mapper, context.forward, context.fail

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                pair = mapper(key, value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            try:
                new_key, new_value = pair
            except (TypeError, ValueError):
                fail(not_a_pair(mapper, pair), key, value, timestamp, headers)
                return
            if type(pair) is not tuple and isinstance(pair, NO_PAIR):
                fail(not_a_pair(mapper, pair), key, value, timestamp, headers)
                return
            forward(new_key, new_value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class SelectKey(Generic[K, V]):
    """Replaces the key of every record by ``mapper(key, value)``; the value stays (``KStreamImpl.selectKey``,
    4.3.1)."""

    mapper: KeyValueMapper[K, V, object]

    def build(self, context: FunctionContext) -> Process:
        mapper, forward, fail = self.mapper, context.forward, context.fail

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                new_key = mapper(key, value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(new_key, value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class MapValues:
    """Replaces the value of every record by ``mapper(value)``, or ``mapper(key, value)`` with ``with_key``.

    Null values are mapped like any other (``KStreamMapValues.process``, 4.3.1).
    """

    mapper: Callable[..., object]
    with_key: bool = False

    def build(self, context: FunctionContext) -> Process:
        mapper, forward, fail = self.mapper, context.forward, context.fail

        def by_value(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                new_value = mapper(value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, new_value, timestamp, headers)

        def by_key_and_value(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                new_value = mapper(key, value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, new_value, timestamp, headers)

        return by_key_and_value if self.with_key else by_value


@dataclass(frozen=True, slots=True)
class FlatMap(Generic[K, V]):
    """Turns each record into any number of records; ``mapper(key, value)`` returns an iterable of pairs.

    A generator function works. What it yields is collected before the first record is forwarded, so that a
    function which raises half-way has no output. ``None`` is an error of this node, and so is an entry that is no pair;
    those before it have gone on by then (``KStreamFlatMap.process``, 4.3.1), except with ``all_or_nothing``, for a
    function that may be called again for the same record.
    """

    mapper: KeyValueMapper[K, V, Pairs[object, object]]
    all_or_nothing: bool = False

    def build(self, context: FunctionContext) -> Process:
        mapper, forward, fail = self.mapper, context.forward, context.fail

        def unpacked(pairs: Pairs[object, object]) -> Iterator[tuple[object, object]]:
            for pair in pairs:
                try:
                    new_key, new_value = pair
                except (TypeError, ValueError):
                    raise not_a_pair(mapper, pair) from None
                if type(pair) is not tuple and isinstance(pair, NO_PAIR):
                    raise not_a_pair(mapper, pair)
                yield new_key, new_value

        def all_or_nothing(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                pairs = mapper(key, value)
                if type(pairs) is not list and isinstance(pairs, NOT_SEVERAL):
                    raise not_iterable(mapper, pairs, "pairs (key, value)")
                results = [*unpacked(pairs)]
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            for new_key, new_value in results:
                forward(new_key, new_value, timestamp, headers)

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                pairs = mapper(key, value)
                if type(pairs) is not list and isinstance(pairs, NOT_SEVERAL):
                    raise not_iterable(mapper, pairs, "pairs (key, value)")
                results = [*pairs]
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            for pair in results:
                try:
                    new_key, new_value = pair
                except (TypeError, ValueError):
                    fail(not_a_pair(mapper, pair), key, value, timestamp, headers)
                    return
                if type(pair) is not tuple and isinstance(pair, NO_PAIR):
                    fail(not_a_pair(mapper, pair), key, value, timestamp, headers)
                    return
                forward(new_key, new_value, timestamp, headers)

        return all_or_nothing if self.all_or_nothing else process


@dataclass(frozen=True, slots=True)
class FlatMapValues:
    """Turns each record into any number of records with the same key.

    ``mapper(value)``, or ``mapper(key, value)`` with ``with_key``, returns an iterable of values, collected
    as in ``FlatMap``. ``None`` is an error of this node (``KStreamFlatMapValues.process``, 4.3.1), and so is text, of
    which the characters would be the values.
    """

    mapper: Callable[..., Iterable[object]]
    with_key: bool = False

    def build(self, context: FunctionContext) -> Process:
        mapper, forward, fail = self.mapper, context.forward, context.fail

        def by_value(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                values = mapper(value)
                if type(values) is not list and isinstance(values, NOT_SEVERAL):
                    raise not_iterable(mapper, values, "values")
                results = [*values]
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            for new_value in results:
                forward(key, new_value, timestamp, headers)

        def by_key_and_value(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                values = mapper(key, value)
                if type(values) is not list and isinstance(values, NOT_SEVERAL):
                    raise not_iterable(mapper, values, "values")
                results = [*values]
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            for new_value in results:
                forward(key, new_value, timestamp, headers)

        return by_key_and_value if self.with_key else by_value


@dataclass(frozen=True, slots=True)
class Peek(Generic[K, V]):
    """Calls ``action(key, value)`` and hands the record on (``KStreamPeek.process``, 4.3.1)."""

    action: ForeachAction[K, V]

    def build(self, context: FunctionContext) -> Process:
        action, forward, fail = self.action, context.forward, context.fail

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                result = action(key, value)
                if result is not None:
                    refuse_unawaited(action, result)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class ForEach(Generic[K, V]):
    """Calls ``action(key, value)``; the record ends here (``ForeachProcessor.process``, 4.3.1)."""

    action: ForeachAction[K, V]

    def build(self, context: FunctionContext) -> Process:
        action, fail = self.action, context.fail

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                result = action(key, value)
                if result is not None:
                    refuse_unawaited(action, result)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class PassThrough:
    """A node that only has a name, as merges and branches; records never see it (``PassThrough``, 4.3.1)."""

    forwards_input: ClassVar = True

    def build(self, context: OperatorContext) -> Process:
        return context.forward


@dataclass(frozen=True, slots=True)
class Branch(Generic[K, V]):
    """Hands each record to the child that belongs to the first predicate that holds.

    ``children`` stand beside ``predicates``; ``None`` in place of the last predicate makes its child the
    default. A record for which nothing holds, or whose child is ``None``, ends here, and does not count as
    dropped (``KStreamBranch.process``, 4.3.1). Raises ``ValueError`` where the two do not fit together.
    """

    predicates: tuple[Predicate[K, V] | None, ...]
    children: tuple[str | None, ...]
    forwards_input: ClassVar = True

    def __post_init__(self) -> None:
        if len(self.predicates) != len(self.children):
            raise ValueError(
                f"{len(self.predicates)} predicates and {len(self.children)} children; each predicate needs its child"
            )
        if None in self.predicates[:-1]:
            raise ValueError(f"predicates are {self.predicates!r}; only the last may be None, the default branch")

    def build(self, context: OperatorContext) -> Process:
        fail = context.fail
        targets = [None if name is None else context.children[name] for name in self.children]
        branches = [
            (predicate, target)
            for predicate, target in zip(self.predicates, targets, strict=True)
            if predicate is not None
        ]
        default = targets[-1] if len(branches) < len(targets) else None

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                for predicate, child in branches:
                    chosen = predicate(key, value)
                    if chosen:
                        if chosen is not True and type(chosen) in UNAWAITED:
                            raise not_a_decision(predicate, chosen)
                        target = child
                        break
                else:
                    target = default
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if target is not None:
                target(key, value, timestamp, headers)

        return process

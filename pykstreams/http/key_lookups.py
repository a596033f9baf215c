"""Reads of single keys, many at a time, which wait for no batch of records.

Those of one message from the server's process that are for one task are one read at its gate: what is the same for all
of them, the open store, its position and where it is, is looked for once. A worker that is asked all the time pays for
each question with records (decision 0048), so this is the short way only, for what a task here has or lacks; whatever
it cannot answer, and every error, goes the other way, which tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import orjson

from pykstreams.core.types import AnyPartitioner
from pykstreams.http.asked_keys import AskedKey
from pykstreams.http.exchange import HttpAnswer, json_answer
from pykstreams.http.local_answers import Source, offsets_of
from pykstreams.http.placing import placing_of
from pykstreams.http.problems import no_such_key
from pykstreams.http.questions import KeyQuestion, ShortQuestion, VersionQuestion, body_of
from pykstreams.runtime.queries.catalog import HeldPartition, StoreDescription
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.state.store_kinds import StoreKind


class Replies(Protocol):
    """Where answers go; each question gets one, or is left to the other way. All in any thread."""

    def take(self, number: int, answer: HttpAnswer) -> None:
        """Takes the answer to the question of this number."""
        ...

    def otherwise(self, number: int) -> None:
        """Has the question answered in the other way, which waits."""
        ...

    def send(self) -> None:
        """Sends the answers that were taken; called after some came in the thread of the worker."""
        ...


class _Placed(NamedTuple):
    """A question whose partition is known."""

    number: int
    asked: AskedKey
    question: ShortQuestion


@dataclass(frozen=True, slots=True)
class _Store:
    """A store that is asked, and how the texts of its keys become keys and partitions."""

    description: StoreDescription
    key_of_text: Callable[[str], object]
    partition_of: Callable[[object], int | None]


class KeyLookups:
    """Looks keys up in stores whose tasks run in this process.

    :param host: this instance, as sources name it.
    :param partitioners: see ``placing_of``.
    """

    def __init__(self, queries: LocalQueries, host: str, partitioners: Mapping[str, AnyPartitioner]) -> None:
        self._queries = queries
        self._host = host
        self._partitioners = partitioners
        self._stores: dict[str, _Store] = {}

    def begin(self, name: str, asked: Sequence[tuple[int, AskedKey]], replies: Replies) -> None:
        """Looks some keys of one store up, and does not wait."""
        by_partition: dict[int, list[_Placed]] = {}
        for number, one in asked:
            try:
                store = self._stores.get(name) or self._prepared(name)
                key = store.key_of_text(one.text)
                question = _question(store.description, key, one.as_of)
                partition = store.partition_of(key)
            except Exception:  # the other way meets it, too, and tells
                partition = None
            if partition is None:
                replies.otherwise(number)
            else:
                by_partition.setdefault(partition, []).append(_Placed(number, one, question))
        for partition, some in by_partition.items():
            held = self._running(name, partition)
            if held is None or not held.store.soon(self._reading(held, some, replies), replies.send, len(some)):
                for number, _, _ in some:
                    replies.otherwise(number)

    def _reading(self, held: HeldPartition, placed: Sequence[_Placed], replies: Replies) -> Callable[[], None]:
        def read() -> None:  # lets no error out: it would end the worker
            try:
                view = held.store.view()
                offsets = offsets_of(view.position)
                source = Source(held.partition, self._host, held.role.value, offsets).as_json()
                rest = b',"from":' + orjson.dumps(source) + b"}"
            except Exception:
                for number, _, _ in placed:
                    replies.otherwise(number)
                return
            for number, asked, question in placed:
                try:
                    row = question.shown(view)
                    if row is None:
                        problem = no_such_key(asked.store, asked.text, [source])
                        answer = problem.answer(asked.path)
                    else:
                        answer = json_answer(body_of(question.store, row)[:-1] + rest)
                except Exception:
                    replies.otherwise(number)
                else:
                    replies.take(number, answer)

        return read

    def _running(self, name: str, partition: int) -> HeldPartition | None:
        try:
            return self._queries.running(name, partition)
        except Exception:  # the application does not run: the other way tells
            return None

    def _prepared(self, name: str) -> _Store:
        self._queries.check_name(name)
        description = self._queries.descriptions()[name]
        if description.key_of_text is None:
            raise LookupError(f"keys of store {name!r} cannot be read")
        placing = placing_of(description, self._partitioners)
        place, key_of = self._queries.placer(name, placing.serializer, placing.partitioner), placing.key_of
        made = _Store(description, description.key_of_text, lambda key: place(key_of(key)))
        self._stores[name] = made
        return made


def _question(store: StoreDescription, key: object, as_of: int | None) -> ShortQuestion:
    if store.kind is StoreKind.VERSIONED:
        return VersionQuestion(store, key, as_of)
    if store.kind is StoreKind.KEY_VALUE and as_of is None:
        return KeyQuestion(store, key)
    raise LookupError(f"store {store.name!r} is not asked so")

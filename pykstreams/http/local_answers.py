"""Answers of the partitions that are in this process: rows up to a limit, how current they are, and where to go on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.http.problems import ProblemError, shown
from pykstreams.http.questions import Question, Row, ShortQuestion
from pykstreams.http.staleness import Staleness
from pykstreams.runtime.queries.catalog import HeldPartition, Role
from pykstreams.runtime.queries.metadata import NO_PARTITION
from pykstreams.state.interfaces.position import Position, PositionBound, is_permitted

_SAME_ROWS: Final = frozenset({"cursor", "limit", "partition", "position", "scope", "stale"})
"""Parameters that may change from page to page: how many rows, and who is asked for them."""

_USUAL_ORDER: Final = ("order", "asc")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an answer goes on: after a row of a partition.

    :param of: tells the question, see ``mark_of_question``; the rows of another one lie otherwise.
    """

    partition: int
    mark: str
    of: str

    @classmethod
    def parse(cls, text: str, of: str) -> Cursor:
        """Reads what ``str`` gave for the same question; a ``ProblemError`` for anything else."""
        try:
            partition, mark, asked = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            if type(partition) is not int or partition < NO_PARTITION or not isinstance(mark, str):
                raise ValueError(f"[{partition!r}, {mark!r}] is no row")
        except (ValueError, TypeError) as error:
            raise ProblemError(
                "bad-request",
                f"{shown(text)!r} is no cursor of this release; take the 'next' of an answer as it is, or begin again "
                "without it",
            ) from error
        if asked != of:
            raise ProblemError(
                "bad-request",
                f"the cursor {shown(text)!r} is that of another question; repeat all its other parameters",
            )
        return cls(partition, mark, of)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(orjson.dumps([self.partition, self.mark, self.of])).decode().rstrip("=")


def mark_of_question(path: str, query: Mapping[str, str]) -> str:
    """A short text that tells questions apart whose rows differ, or have another order; for cursors."""
    told = [path, *(item for item in sorted(query.items()) if item[0] not in _SAME_ROWS and item != _USUAL_ORDER)]
    return hashlib.blake2s(orjson.dumps(told), digest_size=6).hexdigest()


@dataclass(slots=True)
class Source:
    """Where the rows of a partition are from, and how current they are; a value, never changed.

    :param offset_lag: changelog offsets that are missing; ``None`` for a task that runs.
    :param stale_ms: since when at most they have been missing; ``None`` where that is not known.
    """

    partition: int
    host: str
    role: str
    position: Mapping[str, Mapping[str, int]]
    offset_lag: int | None = None
    stale_ms: int | None = None

    def as_json(self) -> dict[str, object]:
        """The object in an answer."""
        found: dict[str, object] = {"partition": self.partition, "host": self.host, "role": self.role}
        if self.role not in (Role.ACTIVE.value, Role.GLOBAL.value):
            found |= {"offset_lag": self.offset_lag, "stale_ms": self.stale_ms}
        return found | {"position": self.position}


@dataclass(slots=True)
class Part:
    """The answer of one partition."""

    source: Source
    rows: list[Row] = field(default_factory=list)
    more: bool = False
    """Whether it has rows after these."""

    @property
    def size(self) -> int:
        """The bytes of its rows."""
        return sum(len(row.body) for row in self.rows)


def answer_of(
    held: HeldPartition,
    question: Question,
    *,
    host: str,
    after: str | None,
    limit: int,
    most_bytes: int,
    bound: PositionBound,
    stale: int | None,
    staleness: Staleness,
    in_time: Callable[[object], None],
) -> Part:
    """Reads one partition; a ``ProblemError`` when it may not be read so, or has not come far enough.

    :param stale: how old it may be in ms if its task does not run here; 0 refuses, ``None`` allows everything.
    :param in_time: raises where nobody waits for the answer any more.
    """
    source = _source(held, host, stale, staleness, question.store.name)
    local = held.store.checked(in_time)

    def rows() -> Part:
        read = local if held.role in (Role.ACTIVE, Role.GLOBAL) else local.in_chunks()
        position = read.read(lambda store: store.position)
        _check_bound(position, bound, held.partition, question.store.name)
        part = Part(replace(source, position=offsets_of(position)))
        found = question.rows(read, after)
        _take(found, part, limit, most_bytes)
        return part

    if held.role in (Role.ACTIVE, Role.GLOBAL) and not isinstance(question, ShortQuestion):
        return rows()
    return local.turn(rows)  # a store that is no active one may be opened anew, so it is always read in one go


def _take(found: Iterator[Row], part: Part, limit: int, most_bytes: int) -> None:
    size = 0
    try:
        for row in found:
            if len(part.rows) >= limit or (part.rows and size + len(row.body) > most_bytes):
                part.more = True
                return
            part.rows.append(row)
            size += len(row.body)
    finally:
        close = getattr(found, "close", None)
        if close is not None:
            close()


def _source(held: HeldPartition, host: str, stale: int | None, staleness: Staleness, store: str) -> Source:
    role = held.role.value
    if held.role in (Role.ACTIVE, Role.GLOBAL):
        return Source(held.partition, host, role, {})
    where = f"partition {held.partition} of store {store!r} is {_PLACES[held.role]} on {host}"
    if stale == 0:
        raise ProblemError(
            "unavailable", f"{where}, and stale answers are refused; ask again, or with stale=allow or ms"
        )
    lag, age = staleness.of(store, held.partition)
    if stale is not None and (age is None or age > stale):
        told = "it is not known how far behind" if age is None else f"{age} ms behind"
        raise ProblemError("unavailable", f"{where}, {told}, and {stale} ms are allowed; ask again, or allow more")
    return Source(held.partition, host, role, {}, lag, age)


_PLACES: Final = {Role.STANDBY: "a standby", Role.RESTORING: "being restored"}


def offsets_of(position: Position) -> dict[str, dict[str, int]]:
    """A position as answers have it."""
    return {
        topic: {str(number): offset for number, offset in position.partition_positions(topic).items()}
        for topic in sorted(position.topics)
    }


def _check_bound(position: Position, bound: PositionBound, partition: int, store: str) -> None:
    if not is_permitted(position, bound, partition):
        raise ProblemError(
            "not-up-to-bound",
            f"partition {partition} of store {store!r} is at {position!r}, not yet up to {bound.position!r}; ask again",
        )


def bound_of(text: str | None) -> PositionBound:
    """Reads a position bound, which is JSON as in answers; a ``ProblemError`` for anything else."""
    if text is None:
        return PositionBound.UNBOUNDED
    try:
        position = Position()
        for topic, offsets in orjson.loads(text).items():
            for number, offset in offsets.items():
                position.with_component(str(topic), int(number), int(offset))
        return PositionBound.at(position)
    except (ValueError, AttributeError, TypeError) as error:
        raise ProblemError(
            "bad-request", f'position is {text!r}; write JSON as answers have it: {{"topic":{{"0":17}}}}'
        ) from error


def may_pass(error: BaseException) -> bool:
    """Whether a partition that failed so may be asked again, or elsewhere."""
    return isinstance(error, InvalidStateStoreError) or (isinstance(error, ProblemError) and error.status == 503)

"""Where the partitions of a question are answered: here, by the instance that has them, or by a copy.

Partitions whose task runs here are read here. All others are asked of the instance that the group names as their owner,
one request an instance. Where that fails, and the question allows stale answers, copies are asked: one that is here
first. A question that came from another instance is answered of what is here only, so that no question goes round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, takewhile
from typing import Final, cast
from urllib.parse import quote, urlencode

import orjson

from pykstreams.core.clock import Clock
from pykstreams.core.errors import SerializationError
from pykstreams.core.types import AnyPartitioner
from pykstreams.http.local_answers import Cursor, Part, Source, answer_of, mark_of_question, may_pass
from pykstreams.http.options import HttpOptions
from pykstreams.http.peers import Peers
from pykstreams.http.placing import placing_of
from pykstreams.http.pool import Pool
from pykstreams.http.problems import ProblemError, problem_of
from pykstreams.http.questions import Question, Row
from pykstreams.http.staleness import Staleness
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.queries.catalog import HeldPartition, Role
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.queries.metadata import NO_PARTITION, KeyQueryMetadata
from pykstreams.state.interfaces.position import PositionBound

_CURRENT: Final = (Role.ACTIVE, Role.GLOBAL)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a question is to be answered.

    :param path, query: of the request, as it is passed on to other instances.
    :param partitions: these only; ``None`` for all, or for that of the key.
    :param every: whether a key is looked for in all partitions.
    :param local: whether only what is here is asked.
    :param stale: how old answers of standby tasks may be in ms; 0 refuses them, ``None`` allows everything.
    """

    path: str
    query: Mapping[str, str]
    limit: int
    cursor: Cursor | None = None
    partitions: Collection[int] | None = None
    every: bool = False
    local: bool = False
    stale: int | None = 0
    bound: PositionBound = field(default_factory=lambda: PositionBound.UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of an answer with where they are from, and where it goes on."""

    parts: list[Part]
    next: Cursor | None

    @property
    def rows(self) -> list[Row]:
        """The rows of all partitions, one partition after the other."""
        return [row for part in self.parts for row in part.rows]


@dataclass(slots=True)
class _Begun:
    """The answer as far as the partitions here have it."""

    owners: dict[int, KeyQueryMetadata]
    until: float
    """When it is given up, by the clock that never goes back."""
    parts: dict[int, Part] = field(default_factory=dict)
    failed: dict[int, ProblemError] = field(default_factory=dict)
    elsewhere: dict[HostInfo, list[int]] = field(default_factory=dict)


class Routing:
    """Answers questions of all partitions of a store."""

    def __init__(
        self,
        queries: LocalQueries,
        options: HttpOptions,
        staleness: Staleness,
        partitioners: Mapping[str, AnyPartitioner],
        clock: Clock,
    ) -> None:
        self._queries = queries
        self._options = options
        self._staleness = staleness
        self._partitioners = partitioners
        self._clock = clock
        self.me = _text(queries.host)
        """This instance, as answers name it."""
        callers = 4 * options.readers
        self._peers = Peers(options, clock, most_late=callers // 2)
        self.readers = Pool("readers", options.readers, options.waiting)
        """Reads stores."""
        self.tellers = Pool("tellers", options.readers, options.waiting)
        """Answers questions about the application; apart from the readers, which a worker that hangs keeps waiting."""
        self.callers = Pool("callers", callers, options.waiting)
        """Calls other instances; apart from the readers, so that two instances never wait for each other."""

    async def answer(self, question: Question, asked: Asked) -> Answer:
        """Answers a question; a ``ProblemError`` when a partition that it needs has no answer."""
        until = self._clock.monotonic() + self._options.timeout_ms / 1000
        begun = await self.readers.run(partial(self._begin, question, asked, until))
        if begun.elsewhere:
            await asyncio.gather(*(self._ask(*one, asked, begun) for one in begun.elsewhere.items()))
        if begun.failed and not asked.local and asked.stale != 0:
            await asyncio.gather(*(self._ask_copies(one, question, asked, begun) for one in list(begun.failed)))
        return _merged(begun, asked, self._options.max_answer_bytes)

    async def ask(self, host: HostInfo, target: str) -> object:
        """The JSON that another instance answers to ``GET target``; a ``ProblemError`` when it does not."""
        return await self.callers.run(partial(self._peers.ask, host, target))

    def _begin(self, question: Question, asked: Asked, until: float) -> _Begun:
        name = question.store.name
        owners = self._wanted(question, asked)
        held = {one.partition: one for one in self._queries.held(name)}
        begun = _Begun(owners, until)
        left, room, me = asked.limit, self._options.max_answer_bytes, self._queries.host
        for number, owner in list(owners.items()):
            mine = held.get(number)
            elsewhere = owner.active_host not in (me, HostInfo.UNAVAILABLE)
            if mine is not None and (mine.role in _CURRENT or asked.local or not elsewhere):
                if left <= 0 or room <= 0:
                    continue
                self._read(mine, question, asked, left, begun, room)
                if (part := begun.parts.get(number)) is not None:
                    left = 0 if part.more else left - len(part.rows)
                    room -= part.size
            elif asked.local:
                if asked.partitions is not None or question.key is not None:
                    begun.failed[number] = _away(name, number, f"not on {self.me}")
                else:
                    del begun.owners[number]
            elif elsewhere:
                begun.elsewhere.setdefault(owner.active_host, []).append(number)
            elif owner.active_host == HostInfo.UNAVAILABLE:
                begun.failed[number] = _away(name, number, "on no instance that the group knows an address of")
            else:
                begun.failed[number] = _away(name, number, f"of {self.me}, which has not opened it yet")
        return begun

    def _wanted(self, question: Question, asked: Asked) -> dict[int, KeyQueryMetadata]:
        """The partitions that are asked, in order, with the instances that have them."""
        name = question.store.name
        wanted = None if asked.partitions is None else set(asked.partitions)
        if question.key is not None and wanted is None and not asked.every:
            placing = placing_of(question.store, self._partitioners)
            key = placing.key_of(question.key)
            try:
                found = self._queries.key_metadata(name, key, placing.serializer, placing.partitioner)
            except SerializationError as error:  # of the topic by which keys are placed, whose name is another one
                raise ProblemError("bad-key", str(error)) from error
            if found is KeyQueryMetadata.NOT_AVAILABLE:
                raise ProblemError("unavailable", "the application is starting, and knows of no tasks yet; ask again")
            if asked.cursor is None:
                return {found.partition: found}
            wanted = {found.partition}
        owners = self._queries.owners(name)
        if not owners:
            raise ProblemError("unavailable", "the application is starting, and knows of no tasks yet; ask again")
        begins = set() if asked.cursor is None else {asked.cursor.partition}
        unknown = sorted((begins | (wanted or set())) - owners.keys())
        if unknown:
            raise ProblemError("bad-request", f"store {name!r} has no partition {unknown[0]}; it has {sorted(owners)}")
        first = min(begins, default=NO_PARTITION)
        return {
            number: owner
            for number, owner in owners.items()
            if (wanted is None or number in wanted) and number >= first
        }

    def _read(
        self,
        held: HeldPartition,
        question: Question,
        asked: Asked,
        limit: int,
        begun: _Begun,
        most_bytes: int | None = None,
    ) -> None:
        number, cursor = held.partition, asked.cursor

        def in_time(store: object) -> None:
            if self._clock.monotonic() > begun.until:
                raise TimeoutError(f"{asked.path} was not answered in {self._options.timeout_ms} ms")

        try:
            begun.parts[number] = answer_of(
                held,
                question,
                host=self.me,
                after=cursor.mark if cursor is not None and cursor.partition == number else None,
                limit=limit,
                most_bytes=self._options.max_answer_bytes if most_bytes is None else most_bytes,
                bound=asked.bound,
                stale=asked.stale,
                staleness=self._staleness,
                in_time=in_time,
            )
        except Exception as error:
            if not may_pass(error):
                raise
            begun.failed[number] = problem_of(error, asked.path)
        else:
            begun.failed.pop(number, None)

    async def _ask(
        self, host: HostInfo, partitions: Iterable[int], asked: Asked, begun: _Begun, stale: str = "refuse"
    ) -> None:
        numbers = list(partitions)
        query = {name: text for name, text in asked.query.items() if name not in ("scope", "partition", "limit")}
        query |= {
            "scope": "parts",
            "stale": stale,
            "limit": str(asked.limit),
            "partition": ",".join(map(str, numbers)),
        }
        target = f"{quote(asked.path, safe='/')}?{urlencode(query)}"
        try:
            found = _parts_of(await self.callers.run(partial(self._peers.ask, host, target)), host, numbers)
        except ProblemError as problem:
            if problem.status not in (502, 503):
                raise
            begun.failed.update(dict.fromkeys(numbers, problem))
            return
        for part in found:
            begun.parts[part.source.partition] = part
            begun.failed.pop(part.source.partition, None)

    async def _ask_copies(self, number: int, question: Question, asked: Asked, begun: _Begun) -> None:
        mine = [one for one in self._queries.held(question.store.name) if one.partition == number]
        for held in mine:
            await self.readers.run(partial(self._read, held, question, asked, asked.limit, begun))
        stale = "allow" if asked.stale is None else str(asked.stale)
        for host in sorted(begun.owners[number].standby_hosts - {self._queries.host}, key=_text):
            if number not in begun.failed:
                return
            await self._ask(host, [number], asked, begun, stale)

    def close(self) -> None:
        """Lets no more questions in."""
        self.readers.close()
        self.tellers.close()
        self.callers.close()
        self._peers.close()


def _merged(begun: _Begun, asked: Asked, most_bytes: int) -> Answer:
    """The first rows in the order of partitions; partitions that were not read follow with the next answer.

    A row with more bytes than an answer may have is an answer of its own.
    """
    parts: list[Part] = []
    left, room, more = asked.limit, most_bytes, False
    last: tuple[int, str] | None = None
    for number in begun.owners:
        if more or (number not in begun.failed and number not in begun.parts):
            more = True
            break
        if left == 0:
            more = True
            break
        if number in begun.failed:
            raise _with_copies(begun.failed[number], number, begun.owners[number])
        part = begun.parts[number]
        rows = _fitting(part.rows[:left], room, or_one=last is None)
        if part.rows and not rows:
            more = True
            break
        kept = Part(part.source, rows, part.more or len(part.rows) > len(rows))
        parts.append(kept)
        left -= len(kept.rows)
        room -= kept.size
        more = kept.more
        last = (number, kept.rows[-1].mark) if kept.rows else last
    if not more or last is None:
        return Answer(parts, None)
    return Answer(parts, Cursor(*last, mark_of_question(asked.path, asked.query)))


def _fitting(rows: list[Row], most_bytes: int, *, or_one: bool) -> list[Row]:
    """The first rows that have so many bytes at most, or the first one alone."""
    ends = accumulate(len(row.body) for row in rows)
    fitting = sum(1 for _ in takewhile(lambda end: end <= most_bytes, ends))
    return rows[: max(fitting, int(or_one))]


def _with_copies(problem: ProblemError, number: int, owner: KeyQueryMetadata) -> ProblemError:
    copies = sorted(map(_text, owner.standby_hosts))
    return ProblemError(
        problem.kind, problem.detail, **{**problem.more, "partition": number, **({"copies": copies} if copies else {})}
    )


def _away(store: str, number: int, where: str) -> ProblemError:
    return ProblemError(
        "unavailable", f"partition {number} of store {store!r} is {where}; ask again, or another instance"
    )


def _text(host: HostInfo) -> str:
    return f"{host.host}:{host.port}"


def parts_json(answer: Answer) -> bytes:
    """The parts of an answer as another instance reads them."""
    return orjson.dumps(
        {
            "parts": [
                {
                    "from": part.source.as_json(),
                    "rows": [orjson.Fragment(row.body) for row in part.rows],
                    "marks": [row.mark for row in part.rows],
                    "more": part.more,
                }
                for part in answer.parts
            ]
        }
    )


def _parts_of(found: object, host: HostInfo, asked: list[int]) -> list[Part]:
    """Reads what ``parts_json`` wrote for some partitions: the last ones may be left for the next answer."""
    try:
        parts = [_part_of(one) for one in cast("dict[str, list[dict[str, object]]]", found)["parts"]]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ProblemError(
            "bad-peer",
            f"the instance at {_text(host)} answered what is no part of an answer; run the same release on all",
        ) from error
    told = [part.source.partition for part in parts]
    goes_on = any(part.rows for part in parts)  # after the last one, with the next answer
    if told != asked[: len(told)] or (len(told) < len(asked) and not goes_on):
        raise ProblemError(
            "bad-peer",
            f"the instance at {_text(host)} answered for partitions {told} when it was asked for {asked}, so rows "
            "would be missing; run the same release on all",
        )
    return parts


def _part_of(one: Mapping[str, object]) -> Part:
    told = cast("Mapping[str, object]", one["from"])
    source = Source(
        cast("int", told["partition"]),
        str(told["host"]),
        str(told["role"]),
        cast("Mapping[str, Mapping[str, int]]", told["position"]),
        cast("int | None", told.get("offset_lag")),
        cast("int | None", told.get("stale_ms")),
    )
    rows = zip(cast("list[str]", one["marks"]), cast("list[object]", one["rows"]), strict=True)
    return Part(source, [Row(mark, orjson.dumps(row)) for mark, row in rows], bool(one["more"]))

"""Rows in a database, each written once: the sink of ``KStream.to_sql``. Beyond Kafka Streams.

The polling thread makes rows and collects them by input record; ``sql_writer`` writes them on a thread of its own, in
one transaction with the offsets behind these records. What the database has already, by its offsets, is not written
again; so Kafka's commit may come later: the database is first, then Kafka.

Invariant: the task commits no offset in Kafka whose rows are not in the database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Duration, Headers, duration_ms
from pykstreams.core.user_code.calls import Call
from pykstreams.processors.backoff import Backoff
from pykstreams.processors.process import Process
from pykstreams.processors.sinks.effects import Effect, Outcome, Row, Transactions
from pykstreams.processors.sinks.sql_writer import SqlWriter

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Executable

    from pykstreams.processors.sinks.sql_transactions import SharedEngine

K = TypeVar("K")
V = TypeVar("V")

SqlStatement: TypeAlias = "str | Executable | Callable[[Connection, Sequence[Row]], object]"

_LONGEST_BACKOFF_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class SqlSink(Generic[K, V]):
    """A database, and how records become rows of it.

    :param engine: the URL of the database, or a function that makes an engine of SQLAlchemy; it is called once in a
        process, which disposes of the engine when no task needs it any more.
    :param statement: SQL with named parameters (``insert into orders values (:id, :amount)``), a statement of
        SQLAlchemy, or a function of (connection, rows), which may do what it likes but commit, roll back and close.
    :param row: gives the parameters for (key, value), or ``None`` where nothing is to be written.
    :param offsets_table: where the sink keeps its offsets; it is made if it is not there.
    :param batch_size: of how many input records one transaction has the rows at most.
    :param timeout: for how long a database that is away is asked again; ``None``: for ``task.timeout.ms``.
    :param call_timeout: how long a statement may take in the server (PostgreSQL).
    """

    engine: str | Callable[[], Engine] = field(repr=False)  # a URL may hold a password
    statement: SqlStatement
    row: Callable[[K, V], Row | None]
    offsets_table: str = "pykstreams_offsets"
    batch_size: int = 500
    timeout: Duration | None = None
    call_timeout: Duration = timedelta(seconds=30)
    _shared: SharedEngine = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            from pykstreams.processors.sinks.sql_transactions import SharedEngine, checked_url
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"a SqlSink needs SQLAlchemy, and {error.name!r} is not installed: pip install pykstreams[sql]",
                name=error.name,
            ) from error
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size!r}; at least one record must be in a transaction")
        if duration_ms(self.call_timeout, "call_timeout") < 1:
            raise ValueError(f"call_timeout is {self.call_timeout!r}; give at least 1 ms")
        if self.timeout is not None and duration_ms(self.timeout, "timeout") < 1:
            raise ValueError(f"timeout is {self.timeout!r}; give at least 1 ms, or None for task.timeout.ms")
        Call(("key", "value")).check("SqlSink", "row", self.row)
        if isinstance(self.engine, str):
            checked_url(self.engine)
        object.__setattr__(self, "_shared", SharedEngine(self.engine))

    def build(self, context: OperatorContext) -> Process:
        effects = _Effects(self, context)
        context.on_close(effects.close)
        return effects.accept

    def transactions(self, application_id: str, sink: str) -> Transactions:
        """Opens the database; each call needs its ``let_go``."""
        from pykstreams.processors.sinks.sql_transactions import SqlTransactions

        return SqlTransactions(
            self._shared.acquire(),
            self.statement,
            self.offsets_table,
            application_id=application_id,
            sink=sink,
            call_timeout_ms=duration_ms(self.call_timeout, "call_timeout"),
        )

    def let_go(self) -> None:
        """Closes the database for one who has opened it."""
        self._shared.release()


class _Effects(Generic[K, V]):
    """The rows that one task has collected here, and those that are being written.

    The processing thread owns all of it but ``_outcomes``, to which the writer's thread adds.
    """

    def __init__(self, sink: SqlSink[K, V], context: OperatorContext) -> None:
        self._sink = sink
        self._context = context
        self._current = context.current
        self._wake = context.finishes_later(self)
        self._waiting: deque[Effect] = deque()
        self._writing: list[Effect] = []
        self._outcomes: deque[Outcome] = deque()
        processing = context.processing
        config = context.config
        self._now_ms = processing.current_system_time_ms
        timeout_ms = config.task_timeout_ms if sink.timeout is None else duration_ms(sink.timeout, "timeout")
        # a claim or a transaction may be tried for the whole time, and the last call of it may take its own time
        self._overdue_ms = timeout_ms + 2 * duration_ms(sink.call_timeout, "call_timeout")
        self._writer = SqlWriter(
            f"{context.node} of task {processing.task_id}",
            lambda: sink.transactions(processing.application_id, context.node),
            sink.let_go,
            self._ended,
            now_ms=self._now_ms,
            timeout_ms=timeout_ms,
            backoff=Backoff(
                config.retry_backoff_ms,
                max(_LONGEST_BACKOFF_MS, config.retry_backoff_ms),
                2.0,
                0.2,
                processing.task_id.partition,
            ),
        )

    @property
    def unfinished(self) -> int:
        return len(self._waiting) + len(self._writing)

    @property
    def running(self) -> int:
        return 0 if self._outcomes else len(self._writing)

    @property
    def room(self) -> int:
        return 2 * self._sink.batch_size - self.unfinished

    @property
    def has_news(self) -> bool:
        if self._writing:
            return bool(self._outcomes) or self._is_overdue()
        return bool(self._waiting)

    def accept(self, key: K, value: V, timestamp: int, headers: Headers) -> None:
        """Takes a record; runs per record."""
        try:
            row = self._sink.row(key, value)
        except Exception as error:
            self._context.fail(error, key, value, timestamp, headers)
            return
        if row is None:
            return
        raw = self._current.raw
        if raw is None or raw[0] is None:
            raise StreamsError(
                f"{self._context.node} got a record that no input record has brought, so that it has no offset; put "
                ".repartition() above .to_sql()"
            )
        message = raw[0]
        place, offset = TopicPartition(message.topic(), message.partition()), message.offset()
        waiting = self._waiting
        if waiting and waiting[-1].offset == offset and waiting[-1].partition == place:
            waiting[-1].rows.append(row)
            return
        waiting.append(Effect(place, offset, key, value, timestamp, headers, raw, [row]))

    def forward_finished(self) -> None:
        """Follows what the writer says, and hands it the next batch; between two input records, so that the rows of
        each are whole.
        """
        if self._outcomes:
            self._conclude(self._outcomes.popleft())
        elif self._writing and self._is_overdue():
            raise StreamsError(
                f"{self._context.node}: a transaction has not ended within {self._overdue_ms} ms; the connection to "
                "the database may be dead: give the driver a timeout in the URL"
            )
        if self._waiting and not self._writing:
            count = min(len(self._waiting), self._sink.batch_size)
            self._writing = [self._waiting.popleft() for _ in range(count)]
            self._writer.write(self._writing)

    def close(self) -> None:
        """Ends the writing; what is not written was not committed, so whoever takes the task over does it again."""
        self._writer.close()

    def _is_overdue(self) -> bool:
        """Whether the database has left a claim or a transaction unanswered for too long; a batch may have many."""
        return self._now_ms() - self._writer.asking_since_ms > self._overdue_ms

    def _ended(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        self._wake()

    def _conclude(self, outcome: Outcome) -> None:
        batch, self._writing = self._writing, []
        left = batch[outcome.done :]
        error = outcome.error
        if error is not None and not outcome.blames_next:
            self._waiting.extendleft(reversed(left))
            raise error
        if error is not None:
            blamed = left.pop(0)
            self._waiting.extendleft(reversed(left))
            self._current.raw = blamed.raw
            self._context.fail(error, blamed.key, blamed.value, blamed.timestamp, blamed.headers)

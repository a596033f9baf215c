"""Transactions that write rows together with the offset behind the records they came from; the door to SQLAlchemy.

The table of offsets has one row for each application, sink and input partition::

    application_id | sink | input_topic | input_partition | next_offset | epoch

Whoever begins to write for a partition claims it: the epoch is raised by one. Every transaction moves the offset
only where epoch and offset are still those that its owner knows.

Invariant: the rows of a record are in the database exactly if its offset is below ``next_offset``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Integer,
    MetaData,
    String,
    Table,
    and_,
    create_engine,
    exc,
    inspect,
    make_url,
    text,
)

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.processors.sinks.effects import Claim, DatabaseAwayError, Row

log = logging.getLogger(__name__)

Statement: TypeAlias = str | Executable | Callable[[Connection, Sequence[Row]], object]

CONNECT_S: Final = 10
"""How long a new connection may take, where the driver lets itself be told."""

_PASSING_STATES: Final = frozenset({"25006", "55P03", "57014"})
"""A server that is read-only since it was replaced, a lock and a statement that took too long."""
_PASSING_CLASSES: Final = frozenset({"08", "40", "53", "57"})
"""No connection, rolled back (serialization, deadlock), no resources, and an operator's intervention."""
_PASSING_SQLITE: Final = frozenset({5, 6, 10, 13, 14})
"""Busy, locked, an error of the disk, a full disk, and a file that cannot be opened."""


class SqlTransactions:
    """The transactions of one sink and task; for one thread.

    :param call_timeout_ms: how long the server may work on a statement, where it lets itself be told (PostgreSQL).
    """

    def __init__(
        self,
        engine: Engine,
        statement: Statement,
        offsets_table: str,
        *,
        application_id: str,
        sink: str,
        call_timeout_ms: int,
    ) -> None:
        self._engine = engine
        self._statement = text(statement) if isinstance(statement, str) else statement
        self._application_id = application_id
        self._sink = sink
        self._call_timeout_ms = call_timeout_ms
        self._offsets = _table_of_offsets(offsets_table)
        self._has_table = False

    def claim(self, partition: TopicPartition) -> Claim:
        """Claims a partition; whoever had it before can write nothing for it any more."""
        table, mine = self._offsets, self._row_of(partition)
        try:
            self._create_table()
            with self._engine.begin() as connection:
                self._limit(connection)
                raised = connection.execute(table.update().where(mine).values(epoch=table.c.epoch + 1))
                if raised.rowcount == 0:
                    connection.execute(table.insert().values(**self._key(partition), next_offset=0, epoch=1))
                found = connection.execute(table.select().where(mine)).one()
        except exc.IntegrityError as error:  # another one has made the row just now: claim it after that one
            raise DatabaseAwayError(f"the row of {partition} is being made elsewhere: {error}") from error
        except Exception as error:
            raise _away_or_same(error) from error
        return Claim(found.epoch, found.next_offset)

    def write(
        self, rows: Sequence[Row], claims: Mapping[TopicPartition, Claim], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Writes rows, and that partitions stand at ``ends`` from now on, in one transaction.

        ``TaskMigratedError`` when another owner has claimed one of them; ``DatabaseAwayError`` when it may succeed
        later, also if it is not known whether it has succeeded: asked for again, what is there stays as it is.
        """
        try:
            with self._engine.begin() as connection:
                self._limit(connection)
                moved = [self._move(connection, place, claims[place], end) for place, end in sorted(ends.items())]
                if not any(moved):
                    return  # the transaction before had succeeded, and its answer was lost
                self._execute(connection, rows)
        except TaskMigratedError:
            raise
        except Exception as error:
            raise _away_or_same(error) from error

    def _move(self, connection: Connection, partition: TopicPartition, claim: Claim, end: int) -> bool:
        """Moves an offset; false if it stands at the end already, by a transaction of this owner."""
        table, mine = self._offsets, self._row_of(partition)
        known = and_(mine, table.c.epoch == claim.epoch, table.c.next_offset == claim.next_offset)
        if connection.execute(table.update().where(known).values(next_offset=end)).rowcount == 1:
            return True
        found = connection.execute(table.select().where(mine)).one_or_none()
        if found is not None and (found.epoch, found.next_offset) == (claim.epoch, end):
            return False
        now = "is gone" if found is None else f"has epoch {found.epoch} and next offset {found.next_offset}"
        raise TaskMigratedError(
            f"sink {self._sink!r} may not write for {partition} any more: its row in table {self._offsets.name!r} "
            f"{now}, instead of epoch {claim.epoch} and next offset {claim.next_offset}; another worker has taken over"
        )

    def _execute(self, connection: Connection, rows: Sequence[Row]) -> None:
        statement = self._statement
        if isinstance(statement, Executable):
            # SQLAlchemy takes the names of the first row for those of all, and drops what others name besides
            for _, alike in groupby(map(dict, rows), frozenset):
                connection.execute(statement, list(alike))
        else:
            statement(connection, rows)

    def _limit(self, connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            for name in ("statement_timeout", "idle_in_transaction_session_timeout"):  # the second: of a lost machine
                connection.execute(text(f"SET LOCAL {name} = {self._call_timeout_ms:d}"))

    def _create_table(self) -> None:
        if self._has_table:
            return
        try:
            self._offsets.create(self._engine, checkfirst=True)
        except exc.DBAPIError:  # another one may have made it at the same time
            if not inspect(self._engine).has_table(self._offsets.name):
                raise
        self._has_table = True

    def _key(self, partition: TopicPartition) -> dict[str, object]:
        return {
            "application_id": self._application_id,
            "sink": self._sink,
            "input_topic": partition.topic,
            "input_partition": partition.partition,
        }

    def _row_of(self, partition: TopicPartition) -> ColumnElement[bool]:
        return and_(*(self._offsets.c[name] == value for name, value in self._key(partition).items()))


class SharedEngine:
    """The engine of a sink, one for all tasks of the process: made for the first, disposed of with the last."""

    def __init__(self, make: str | Callable[[], Engine]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._users = 0
        self._engine: Engine | None = None

    def acquire(self) -> Engine:
        """Returns the engine; each call needs its ``release``."""
        with self._lock:
            if self._engine is None:
                self._engine = _engine_of(self._make) if isinstance(self._make, str) else self._make()
            self._users += 1
            return self._engine

    def release(self) -> None:
        """Lets go of the engine."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._engine is not None:
                self._engine.dispose()
                self._engine = None


def checked_url(url: str) -> str:
    """Returns a URL that SQLAlchemy can read; ``ValueError`` otherwise."""
    try:
        make_url(url)
    except exc.ArgumentError:
        raise ValueError(
            "the engine of a SqlSink is a text that is no URL of a database; write it as "
            "'postgresql+psycopg://user:password@host/database' or 'sqlite:///file.db'"
        ) from None  # the text may hold a password
    return url


def may_pass(error: BaseException) -> bool:
    """Whether the same transaction may succeed later: the database is away, busy, or has rolled it back."""
    if isinstance(error, exc.TimeoutError):  # no connection of the pool was free
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    original = error.orig
    sqlite_code = getattr(original, "sqlite_errorcode", None)
    if isinstance(sqlite_code, int):
        return sqlite_code & 0xFF in _PASSING_SQLITE
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    if isinstance(state, str):
        return state in _PASSING_STATES or state[:2] in _PASSING_CLASSES
    return isinstance(error, exc.OperationalError | exc.InterfaceError)


def _away_or_same(error: Exception) -> Exception:
    return DatabaseAwayError(str(error)) if may_pass(error) else error


def _engine_of(url: str) -> Engine:
    found = make_url(url)
    limits: dict[str, object] = {}
    if found.get_backend_name() == "postgresql" and found.get_driver_name() in ("psycopg", "psycopg2"):
        limits = {"connect_timeout": CONNECT_S, "tcp_user_timeout": CONNECT_S * 1000}
        limits = {name: value for name, value in limits.items() if name not in found.query}
    return create_engine(found, pool_pre_ping=True, connect_args=limits)


def _table_of_offsets(name: str) -> Table:
    return Table(
        name,
        MetaData(),
        Column("application_id", String(255), primary_key=True),
        Column("sink", String(255), primary_key=True),
        Column("input_topic", String(249), primary_key=True),
        Column("input_partition", Integer, primary_key=True, autoincrement=False),
        Column("next_offset", BigInteger, nullable=False),
        Column("epoch", BigInteger, nullable=False),
    )

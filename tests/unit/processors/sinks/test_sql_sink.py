"""Rows that are written once: transactions, fences, outages and refused rows, in real databases under a real task."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import Connection, Engine, bindparam, create_engine, insert, table, text, update
from sqlalchemy import column as sql_column

from pykstreams.core.errors import ProcessingError, StreamsError, TaskMigratedError
from pykstreams.core.handlers import ErrorHandlerResponse
from pykstreams.processors import FlatMapValues
from pykstreams.processors.sinks.sql_sink import SqlSink
from tests.databases.effect_once import effects, finish
from tests.databases.postgres import postgres_server, programs
from tests.unit.runtime.tasks.fakes import PATIENCE_S, TaskBench, message, node, source

INSERT = "insert into effects values (:id, :value)"


class MakeBench(Protocol):
    def __call__(
        self, *, config: Mapping[str, Any] | None = None, split: bool = False, **options: Any
    ) -> TaskBench: ...


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres_server() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'effects.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("drop table if exists effects"))
        connection.execute(text("drop table if exists pykstreams_offsets"))
        connection.execute(text("create table effects (id integer, value varchar(20) unique)"))
    yield engine
    engine.dispose()


def row(key: str, value: str) -> dict[str, object] | None:
    return None if value == "nothing" else {"id": len(value), "value": value}


@pytest.fixture
def make_bench(url: str, engine: Engine) -> Iterator[MakeBench]:
    benches: list[TaskBench] = []

    def make(*, config: Mapping[str, Any] | None = None, split: bool = False, **options: Any) -> TaskBench:
        sink: SqlSink[str, str] = SqlSink(**{"engine": url, "statement": INSERT, "row": row, **options})
        nodes = [node("WORDS", FlatMapValues(str.split), "SINK")] if split else []
        bench = TaskBench(
            source("SOURCE", "in", children=("WORDS" if split else "SINK",)),
            *nodes,
            node("SINK", sink),
            config={"retry.backoff.ms": 1, **(config or {})},
        )
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        bench.task.close()


def feed(bench: TaskBench, *values: str, first: int = 0) -> None:
    bench.feed(*(message("in", first + i, value, first + i) for i, value in enumerate(values)))


def write(bench: TaskBench, *values: str, first: int = 0) -> None:
    feed(bench, *values, first=first)
    finish(bench)


def values(engine: Engine) -> list[str]:
    return [value for _, value in effects(engine)]


def next_offset(engine: Engine) -> int:
    with engine.connect() as connection:
        found: int = connection.execute(text("select next_offset from pykstreams_offsets")).scalar_one()
        return found


def test_rows_are_written_with_the_offset_behind_their_records(make_bench: MakeBench, engine: Engine) -> None:
    write(make_bench(), "a", "bb", "ccc", first=5)

    assert (values(engine), next_offset(engine)) == (["a", "bb", "ccc"], 8)


def test_a_record_without_row_writes_nothing(make_bench: MakeBench, engine: Engine) -> None:
    write(make_bench(), "a", "nothing")

    assert (values(engine), next_offset(engine)) == (["a"], 1)


def test_records_below_the_offset_in_the_database_are_not_written_again(make_bench: MakeBench, engine: Engine) -> None:
    first = make_bench()
    write(first, "a", "bb")
    first.task.close()
    write(make_bench(), "a", "bb", "ccc")

    assert values(engine) == ["a", "bb", "ccc"]


def test_rows_of_one_record_are_in_one_transaction(make_bench: MakeBench, engine: Engine) -> None:
    transactions = []

    def note(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        transactions.append([found["value"] for found in rows])

    write(make_bench(split=True, statement=note, batch_size=2), "a b c", "d", "e f", "g")

    assert transactions == [["a", "b", "c", "d"], ["e", "f", "g"]]


def test_a_statement_of_sqlalchemy_is_taken(make_bench: MakeBench, engine: Engine) -> None:
    effects_table = table("effects", sql_column("id"), sql_column("value"))
    write(make_bench(statement=insert(effects_table)), "a", "bb")

    assert values(engine) == ["a", "bb"]


def test_columns_that_only_some_rows_of_a_transaction_name_are_written(make_bench: MakeBench, engine: Engine) -> None:
    def some_columns(key: str, value: str) -> dict[str, object]:
        return {"value": value} if len(value) == 1 else {"value": value, "id": len(value)}

    effects_table = table("effects", sql_column("id"), sql_column("value"))
    write(make_bench(statement=insert(effects_table), row=some_columns, split=True), "a bb ccc d", "eeeee f")
    with engine.connect() as connection:
        found = connection.execute(text("select value, id from effects order by value")).fetchall()

    assert found == [("a", None), ("bb", 2), ("ccc", 3), ("d", None), ("eeeee", 5), ("f", None)]


def test_rows_that_name_different_columns_are_written_in_their_order(make_bench: MakeBench, engine: Engine) -> None:
    """Where each row replaces the one before, another order would leave another row."""

    def some_columns(key: str, value: str) -> dict[str, object]:
        return {"which": 1, "value": value} if len(value) == 1 else {"which": 1, "value": value, "id": len(value)}

    with engine.begin() as connection:
        connection.execute(text("insert into effects values (1, 'first')"))
    effects_table = table("effects", sql_column("id"), sql_column("value"))
    replace = update(effects_table).where(bindparam("which") == 1)
    write(make_bench(statement=replace, row=some_columns), "a", "bb", "c")

    assert effects(engine) == [(2, "c")]


def test_polling_goes_on_while_rows_are_written_and_the_commit_waits_for_them(
    make_bench: MakeBench, engine: Engine
) -> None:
    gate = threading.Event()

    def insert_behind_gate(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        assert gate.wait(PATIENCE_S)
        connection.execute(text(INSERT), list(rows))

    bench = make_bench(statement=insert_behind_gate)
    feed(bench, "a")
    bench.task.process(10)
    feed(bench, "bb", first=1)

    assert (bench.task.unfinished, bench.task.settle()) == (2, False)

    gate.set()
    while not bench.task.settle():
        bench.wait_for(running=0)

    assert values(engine) == ["a", "bb"]


def test_a_task_takes_no_more_records_than_two_transactions_have_room_for(make_bench: MakeBench) -> None:
    gate = threading.Event()
    bench = make_bench(statement=lambda connection, rows: gate.wait(PATIENCE_S), batch_size=2)
    for _ in range(3):
        feed(bench, *"abcdef") if not bench.task.buffered else bench.task.process(10)

    assert (bench.task.unfinished, bench.task.buffered) == (4, 2)
    gate.set()


def test_an_owner_that_was_replaced_can_write_nothing_and_gives_its_task_up(
    make_bench: MakeBench, engine: Engine
) -> None:
    zombie, owner = make_bench(), make_bench()
    write(zombie, "a")
    write(owner, "a", "bb")
    with pytest.raises(TaskMigratedError, match="another worker has taken over"):
        write(zombie, "ccc", first=1)
    write(owner, "ddd", first=2)

    assert (values(engine), next_offset(engine)) == (["a", "bb", "ddd"], 3)


def test_an_owner_of_which_the_rows_were_deleted_gives_its_task_up(make_bench: MakeBench, engine: Engine) -> None:
    bench = make_bench()
    write(bench, "a")
    with engine.begin() as connection:
        connection.execute(text("delete from pykstreams_offsets"))
    with pytest.raises(TaskMigratedError, match="is gone"):
        write(bench, "bb", first=1)


def test_a_refused_row_ends_the_task_and_what_came_before_it_is_written(make_bench: MakeBench, engine: Engine) -> None:
    bench = make_bench()
    with pytest.raises(ProcessingError) as caught:
        write(bench, "a", "bb", "a", "ccc")

    assert (caught.value.topic, caught.value.offset, caught.value.node) == ("in", 2, "SINK")
    assert (values(engine), next_offset(engine)) == (["a", "bb"], 2)


def test_a_refused_row_is_dropped_where_the_handler_says_so(make_bench: MakeBench, engine: Engine) -> None:
    def goes_on(context: Any, record: Any, error: Exception) -> ErrorHandlerResponse:
        return ErrorHandlerResponse.resume()

    bench = make_bench(config={"processing.exception.handler": goes_on})
    write(bench, "a", "bb", "a", "ccc")

    assert (values(engine), next_offset(engine), bench.dropped) == (["a", "bb", "ccc"], 4, 1)


def test_a_row_function_that_raises_is_an_error_of_the_step(make_bench: MakeBench) -> None:
    def fails(key: str, value: str) -> dict[str, object]:
        raise LookupError(value)

    with pytest.raises(ProcessingError, match="LookupError"):
        write(make_bench(row=fails), "a")


def loses_answers(url: str) -> Callable[[], Engine]:
    """An engine whose third commit succeeds, while its answer is lost: after the table's and the claim's."""
    commits: list[int] = []

    def make() -> Engine:
        engine = create_engine(url)
        commit = engine.dialect.do_commit

        def do_commit(connection: Any) -> None:
            commit(connection)
            commits.append(1)
            if len(commits) == 3:
                lost = sqlite3.OperationalError("disk I/O error")
                lost.sqlite_errorcode = 10
                raise lost

        vars(engine.dialect)["do_commit"] = do_commit
        return engine

    return make


def test_rows_are_not_written_twice_when_the_answer_to_a_commit_is_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'effects.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("create table effects (id integer, value varchar(20))"))
    sink: SqlSink[str, str] = SqlSink(loses_answers(url), INSERT, row)
    bench = TaskBench(source("SOURCE", "in", children=("SINK",)), node("SINK", sink), config={"retry.backoff.ms": 1})
    write(bench, "a", "bb")
    write(bench, "ccc", first=2)
    bench.task.close()

    assert values(engine) == ["a", "bb", "ccc"]
    engine.dispose()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else can write to the database meanwhile."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin exclusive")
        yield
        connection.execute("rollback")


def wait_until_away(caplog: pytest.LogCaptureFixture) -> None:
    """Waits until the sink has said that it waits."""
    for _ in range(round(PATIENCE_S * 1000)):
        if "the database is away" in caplog.text:
            return
        threading.Event().wait(0.001)
    raise AssertionError("the sink did not say that the database is away")


@pytest.fixture
def locked_bench(tmp_path: Path) -> Iterator[Callable[..., TaskBench]]:
    benches: list[TaskBench] = []

    def make(**options: Any) -> TaskBench:
        url = f"sqlite:///{tmp_path / 'effects.db'}?timeout=0"
        sink: SqlSink[str, str] = SqlSink(url, INSERT, row, **options)
        bench = TaskBench(
            source("SOURCE", "in", children=("SINK",)), node("SINK", sink), config={"retry.backoff.ms": 1}
        )
        benches.append(bench)
        return bench

    with contextlib.closing(sqlite3.connect(tmp_path / "effects.db")) as connection:
        connection.execute("create table effects (id integer, value varchar(20))")
    yield make
    for bench in benches:
        bench.task.close()


def test_a_database_that_is_away_for_a_while_is_waited_for(
    locked_bench: Callable[..., TaskBench], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = locked_bench()
    with locked(tmp_path / "effects.db"):
        feed(bench, "a")
        bench.task.process(10)
        wait_until_away(caplog)

        assert not bench.task.settle()

    while not bench.task.settle():
        bench.wait_for(running=0)
    engine = create_engine(f"sqlite:///{tmp_path / 'effects.db'}")

    assert values(engine) == ["a"]
    engine.dispose()


def test_a_database_that_is_away_for_too_long_ends_the_task(
    locked_bench: Callable[..., TaskBench], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = locked_bench(timeout=5000)
    with locked(tmp_path / "effects.db"):
        feed(bench, "a")
        bench.task.process(10)
        wait_until_away(caplog)
        bench.clock.advance(5000)
        bench.wait_for(running=0)
        with pytest.raises(StreamsError, match="has not taken anything for 5000 ms"):
            bench.task.process(10)


def test_a_transaction_that_never_ends_ends_the_task(make_bench: MakeBench) -> None:
    gate = threading.Event()
    bench = make_bench(statement=lambda connection, rows: gate.wait(PATIENCE_S), timeout=1000, call_timeout=500)
    feed(bench, "a")
    bench.task.process(10)
    bench.clock.advance(2001)

    with pytest.raises(StreamsError, match="has not ended within 2000 ms"):
        bench.task.process(10)
    gate.set()


def test_a_batch_that_is_written_one_by_one_is_overdue_only_when_one_of_its_transactions_is(
    make_bench: MakeBench,
) -> None:
    third, gate = threading.Event(), threading.Event()

    def insert_slowly(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        if len(rows) > 1:
            raise ValueError("only one by one")
        if rows[0]["value"] == "ccc":
            third.set()
            gate.wait(PATIENCE_S)
        bench.clock.advance(1500)

    bench = make_bench(statement=insert_slowly, timeout=1000, call_timeout=500)
    feed(bench, "a", "bb", "ccc")
    bench.task.process(10)

    assert third.wait(PATIENCE_S)
    bench.task.process(10)
    bench.clock.advance(2001)
    with pytest.raises(StreamsError, match="has not ended within 2000 ms"):
        bench.task.process(10)
    gate.set()


def test_without_sqlalchemy_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "pykstreams.processors.sinks.sql_transactions")

    with pytest.raises(ModuleNotFoundError, match=r"pip install pykstreams\[sql\]"):
        SqlSink("sqlite://", INSERT, row)


def test_options_without_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_size is 0"):
        SqlSink("sqlite://", INSERT, row, batch_size=0)
    with pytest.raises(ValueError, match="no URL of a database") as caught:
        SqlSink("secret", INSERT, row)

    assert "secret" not in str(caught.value)

    with pytest.raises(ValueError, match="timeout is 0"):
        SqlSink("sqlite://", INSERT, row, timeout=0)
    with pytest.raises(ValueError, match="call_timeout is 0"):
        SqlSink("sqlite://", INSERT, row, call_timeout=0)

"""RocksDB behind a store: what survives, what is tuned, and what goes wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pykstreams.core.errors import DamagedStoreError, DiskFullError, InvalidStateStoreError, StoreEngineError
from pykstreams.state import RocksDBConfigSetter, Stores, ValueAndTimestamp
from pykstreams.state.engines import rocksdb, rocksdb_memory
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import WriteBuffer
from tests.unit.state.support import NAME, Context, Kind, opened, rows

KIND = Kind("timestamped", "rocksdb", False, True)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    context = Context(tmp_path)
    context.record(5)
    return context


def test_store_lies_in_its_own_folder_below_the_task(context: Context) -> None:
    store = opened(KIND, context)
    store.close()

    assert (context.state_dir / "rocksdb" / NAME / "CURRENT").is_file()


def test_committed_rows_and_offset_are_there_after_reopening_and_others_are_not(context: Context) -> None:
    store = opened(KIND, context)
    assert store.committed_offset() is None
    store.put_row("a", 1, 1)
    store.commit(41)
    store.put_row("a", 2, 2)
    store.put_row("b", 2, 2)
    store.close()
    store = opened(KIND, context)

    assert rows(store.all()) == [("a", (1, 1))]
    assert store.committed_offset() == 41
    store.close()


def test_write_buffers_of_many_stores_stay_below_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    limit = 8 << 20
    monkeypatch.setattr(rocksdb_memory, "ALL_WRITE_BUFFERS_BYTES", limit)
    rocksdb_memory.engine_memory.cache_clear()
    request.addfinalizer(rocksdb_memory.engine_memory.cache_clear)
    engines = [RocksDbEngine(f"store-{number}") for number in range(8)]
    for engine in engines:
        engine.open(Context(tmp_path))
    for batch in range(10):
        for engine in engines:
            rows_of_batch = ((b"%02d-%06d" % (batch, row), b"v" * 1000) for row in range(400))
            engine.write_batch(rows_of_batch, batch, [])
    in_memory = [_in_memory(engines)]
    while in_memory[-1] > 2 * limit and len(in_memory) < 20_000:  # RocksDB flushes on threads of its own
        engines[0].write_batch([(b"one", b"more")], 11, [])
        in_memory.append(_in_memory(engines))
    for engine in engines:
        engine.close()

    assert in_memory[-1] <= 2 * limit  # all that was written is 32 MB


def _in_memory(engines: Iterable[RocksDbEngine]) -> int:
    property_name = "rocksdb.cur-size-all-mem-tables"
    return sum(engine._opened_db().property_int_value(property_name) or 0 for engine in engines)


def test_offset_is_no_row(context: Context) -> None:
    store = opened(KIND, context)
    store.commit(41)

    assert rows(store.all()) == []
    store.close()


def test_store_can_be_closed_and_reopened_under_an_open_iterator(context: Context) -> None:
    """A short scan has all its rows by then."""
    store = opened(KIND, context)
    for number in range(3):
        store.put_row(f"{number:03d}", 1, 1)
    store.commit(1)
    with store.all() as found:
        next(found)
        store.close()
        store = opened(KIND, context)

        assert len(list(found)) == 2
    assert len(rows(store.all())) == 3
    store.close()


@pytest.mark.parametrize("reverse", [False, True], ids=["upwards", "downwards"])
def test_long_iterator_fails_when_its_store_was_closed_and_reopened(context: Context, reverse: bool) -> None:
    """It keeps no files open, and does not look as if it had come to the end of the rows."""
    store = opened(KIND, context)
    for number in range(100):
        store.put_row(f"{number:03d}", 1, 1)
    store.commit(1)
    with store.all(reverse=reverse) as found:
        next(found)
        store.close()
        store = opened(KIND, context)

        with pytest.raises(InvalidStateStoreError, match=r"^store 'orders' is not open; ask the context for the store"):
            next(found)
    assert len(rows(store.all())) == 100
    store.close()


def test_iterator_fails_when_much_is_restored_in_no_order_before_it_goes_on(context: Context) -> None:
    """The database is opened anew for the restored rows, which the store does not say by ``is_open``."""
    store = opened(KIND, context)
    count = rocksdb._LOAD_FROM_ROWS + 1000
    falling = [b"%05d" % number for number in reversed(range(count))]
    store.restore([(key, b"1", 1, ()) for key in falling[-100:]])
    with store.all() as found:
        next(found)
        for at in range(0, count, 1000):
            store.restore([(key, b"1", 1, ()) for key in falling[at : at + 1000]])

        with pytest.raises(InvalidStateStoreError, match=r"^store 'orders' is not open"):
            list(found)
    assert len(rows(store.all())) == count
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_reopened_store_after_a_kill_has_rows_that_fit_its_offset(tmp_path: Path, early: bool) -> None:
    """A child writes rows ``k<n % 50> = n`` and commits offset ``n`` each tenth; it is killed while it writes, with
    buffers so small that RocksDB flushes all the time. Early flushes may put rows ahead of the offset: reading the
    changelog again from there must then give what the model has."""
    limit = 2_000 if early else 1 << 30
    child = dedent(
        f"""
        import sys
        from pathlib import Path
        from pykstreams.state.engines import rocksdb, rocksdb_memory
        from tests.unit.state.engines import test_rocksdb as test
        rocksdb_memory.WRITE_BUFFER_BYTES = rocksdb._OFFSET_BUFFER_BYTES = 64 << 10
        store = test.buffer(Path({str(tmp_path)!r}), {limit})
        for number in range(1 << 40):
            store.put(b"k%d" % (number % 50), b"%d" % number * 20)
            if number % 10 == 0:
                store.commit(number)
            if number == 5_000:
                print("far enough", flush=True)
        """
    )
    root = Path(__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"far enough\n"
        process.send_signal(signal.SIGKILL)

    store = buffer(tmp_path, limit)
    offset = store.committed_offset()
    assert offset is not None and offset > 0
    if early:
        last = offset + 100  # the child commits each tenth row, so no row on disk lies further ahead
        store.write([(b"k%d" % (number % 50), b"%d" % number * 20) for number in range(offset + 1, last)])
        offset = last - 1
    expected = {b"k%d" % (number % 50): b"%d" % number * 20 for number in range(offset - 49, offset + 1)}
    assert dict(store.scan(None, None, False)) == expected
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [False, True])
def test_store_that_was_killed_while_it_loaded_has_rows_that_fit_its_offset(tmp_path: Path, in_order: bool) -> None:
    """A child restores rows ``k<n % 50> = n``, or in a mixed-up order, and commits offset ``n`` each tenth, with small
    buffers."""
    keys = [b"k%02d" % (number if in_order else number * 7 % 50) for number in range(50)]
    child = dedent(
        f"""
        from pathlib import Path
        from pykstreams.state.engines import rocksdb, rocksdb_memory
        from tests.unit.state.engines import test_rocksdb as test
        rocksdb_memory.WRITE_BUFFER_BYTES = rocksdb._OFFSET_BUFFER_BYTES = 64 << 10
        rocksdb._LOAD_FROM_ROWS = 100
        store = test.buffer(Path({str(tmp_path)!r}), 1 << 30)
        for number in range(1 << 40):
            store.write([({keys}[number % 50], b"%d" % number * 20)])
            if number % 10 == 0:
                store.commit(number)
            if number == 5_000:
                assert store._engine._loading is not {in_order}
                print("far enough", flush=True)
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"far enough\n"
        process.send_signal(signal.SIGKILL)

    store = buffer(tmp_path, 1 << 30)
    offset = store.committed_offset()
    assert offset is not None and offset > 100
    last = offset + 100  # no row on disk lies further ahead
    store.write([(keys[number % 50], b"%d" % number * 20) for number in range(offset + 1, last)])
    expected = {keys[number % 50]: b"%d" % number * 20 for number in range(last - 50, last)}
    assert dict(store.scan(None, None, False)) == expected
    store.close()


@pytest.mark.slow
def test_offset_that_counts_as_flushed_is_there_after_a_kill(tmp_path: Path) -> None:
    """A child commits rows with small buffers, and tells which offset is flushed; it is killed while it writes."""
    child = dedent(
        f"""
        from pathlib import Path
        from pykstreams.state.engines import rocksdb, rocksdb_memory
        from tests.unit.state.engines import test_rocksdb as test
        rocksdb_memory.WRITE_BUFFER_BYTES = rocksdb._OFFSET_BUFFER_BYTES = 64 << 10
        store = test.buffer(Path({str(tmp_path)!r}), 1 << 30)
        for number in range(1 << 40):
            store.put(b"k%d" % (number % 50), b"%d" % number * 20)
            store.commit(number)
            if number % 100 == 0:
                print(store.flushed_offset() or 0, flush=True)
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        while (flushed := int(process.stdout.readline())) < 5_000:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    store = buffer(tmp_path, 1 << 30)
    left = store.committed_offset()
    store.close()

    assert left is not None and flushed <= left


def test_offset_counts_as_flushed_when_it_has_left_the_write_buffers(context: Context) -> None:
    store = RocksDbEngine("counts")
    store.open(context)
    store.write_batch([(b"a", b"1")], 41)
    waiting = store.flushed_offset()
    store.write_batch([(b"a", b"2")], 42)
    store._offset_rows.flush()
    flushed = store.flushed_offset()
    store.close()

    assert (waiting, flushed) == (None, 42)


def test_offset_counts_as_flushed_when_the_store_is_made_ready_for_reads(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb, "_LOAD_FROM_ROWS", 2)
    store = RocksDbEngine("counts")
    store.open(context)
    for number in range(10):
        store.load([(b"%d" % (9 - number), b"1")])
    store.write_batch([], 42)
    loading = store._loading
    store.end_load()
    flushed = store.flushed_offset()
    store.close()

    assert (loading, flushed) == (True, 42)


def buffer(folder: Path, limit: int) -> WriteBuffer:
    made = WriteBuffer(RocksDbEngine("killed"), limit)
    made.open(Context(folder))
    return made


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_many_restored_rows_are_loaded_and_read(
    context: Context, monkeypatch: pytest.MonkeyPatch, commits: bool, in_order: bool
) -> None:
    monkeypatch.setattr(rocksdb, "_LOAD_FROM_ROWS", 100)
    store = opened(KIND, context)
    numbers = list(range(500)) if in_order else [*reversed(range(300)), *reversed(range(300, 500))]
    for start in range(0, 500, 50):
        batch = numbers[start : start + 50]
        store.restore([(b"k%03d" % (number % 300), b"%d" % number, number, ()) for number in batch])
        if commits:
            store.commit(start)
    store.restore([(b"k000", None, 1, ())])

    assert store.get_row("k000") is None
    assert store.get_row("k001") == (301, 301)
    assert len(rows(store.all())) == 299
    assert store.committed_offset() == (450 if commits else None)
    store.put_row("k000", 1, 1)
    store.commit(600)
    store.close()
    store = opened(KIND, context)
    assert store.get_row("k000") == (1, 1)
    assert store.committed_offset() == 600
    store.close()


def test_store_that_is_closed_while_it_loads_keeps_what_was_committed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb, "_LOAD_FROM_ROWS", 10)
    store = opened(KIND, context)
    for number in reversed(range(50)):
        store.restore([(b"k%03d" % number, b"1", number, ())])
    store.commit(49)
    store.close()
    store = opened(KIND, context)

    assert store.committed_offset() == 49
    assert len(rows(store.all())) == 50
    store.close()


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows each time that a RocksDB is opened; ten rows are many."""
    opens: list[int] = []
    real = rocksdb._opened
    monkeypatch.setattr(rocksdb, "_LOAD_FROM_ROWS", 10)
    monkeypatch.setattr(rocksdb, "_opened", lambda *arguments: opens.append(1) or real(*arguments))  # type: ignore[func-returns-value]
    return opens


def test_store_is_not_opened_again_to_load_rows_whose_keys_rise(context: Context, opens: list[int]) -> None:
    """Once over all keys, and once more: that one step back is no disorder."""
    store = opened(KIND, context)
    for number in [*range(50), *range(50)]:
        store.restore([(b"k%03d" % number, b"1", number, ())])
    store.commit(100)
    store.end_restore()

    assert len(rows(store.all())) == 50
    assert len(opens) == 1
    store.close()


def test_loaded_store_is_made_ready_at_the_end_of_restoring_and_not_by_its_first_read(
    context: Context, opens: list[int]
) -> None:
    store = opened(KIND, context)
    for start in (50, 0):
        store.restore([(b"k%03d" % number, b"1", number, ()) for number in range(start, start + 50)])
    store.restore([(b"k%03d" % number, b"2", number, ()) for number in range(50)])
    store.commit(100)
    store.end_restore()
    before = len(opens)

    assert store.get_row("k001") == (2, 1)
    assert len(opens) == before == 3
    store.close()


class Setter(RocksDBConfigSetter):
    calls: list[tuple[str, str]] = []  # noqa: RUF012 - read by the test

    def set_config(self, store_name: str, options: Any, configs: Mapping[str, object]) -> None:
        options.set_write_buffer_size(1 << 20)
        self.calls.append(("set", f"{store_name} of {configs['application.id']}"))

    def close(self, store_name: str, options: Any) -> None:
        self.calls.append(("close", store_name))


def test_config_setter_tunes_each_store_and_is_told_when_it_closes(tmp_path: Path) -> None:
    Setter.calls.clear()
    context = Context(tmp_path, {"rocksdb.config.setter": Setter, "application.id": "shop"})
    store = opened(KIND, context)

    assert Setter.calls == [("set", "orders of shop")]
    store.close()
    assert Setter.calls[1:] == [("close", "orders")]


def test_config_setter_may_be_a_function(tmp_path: Path) -> None:
    tuned = []
    context = Context(tmp_path, {"rocksdb.config.setter": lambda name, options, configs: tuned.append(name)})
    opened(KIND, context).close()

    assert tuned == ["orders"]


def test_store_that_is_open_elsewhere_tells_where_and_what_to_do(context: Context) -> None:
    store = opened(KIND, context)

    with pytest.raises(StoreEngineError, match=r"store 'orders' of task 0_1 in '.*rocksdb.orders' cannot be opened"):
        opened(KIND, context)
    store.close()


def test_damaged_store_tells_which_folder_to_delete(context: Context) -> None:
    opened(KIND, context).close()
    (context.state_dir / "rocksdb" / NAME / "CURRENT").write_text("nonsense\n")

    with pytest.raises(StoreEngineError, match="delete the folder, and the store is restored") as raised:
        opened(KIND, context)
    assert raised.value.task_id == context.task_id
    assert raised.value.__cause__ is not None


def test_offset_record_of_another_version_is_refused(context: Context) -> None:
    engine = RocksDbEngine("newer")
    engine.open(context)
    engine._offset_rows.put(b"changelog", b"\x02whatever")

    with pytest.raises(DamagedStoreError, match=r"offset record of store 'newer' .* expected 9 bytes of version 1"):
        engine.committed_offset()
    engine.close()


def _cut(path: Path) -> None:
    os.truncate(path, min(30, path.stat().st_size - 1))


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
@pytest.mark.parametrize("harm", [Path.unlink, _cut], ids=["missing", "cut off"])
def test_store_with_a_missing_or_truncated_file_is_said_to_be_damaged(
    context: Context, pattern: str, harm: Callable[[Path], None]
) -> None:
    store = opened(KIND, context)
    store.put_row("a", 1, 1)
    store.commit(1)
    store.close()
    harm(next((context.state_dir / "rocksdb" / NAME).glob(pattern)))

    with pytest.raises(DamagedStoreError, match="cannot be opened") as raised:
        opened(KIND, context)
    assert (raised.value.store, raised.value.task_id) == (NAME, context.task_id)


def test_store_whose_disk_is_full_says_in_which_folder(context: Context) -> None:
    engine = RocksDbEngine("full")
    engine.open(context)

    class Full:
        close = engine._opened_db().close

        def write(self, *arguments: Any) -> None:
            raise Exception("IO error: No space left on device: While appending to file: 000012.sst")

    engine._db = Full()  # type: ignore[assignment]

    with pytest.raises(DiskFullError, match=r"'full' .* cannot be written: .*Its disk is full: make room") as raised:
        engine.write_batch([(b"a", b"b")], 1)
    assert (raised.value.folder, raised.value.task_id) == (str(context.state_dir / "rocksdb" / "full"), context.task_id)
    engine.close()


ROWS = 20_000


def key(number: int) -> bytes:
    return b"%06d" % number


@pytest.fixture(params=[None, 6], ids=["plain", "prefixes"])
def damaged(context: Context, request: pytest.FixtureRequest) -> Iterator[RocksDbEngine]:
    """An engine with a block in the middle of its rows that does not fit its checksum."""
    engine = RocksDbEngine("damaged", request.param)
    engine.open(context)
    engine.write_batch([(key(number), hashlib.sha256(key(number)).digest() * 3) for number in range(ROWS)], 1)
    engine.close()
    damage(context.state_dir / "rocksdb" / "damaged")
    engine.open(context)
    yield engine
    engine.close()


def damage(folder: Path) -> None:
    """Alters a block in the middle of the largest file of a store."""
    file = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    middle = slice(len(content) // 2, len(content) // 2 + 20)
    content[middle] = bytes(byte ^ 0x5A for byte in content[middle])
    file.write_bytes(content)


def first_lost(engine: RocksDbEngine) -> int:
    """The first row that cannot be read."""
    for number in range(ROWS):
        try:
            engine.get(key(number))
        except StoreEngineError:
            return number
    raise AssertionError("every row can be read")


def test_row_in_a_damaged_block_is_an_error_of_the_engine_that_names_task_and_folder(
    damaged: RocksDbEngine, context: Context
) -> None:
    lost = first_lost(damaged)

    with pytest.raises(DamagedStoreError, match="block checksum mismatch") as raised:
        damaged.get(key(lost))
    folder = context.state_dir / "rocksdb" / "damaged"
    assert str(raised.value).startswith(f"store 'damaged' of task {context.task_id} in {str(folder)!r} cannot be read:")
    assert raised.value.task_id == context.task_id


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("before", "behind"), [(3, 0), (3, 3), (0, 100), (500, 500), (None, None)], ids=["few", "over", "in", "many", "all"]
)
def test_scan_does_not_end_in_front_of_a_damaged_block(
    damaged: RocksDbEngine, before: int | None, behind: int | None, reverse: bool
) -> None:
    """An iterator of RocksDB ends there as it does behind the last row, and only its status tells."""
    lost = first_lost(damaged)
    lower = None if before is None else key(lost - before)
    upper = None if behind is None else key(lost + behind + 1)

    with pytest.raises(StoreEngineError, match="block checksum mismatch"):
        list(damaged.scan(lower, upper, reverse))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_that_ends_before_a_damaged_block_needs_not_read_it(damaged: RocksDbEngine, reverse: bool) -> None:
    lost = first_lost(damaged)
    wanted = [key(number) for number in range(lost - 500, lost - 100)]

    found = [row[0] for row in damaged.scan(wanted[0], key(lost - 100), reverse)]

    assert found == (wanted[::-1] if reverse else wanted)


def rows_and_offset_after(tmp_path: Path, end: str) -> tuple[int, int | None]:
    """A child writes 500 rows of 2 kB and the offset 499, and then runs ``end``; what is there afterwards."""
    child = dedent(
        """
        import os, resource, signal
        from pathlib import Path
        from pykstreams.state.engines.rocksdb import RocksDbEngine
        from tests.unit.state.support import Context
        engine = RocksDbEngine("left")
        engine.open(Context(Path.cwd()))
        engine.write_batch([(b"%03d" % number, os.urandom(2000)) for number in range(500)], 499)
        """
    ) + dedent(end)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    ended = subprocess.run([sys.executable, "-c", child], env=environment, cwd=tmp_path, timeout=60)
    assert ended.returncode in (0, -signal.SIGKILL)
    engine = RocksDbEngine("left")
    engine.open(Context(tmp_path))
    left = len(list(engine.scan(None, None, False))), engine.committed_offset()
    engine.close()
    return left


def test_offset_is_not_kept_where_the_rows_cannot_be_flushed_when_the_store_is_closed(tmp_path: Path) -> None:
    """The small file of the offset finds room where the rows do not."""
    left = rows_and_offset_after(
        tmp_path,
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
        try:
            engine.close()
        except Exception as error:
            assert "File too large" in str(error), error
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        engine.open(Context(Path.cwd()))  # it let go of its files
        engine.close()
        """,
    )

    assert left == (0, None)


@pytest.mark.parametrize("after", ["_db", "_offset_rows"])
def test_offset_is_not_ahead_of_the_rows_where_a_process_is_killed_while_it_closes_a_store(
    tmp_path: Path, after: str
) -> None:
    rows, offset = rows_and_offset_after(
        tmp_path,
        f"""
        class Killed:
            def __init__(self, family):
                self.close_family = family.close

            def close(self):
                self.close_family()
                os.kill(os.getpid(), signal.SIGKILL)

        engine.{after} = Killed(engine.{after})
        engine.close()
        """,
    )

    assert rows == 500
    assert offset == (None if after == "_db" else 499)


def test_engine_that_cannot_be_flushed_when_it_closes_lets_go_of_its_files_all_the_same(context: Context) -> None:
    """On a full disk each column family says so; a task that is closed must be able to open again."""
    engine = RocksDbEngine("full")
    engine.open(context)

    class Full:
        def __init__(self, rows: Any) -> None:
            self.close_rows = rows.close

        def close(self) -> None:
            self.close_rows()
            raise Exception("IO error: No space left on device")

    engine._offset_rows = Full(engine._offset_rows)  # type: ignore[assignment]

    with pytest.raises(StoreEngineError, match="cannot be closed: IO error: No space left on device"):
        engine.close()
    engine.close()
    engine.open(context)
    engine.close()


def test_closed_engine_is_not_open(context: Context) -> None:
    engine = RocksDbEngine("closed")
    engine.open(context)
    engine.close()

    for call in (lambda: engine.get(b"a"), lambda: engine.scan(None, None, False), lambda: engine.write_batch([], 1)):
        with pytest.raises(InvalidStateStoreError, match="store 'closed' is not open"):
            call()


@pytest.fixture
def loading(context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[RocksDbEngine]:
    """An engine that is opened again by the first get."""
    monkeypatch.setattr(rocksdb, "_LOAD_FROM_ROWS", 2)
    engine = RocksDbEngine("loading")
    engine.open(context)
    for number in range(10):
        engine.load([(b"%d" % (9 - number), b"1")])
    assert engine._loading
    yield engine
    engine.close()


def test_engine_that_is_closed_while_rows_are_loaded_is_not_open(loading: RocksDbEngine) -> None:
    loading.close()

    with pytest.raises(InvalidStateStoreError, match="store 'loading' is not open"):
        loading.get(b"1")


def test_get_that_finds_a_loaded_store_damaged_says_so(loading: RocksDbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: Any) -> None:
        raise Exception("Corruption: bad block")

    monkeypatch.setattr(rocksdb, "_opened", damaged)

    with pytest.raises(DamagedStoreError, match=r"^store 'loading' of task 0_1 in '\S*' cannot be opened: Corruption"):
        loading.get(b"1")
    with pytest.raises(InvalidStateStoreError, match="store 'loading' is not open"):
        loading.get(b"1")


def test_timestamped_store_over_a_plain_supplier_forgets_timestamps(context: Context) -> None:
    store = Stores.timestamped_key_value_store_builder(
        Stores.persistent_key_value_store("plain"), *_text_and_json(), logging=False
    ).build()
    store.init(context)
    store.put("a", ValueAndTimestamp("x", 7))
    store.restore([(b"b", b'"y"', 8, ())])

    assert rows(store.all()) == [("a", ("x", -1)), ("b", ("y", -1))]
    store.close()


def test_store_with_headers_over_a_timestamped_supplier_forgets_headers(context: Context) -> None:
    from pykstreams.state import ValueTimestampHeaders

    store = Stores.timestamped_key_value_store_with_headers_builder(
        Stores.persistent_timestamped_key_value_store("stamped"), *_text_and_json(), logging=False
    ).build()
    store.init(context)
    store.put("a", ValueTimestampHeaders("x", 7, (("h", b"1"),)))

    assert store.get("a") == ValueTimestampHeaders("x", 7, ())
    store.close()


def _text_and_json() -> tuple[Any, Any]:
    builder = KIND.builder()
    return builder.key_serde, builder.value_serde

"""RocksDB: the durable engine. Its own modules are all that import ``rocksdict``, apart from ``bulk/sst.py``, which
writes files for it.

Invariant: rows and their offset lie in two column families, are written in one batch and reach the disk together
(atomic flush). There is no write-ahead log: what a crash takes away is read again from the changelog, from the offset
on that was kept.

While much is restored whose keys come in no order, rows are collected unsorted and sorted when they are flushed, on a
thread of RocksDB: writing a row then takes a seventh of the time (0.3 us against 2). ``end_load``, or else the first
read, goes back to the usual sorted buffers. Where keys rise, those take the rows as fast, and nothing is left to sort.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    ColumnFamily,
    Env,
    IngestExternalFileOptions,
    MemtableFactory,
    Options,
    Rdict,
    SliceTransform,
    WriteBatch,
    WriteOptions,
)

from pykstreams.core.errors import StreamsError
from pykstreams.core.metrics import RecordingLevel
from pykstreams.state.engines.checkpoint import decode_offset, encode_offset
from pykstreams.state.engines.disk_form import check_form, keep_form
from pykstreams.state.engines.flushed_offset import FlushedOffset
from pykstreams.state.engines.rocksdb_errors import EnginePlace, not_open
from pykstreams.state.engines.rocksdb_memory import ARENA_BYTES, BLOCK_BYTES, EngineMemory, engine_memory
from pykstreams.state.engines.rocksdb_scans import RocksDbScans
from pykstreams.state.engines.transactional import Range
from pykstreams.state.interfaces.engine import Row, Write
from pykstreams.state.interfaces.store import StoreContext

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

_WRITE_BUFFERS: Final = 3
_FLUSH_THREADS: Final = 2
_BLOOM_BITS_PER_KEY: Final = 10
_WRITE_BUFFER_BLOOM_SHARE: Final = 0.02  # of its bytes, so that keys it does not have are not searched for
_OFFSET_BUFFER_BYTES: Final = 1 << 20  # when it fills up, everything is flushed: keep it far larger than its records

_ROWS: Final = "default"
_OFFSETS: Final = "offsets"
_OFFSET_KEY: Final = b"changelog"
_WAITING: Final = ("rocksdb.num-entries-active-mem-table", "rocksdb.num-entries-imm-mem-tables")
"""In this order: an entry that goes from the first to the second meanwhile counts twice, and never not at all."""
_LOAD_FROM_ROWS: Final = 20_000  # from so many restored rows on, opening twice pays where keys come in no order
_STEPS_BACK: Final = 1 / 8  # of the batches; keys that step back more often come in no order

_CURE_OF_OPEN: Final = (
    "If another process has it open, stop that one; if the files are damaged, delete the folder, and the store is "
    "restored from its changelog"
)


class RocksDBConfigSetter(ABC):
    """Tunes the options of each RocksDB (``rocksdb.config.setter``); a plain function may do the same."""

    @abstractmethod
    def set_config(self, store_name: str, options: Options, configs: Mapping[str, object]) -> None:
        """Changes ``options``, a ``rocksdict.Options``, before the store is opened."""

    def close(self, store_name: str, options: Options) -> None:  # noqa: B027 - most setters make nothing to close
        """Called when the store is closed, for what ``set_config`` made."""


class RocksDbEngine:
    """One RocksDB in the folder ``rocksdb/<store>`` of a task.

    :param prefix_bytes: how many bytes the prefixes have that scans look for most; longer and shorter keys, and other
        scans, are as right as without.
    :param form: the form of the rows, as ``disk_form`` keeps it; ``None`` where it never changes.
    :param read_only: whether it only reads what is on disk, also while a worker has it open; it must be there.
    """

    def __init__(
        self, name: str, prefix_bytes: int | None = None, form: str | None = None, *, read_only: bool = False
    ) -> None:
        self._name = name
        self._prefix_bytes = prefix_bytes
        self._form = form
        self._read_only = read_only
        self._db: Rdict | None = None
        self._loading = False
        self._loaded = _Loaded()
        self._get: Callable[[bytes], bytes | None]
        self._scans: RocksDbScans | None = None

    def open(self, context: StoreContext) -> None:
        if self._db is not None:
            return
        path = context.state_dir / "rocksdb" / self._name
        self._context = context
        self._place = EnginePlace(self._name, context.task_id, path)
        self._flushed = FlushedOffset()
        try:
            check_form(path, self._form, self._name, context.task_id)
            self._open(path, loading=False)
            if not self._read_only:
                keep_form(path, self._form)
        except OSError as error:
            self.close()
            raise self._place.failed("opened", error, _CURE_OF_OPEN) from error

    def _open(self, path: Path, *, loading: bool) -> None:
        context = self._context
        options, self._release = row_options(self._name, self._prefix_bytes, context.config)
        self._memory = engine_memory(context.config.rocksdb_memory_bytes)
        if context.metrics.records(RecordingLevel.DEBUG):
            options.enable_statistics()
        self._counts_in = options
        offsets = _options(_OFFSET_BUFFER_BYTES, self._memory)
        self._loading, self._loaded = loading, _Loaded()
        if loading:
            options.set_memtable_prefix_bloom_ratio(0)
            for each in (options, offsets):
                each.set_allow_concurrent_memtable_write(False)
                each.set_memtable_factory(MemtableFactory.vector())
        try:
            if self._read_only:
                db = _opened_for_reading(path, options, offsets)
            else:
                path.mkdir(parents=True, exist_ok=True)
                db = _opened(path, options, offsets)
        except Exception as error:  # rocksdict raises plain Exception
            self._release()
            raise self._place.failed("opened", error, _CURE_OF_OPEN) from error
        without_log = WriteOptions()
        without_log.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, whatever its stub says
        db.set_write_options(without_log)
        self._db, self._without_log = db, without_log
        self._scans = RocksDbScans(db, self._prefix_bytes, self._place)
        self._offsets: ColumnFamily = db.get_column_family_handle(_OFFSETS)
        self._offset_rows = db.get_column_family(_OFFSETS)
        self._offset_rows.set_write_options(without_log)
        self._path = path
        self._get = self._get_after_load if loading else db.get

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._get(key)
        except StreamsError:  # of a store that the first get after loading cannot open again
            raise
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("read", error) from error

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        if self._loading or self._loaded.rows:
            self.end_load()
        scans = self._scans
        if scans is None:
            raise not_open(self._name)
        return scans.between(lower, upper, reverse)

    def load(self, rows: Iterable[Write]) -> None:
        if not self._loading and self._loaded.in_no_order():
            self._reopen(loading=True)
        self._loaded.add(*self._write(rows, None))

    def end_load(self) -> None:
        self._loaded = _Loaded()
        if self._db is not None and self._loading:
            self._reopen(loading=False)

    def write_batch(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> None:
        self._write(rows, offset, dropped)

    def _write(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> tuple[int, bytes]:
        """Returns the number of writes, and the last key."""
        db = self._opened_db()
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for lower, upper in dropped:
            batch.delete_range(lower, upper)
        key = b""
        for key, packed in rows:
            if packed is None:
                delete(key)
            else:
                put(key, packed)
        if offset is not None:
            put(_OFFSET_KEY, encode_offset(offset), self._offsets)
        count = len(batch)
        try:
            if self._memory.is_short:
                db.flush()
            db.write(batch, self._without_log)
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("written", error) from error
        if offset is not None:
            self._flushed.write(offset)
        return count, key

    def ingest(self, files: Sequence[Path]) -> None:
        """Ingests files of sorted rows (``SstFiles``), which are moved into the database.

        Rows of later files replace those of earlier ones.
        """
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        try:
            self._opened_db().ingest_external_file([str(file) for file in files], options)
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("written", error) from error

    def committed_offset(self) -> int | None:
        self.end_load()
        self._opened_db()
        try:
            record = self._offset_rows.get(_OFFSET_KEY)
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("read", error) from error
        return None if record is None else decode_offset(record, self._place)

    def flushed_offset(self) -> int | None:
        self._opened_db()
        return self._flushed.known(sum(int(self._offset_rows.property_int_value(name) or 0) for name in _WAITING))

    def approximate_num_entries(self) -> int:
        return int(self._opened_db().property_int_value("rocksdb.estimate-num-keys") or 0)

    def property_value(self, name: str) -> int | None:
        """Reads a property of the rows, such as ``rocksdb.estimate-num-keys``; any thread may ask, also when closed."""
        db = self._db
        if db is None:
            return None
        try:
            return db.property_int_value(name)
        except Exception:  # rocksdict raises plain Exception, also where the database was closed meanwhile
            return None

    def statistics(self) -> str | None:
        """The counts of RocksDB since it was opened, from ``DEBUG`` on; any thread may ask, also when closed."""
        return None if self._db is None else self._counts_in.get_statistics()

    def close(self) -> None:
        db, self._db = self._db, None
        scans, self._scans = self._scans, None
        if db is None or scans is None:
            return
        scans.close()
        offsets = self._offset_rows
        del self._offsets, self._offset_rows
        try:
            try:
                db.close()  # flushes the rows, and nothing else: an offset that is on disk before them would lose them
                offsets.close()
            finally:
                del db, offsets  # the last one that goes closes the database: it flushes both that are left, or none
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("closed", error) from error
        finally:
            self._release()

    def _get_after_load(self, key: bytes) -> bytes | None:
        self._opened_db()
        self.end_load()
        return self._get(key)

    def _reopen(self, *, loading: bool) -> None:
        db = self._opened_db()
        try:
            db.flush()
        except Exception as error:  # rocksdict raises plain Exception
            raise self._place.failed("written", error) from error
        self.close()
        self._flushed.flush()
        self._open(self._path, loading=loading)

    def _opened_db(self) -> Rdict:
        if self._db is None:
            raise not_open(self._name)
        return self._db


@dataclass(slots=True)
class _Loaded:
    """The rows loaded since the store was opened, and whether it was in order, as far as ends of batches tell."""

    rows: int = 0
    batches: int = 0
    steps_back: int = 0
    last_key: bytes = b""

    def add(self, rows: int, last_key: bytes) -> None:
        """Counts a batch."""
        self.rows += rows
        self.batches += 1
        self.steps_back += last_key < self.last_key
        self.last_key = last_key

    def in_no_order(self) -> bool:
        """Whether it was much, and often went back to smaller keys."""
        return self.rows >= _LOAD_FROM_ROWS and self.steps_back > self.batches * _STEPS_BACK


@cache
def _environment() -> Env:
    """The threads that all stores of this process share; one for flushes would make stores wait for each other."""
    environment = Env()
    environment.set_high_priority_background_threads(_FLUSH_THREADS)
    return environment


def _options(write_buffer_bytes: int, memory: EngineMemory) -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(memory.blocks)
    blocks.set_block_size(BLOCK_BYTES)
    blocks.set_cache_index_and_filter_blocks(memory.is_limited)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(memory.is_limited)
    blocks.set_bloom_filter(_BLOOM_BITS_PER_KEY, True)
    options = Options(raw_mode=True)
    options.set_env(_environment())
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_arena_block_size(ARENA_BYTES)
    options.set_write_buffer_manager(memory.write_buffers)
    options.set_max_write_buffer_number(_WRITE_BUFFERS)
    options.set_block_based_table_factory(blocks)
    options.set_keep_log_file_num(1)
    return options


def _opened(path: Path, options: Options, offsets: Options) -> Rdict:
    return Rdict(str(path), options, column_families={_ROWS: options, _OFFSETS: offsets})


def _opened_for_reading(path: Path, options: Options, offsets: Options) -> Rdict:
    if not path.is_dir():  # or it would be made
        raise FileNotFoundError(f"there is no folder {str(path)!r}")
    families = {_ROWS: options, _OFFSETS: offsets}
    return Rdict(str(path), options, column_families=families, access_type=AccessType.read_only(False))


def row_options(store: str, prefix_bytes: int | None, config: StreamsConfig) -> tuple[Options, Callable[[], None]]:
    """Makes the options for the rows of a store, tuned by the user; and what to call when it is closed."""
    memory = engine_memory(config.rocksdb_memory_bytes)
    options = _options(memory.write_buffer_bytes, memory)
    if prefix_bytes is not None:
        options.set_prefix_extractor(SliceTransform.create_fixed_prefix(prefix_bytes))
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(_WRITE_BUFFER_BLOOM_SHARE)
    setter: Any = config.instance("rocksdb.config.setter")
    if setter is None:
        return options, lambda: None
    set_config = getattr(setter, "set_config", setter)
    set_config(store, options, config)
    close = getattr(setter, "close", None)
    return options, (lambda: None) if close is None else (lambda: close(store, options))

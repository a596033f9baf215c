"""Global stores by hand: what they take, what handlers decide, what processors may ask for, what survives."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Processor, Serdes, StreamsBuilder
from pykstreams.core.errors import (
    DamagedStoreError,
    InvalidStateStoreError,
    ProcessingError,
    ProcessorStateError,
    StreamsError,
)
from pykstreams.core.handlers import (
    ErrorHandlerContext,
    ErrorHandlerResponse,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    ProcessingExceptionHandler,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.processor import PunctuationType
from pykstreams.core.record import ProducerRecord, Record
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.tasks.raw_message import RawMessage
from tests.unit.runtime.global_stores.global_fakes import PATIENCE_S, PutUpper, global_state, table, user_store

TABLE = TopicPartition("table", 0)


def message(topic: str, offset: int, key: Any, value: Any, timestamp: int = 5) -> RawMessage:
    raw = [text.encode() if isinstance(text, str) else text for text in (key, value)]
    return RawMessage(topic, 0, offset, timestamp, raw[0], raw[1], (("h", b"1"),))


def opened(builder: StreamsBuilder, folder: Path, **settings: Any) -> GlobalState:
    state = global_state(builder, folder / "global-0", **settings)
    state.open()
    return state


def rows(state: GlobalState, store: str = "rows") -> dict[str, Any]:
    with state.views[store].all() as found:
        return {key: getattr(value, "value", value) for key, value in found}


def asking(ask: Any) -> StreamsBuilder:
    """A user's store whose processor asks something of its context."""

    class Asking(Processor[Any, Any, Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            ask(self.context)

    return user_store(Asking)


def test_table_keeps_the_last_value_of_a_key_whatever_its_time(tmp_path: Path) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1", 9), message("table", 1, "a", "2", 3), message("table", 2, "b", "3")])
    state.update([message("table", 3, "b", None), message("table", 4, None, "5")])

    assert rows(state) == {"a": "2"}
    assert state.views["rows"]["a"].timestamp == 3
    assert state.offsets == {TABLE: 5}


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_cached_rows_can_be_read_before_they_are_flushed(tmp_path: Path, cache_bytes: int) -> None:
    state = opened(table(), tmp_path, cache_bytes=cache_bytes)
    state.update([message("table", 0, "a", "1")])
    before = rows(state)
    state.commit()

    assert before == rows(state) == {"a": "1"}


def test_table_is_restored_without_reading_what_the_bytes_mean(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.global_table("table", materialized="rows")
    state = opened(builder, tmp_path, **{"default.value.serde": Serdes.long()})
    state.restore([message("table", 0, "a", "no long")])

    assert state.offsets == {TABLE: 1}
    store: Any = state.stores["rows"]  # a ``TaskStore``; only stores of rows show them
    assert list(store.raw_rows()) == [(b"a", b"no long", 5, ())]


def test_unreadable_record_is_a_failure_with_its_place(tmp_path: Path) -> None:
    state = opened(table(), tmp_path, **{"default.value.serde": Serdes.long()})

    with pytest.raises(
        StreamsError, match=r"KSTREAM-SOURCE-0000000000 \(task -1_-1\) cannot read the value of a record"
    ):
        state.update([message("table", 0, "a", "no long")])
    assert state.offsets == {}


def test_unreadable_record_is_passed_over_when_the_handler_says_so(tmp_path: Path) -> None:
    settings = {
        "default.value.serde": Serdes.long(),
        "deserialization.exception.handler": LogAndContinueExceptionHandler,
    }
    state = opened(table(), tmp_path, **settings)
    state.update([message("table", 0, "a", "no long"), message("table", 1, "b", bytes(8))])

    assert rows(state) == {"b": 0}
    assert state.offsets == {TABLE: 2}


def test_exception_of_a_processor_goes_up_as_it_is(tmp_path: Path) -> None:
    settings = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    state = opened(user_store(), tmp_path, **settings)

    with pytest.raises(RuntimeError, match="a bad value"):
        state.update([message("feed", 0, "a", "x"), message("feed", 1, "b", "bad"), message("feed", 2, "c", "y")])
    assert state.offsets == {TopicPartition("feed", 0): 1}


def test_processing_handler_is_asked_where_it_is_enabled_for_global_stores(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"processing.exception.handler.global.enabled": True}
    going_on = {**settings, "processing.exception.handler": LogAndContinueProcessingExceptionHandler}
    state = opened(user_store(), tmp_path, **going_on)
    state.update([message("feed", 0, "b", "bad"), message("feed", 1, "c", "y")])
    found = rows(state, "caps")
    state.close()
    failing = opened(user_store(), tmp_path / "other", **settings)

    assert found == {"c": "Y"}
    with pytest.raises(ProcessingError, match=r"; KTABLE-SOURCE-0000000001 failed at record feed-0 offset 0"):
        failing.update([message("feed", 0, "b", "bad")])


def test_dead_letters_of_global_stores_are_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Sending(ProcessingExceptionHandler):
        def handle_error(self, context: ErrorHandlerContext, record: Any, error: Exception) -> ErrorHandlerResponse:
            return ErrorHandlerResponse.resume([ProducerRecord("dlq", b"k", b"v", None, None, ())])

    settings = {"processing.exception.handler": Sending, "processing.exception.handler.global.enabled": True}
    state = opened(user_store(), tmp_path, **settings)
    with caplog.at_level(logging.WARNING):
        state.update([message("feed", 0, "b", "bad")])

    assert "a dead letter for topic dlq is dropped: there are none for global stores" in caplog.text


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda context: context.schedule(5, PunctuationType.WALL_CLOCK_TIME, print), "nothing can be scheduled"),
        (lambda context: context.current_stream_time_ms(), "stream time is that of a task; take the timestamp"),
        (lambda context: context.get_state_store("x"), "no access to store 'x'; global stores there are: 'caps'"),
        (lambda context: context.forward(Record(1, 2, 3), "child"), "which is not connected to it"),
    ],
)
def test_what_belongs_to_tasks_is_refused_to_processors_of_global_stores(tmp_path: Path, ask: Any, said: str) -> None:
    state = opened(asking(ask), tmp_path)

    with pytest.raises(StreamsError, match=said):
        state.update([message("feed", 0, "a", "x")])


def test_processors_of_global_stores_know_where_they_are(tmp_path: Path) -> None:
    found: list[Any] = []

    def ask(context: Any) -> None:
        context.commit()
        context.forward(Record("goes", "nowhere", 1))
        found.append((context.application_id, context.task_id, context.record_metadata.offset, context.state_dir))

    opened(asking(ask), tmp_path).update([message("feed", 7, "a", "x")])

    assert found == [("shop", TaskId(-1, -1), 7, tmp_path / "global-0")]


def test_processor_that_fails_in_init_is_an_error_with_its_name(tmp_path: Path) -> None:
    class Failing(PutUpper):
        def init(self, context: Any) -> None:
            raise ValueError("not today")

    with pytest.raises(StreamsError, match=r"^init of KTABLE-SOURCE-0000000001, which feeds a global store, failed"):
        opened(user_store(Failing), tmp_path)


def test_what_was_not_committed_is_read_again(tmp_path: Path) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.update([message("table", 1, "b", "2")])
    state.close()
    again = opened(table(), tmp_path)

    assert (rows(again), again.offsets) == ({"a": "1"}, {TABLE: 1})


def test_commits_that_a_store_has_lost_are_not_believed(tmp_path: Path) -> None:
    """The checkpoint is on disk at once, rows may be in the memory of RocksDB still when a process dies."""
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.close()
    path = tmp_path / "global-0" / "checkpoint.json"
    known = json.loads(path.read_text())
    known["commits"].append({"number": 9, "offsets": {"table": {"0": 5}}})
    path.write_text(json.dumps(known))
    again = opened(table(), tmp_path)
    found = dict(again.offsets)
    again.commit()

    assert found == {TABLE: 1}
    assert json.loads(path.read_text())["commits"][-1]["number"] == 10


@pytest.mark.parametrize("content", [None, "rubbish"])
def test_state_without_a_checkpoint_is_deleted(tmp_path: Path, content: str | None) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.close()
    path = tmp_path / "global-0" / "checkpoint.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    again = opened(table(), tmp_path)

    assert (rows(again), again.offsets) == ({}, {})


def test_store_that_was_added_is_read_from_the_beginning_and_the_others_go_on(tmp_path: Path) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.close()
    builder = table()
    builder.global_table("second", materialized="more")
    again = opened(builder, tmp_path)

    assert again.offsets == {TABLE: 1}
    assert (rows(again), rows(again, "more")) == ({"a": "1"}, {})


def test_store_that_another_topic_feeds_now_is_emptied(tmp_path: Path) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.close()
    builder = StreamsBuilder()
    builder.global_table("second", materialized="rows")
    again = opened(builder, tmp_path)

    assert (rows(again), again.offsets) == ({}, {})


@pytest.mark.parametrize("file", ["CURRENT", "MANIFEST-*"])
def test_damaged_store_is_set_aside_and_read_anew_and_the_others_go_on(
    tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    builder = table()
    builder.global_table("second", materialized="more")
    state = opened(builder, tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.update([message("second", 0, "b", "2")])
    state.commit()
    state.close()
    next((tmp_path / "global-0" / "rocksdb" / "rows").glob(file)).write_text("")
    again = opened(builder, tmp_path)

    [aside] = (tmp_path / "global-0").glob("rows.damaged-*")
    assert again.offsets == {TopicPartition("second", 0): 1}
    assert (rows(again), rows(again, "more")) == ({}, {"b": "2"})
    assert f"global store 'rows' is damaged; it was set aside in {str(aside)!r}, and it is read anew" in caplog.text


def test_store_of_another_form_is_set_aside_and_read_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    builder.global_table("table", materialized="rows")
    state = opened(builder, tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.close()
    again = opened(builder, tmp_path, **{"dsl.store.format": "HEADERS"})

    [aside] = (tmp_path / "global-0").glob("rows.damaged-*")
    assert (rows(again), again.offsets) == ({}, {})
    assert f"and are looked for as 'with headers'. It was set aside in {str(aside)!r}, and is read anew" in caplog.text


def test_store_that_a_task_finds_damaged_is_set_aside_when_it_is_closed(tmp_path: Path) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    state.commit()
    state.end_restore()

    def read() -> None:
        raise DamagedStoreError("store 'rows' cannot be read", store="rows")

    with pytest.raises(DamagedStoreError):
        state.read(read)
    state.close()

    assert len([*(tmp_path / "global-0").glob("rows.damaged-*")]) == 1
    assert rows(opened(table(), tmp_path)) == {}


def open_again(state: GlobalState) -> None:
    state.close()
    state.open()


def read_anew(state: GlobalState) -> None:
    state.close()
    state.open()
    state.start_anew()


@pytest.mark.parametrize("end", [open_again, read_anew, lambda state: state.close(wipe=True)])
@pytest.mark.parametrize("committed", [False, True])
def test_damaged_store_that_was_set_aside_stays_when_state_is_deleted(
    tmp_path: Path, end: Callable[[GlobalState], None], committed: bool
) -> None:
    state = opened(table(), tmp_path)
    state.update([message("table", 0, "a", "1")])
    if committed:
        state.commit()

    def read() -> None:
        raise DamagedStoreError("store 'rows' cannot be read", store="rows")

    with pytest.raises(DamagedStoreError):
        state.read(read)
    end(state)
    state.close(wipe=True)

    assert [path.name.partition("-")[0] for path in (tmp_path / "global-0").iterdir()] == ["rows.damaged"]


def test_readers_of_a_store_that_hangs_are_refused_after_a_while_and_then_at_once_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over, reads = threading.Event(), threading.Event(), list[str]()

    def hang() -> None:
        begun.set()
        assert over.wait(PATIENCE_S)

    state = global_state(table(), tmp_path / "global-0", patience_s=0.05)
    state.open()
    hanging = threading.Thread(target=state.read, args=(hang,))
    hanging.start()
    assert begun.wait(PATIENCE_S)
    with pytest.raises(InvalidStateStoreError, match=r"could not be read within 0\.05 s: .* ask again, and look for"):
        state.read(lambda: reads.append("waited"))
    monkeypatch.setattr(state._lock, "_patience_s", PATIENCE_S)
    with pytest.raises(InvalidStateStoreError):
        state.read(lambda: reads.append("did not wait"))
    assert not state.soon(lambda: reads.append("soon"), lambda: None, 1)
    over.set()
    hanging.join()
    state.read(lambda: reads.append("read"))
    state.close()

    assert reads == ["read"]


def test_short_read_of_a_store_that_is_free_is_done_at_once(tmp_path: Path) -> None:
    state, reads = opened(table(), tmp_path), list[str]()

    assert state.soon(lambda: reads.append("soon"), lambda: reads.append("not after what was done at once"), 1)
    assert reads == ["soon"]


def test_state_that_cannot_be_deleted_is_an_error_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = opened(table(), tmp_path)

    def refused(path: Path) -> None:
        raise PermissionError(f"{path.name} may not be deleted")

    monkeypatch.setattr(shutil, "rmtree", refused)

    with pytest.raises(ProcessorStateError, match=r"global-0' cannot be deleted: rocksdb .*; delete it by hand"):
        state.close(wipe=True)


def test_folder_that_cannot_be_made_is_an_error_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "global-0").write_text("a file")

    with pytest.raises(ProcessorStateError, match=r"for global stores cannot be made: .* or set state.dir to a folder"):
        opened(table(), tmp_path)


def test_closing_closes_everything_and_raises_the_first_error(tmp_path: Path) -> None:
    class Failing(PutUpper):
        def close(self) -> None:
            raise RuntimeError("cannot close")

    state = opened(user_store(Failing), tmp_path)
    store = state.stores["caps"]

    with pytest.raises(RuntimeError, match="cannot close"):
        state.close()
    assert not store.is_open
    state.close()

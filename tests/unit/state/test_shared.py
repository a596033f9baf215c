"""The faces of a shared store: reads go through, changes are refused to readers, every call holds the lock."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.serdes import Serdes
from pykstreams.state import Stores, TimestampedKeyValueStore, ValueAndTimestamp
from pykstreams.state.shared import ReadOnlyStore, SharedStore
from tests.unit.state.support import Context


@pytest.fixture
def store(tmp_path: Path) -> Any:
    text = Serdes.string()
    made = Stores.timestamped_key_value_store_builder(
        Stores.in_memory_key_value_store("rows"), text, text, logging=False
    ).build()
    made.init(Context(tmp_path))
    made.put("a", ValueAndTimestamp("1", 5))
    made.put("b", ValueAndTimestamp("2", 6))
    return made


@pytest.fixture
def view(store: Any) -> Any:
    return ReadOnlyStore(store, Lock(), "table")


class WatchedLock:
    """Counts how often it was taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *error: object) -> None:
        pass


def test_reads_go_through(view: Any) -> None:
    with view.all() as rows, view.range("b", reverse=True) as some:
        found = ([key for key, _ in rows], [key for key, _ in some])

    assert found == (["a", "b"], ["b"])
    assert (view.get("a").value, view["b"].timestamp, "c" in view, view.get("c", 7)) == ("1", 6, False, 7)
    assert view.get_row("a") == ("1", 5)
    assert (view.name, view.is_open, view.approximate_num_entries()) == ("rows", True, 2)


def test_iterators_can_be_peeked_and_closed(view: Any) -> None:
    rows = view.all()

    assert rows.peek_next_key() == "a"
    assert next(rows).key == "a"
    rows.close()


def test_view_is_of_the_kind_of_its_store(view: Any, store: Any) -> None:
    assert isinstance(view, TimestampedKeyValueStore)
    assert isinstance(SharedStore(store, Lock()), TimestampedKeyValueStore)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("put", lambda view: view.put("a", None)),
        ("put_if_absent", lambda view: view.put_if_absent("c", None)),
        ("put_all", lambda view: view.put_all([])),
        ("delete", lambda view: view.delete("a")),
        ("put", lambda view: view.__setitem__("a", None)),
        ("delete", lambda view: view.__delitem__("a")),
        ("commit", lambda view: view.commit(1)),
        ("close", lambda view: view.close()),
    ],
)
def test_changes_are_refused_to_readers(view: Any, store: Any, name: str, change: Any) -> None:
    with pytest.raises(
        StreamsError, match=rf"^{name} of store 'rows' is refused: .* write to its topic 'table' instead"
    ):
        change(view)
    assert store.get("a").value == "1"
    assert store.is_open


def test_writer_may_change_the_store(store: Any) -> None:
    writer = SharedStore(store, Lock())
    writer["c"] = ValueAndTimestamp("3", 7)
    writer.put("a", None)
    del writer["b"]

    assert [key for key, _ in store.all()] == ["c"]


@pytest.mark.parametrize(
    "read",
    [
        lambda view: view.get("a"),
        lambda view: view["a"],
        lambda view: "a" in view,
        lambda view: view.get_row("a"),
        lambda view: view.all().close(),
        lambda view: [next(rows := view.all()), rows.close()],
    ],
)
def test_every_call_holds_the_lock(store: Any, read: Any) -> None:
    lock: Any = WatchedLock()
    read(ReadOnlyStore(store, lock, "table"))

    assert lock.taken >= 1

"""A changelog that is given the differences says what the other store says, whatever both hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.ids import TaskId
from pykstreams.serdes import JsonSerde, StringSerde
from pykstreams.state import Stores
from pykstreams.state.bulk import differences as module
from pykstreams.state.bulk.differences import differences
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.spec import StoreBuilder
from tests.unit.state.bulk.bulk_support import CONFIG

TASK = TaskId(0, 0)
TIME = 99
Contents = dict[str, tuple[str, int]]


def key_value() -> StoreBuilder[Any]:
    supplier = Stores.persistent_timestamped_key_value_store("rows")
    return Stores.timestamped_key_value_store_builder(supplier, StringSerde(), JsonSerde())


def plain() -> StoreBuilder[Any]:
    return Stores.key_value_store_builder(Stores.persistent_key_value_store("rows"), StringSerde(), JsonSerde())


def windows() -> StoreBuilder[Any]:
    supplier = Stores.persistent_window_store("rows", 86_400_000, 1000, False)
    return Stores.window_store_builder(supplier, StringSerde(), JsonSerde())


def sessions() -> StoreBuilder[Any]:
    return Stores.session_store_builder(Stores.persistent_session_store("rows", 86_400_000), StringSerde(), JsonSerde())


KINDS: dict[str, tuple[Callable[[], StoreBuilder[Any]], Callable[[bytes, int], bytes]]] = {
    "key-value": (key_value, lambda key, time: key),
    "plain": (plain, lambda key, time: key),
    "window": (windows, lambda key, time: key + time.to_bytes(8) + bytes(4)),
    "session": (sessions, lambda key, time: key + time.to_bytes(8) + time.to_bytes(8)),
}

contents = st.dictionaries(
    st.text("ab", min_size=1, max_size=3), st.tuples(st.text("xy", max_size=1), st.integers(1, 100_000)), max_size=12
)


def opened(kind: str, rows: Contents) -> OfflineStore:
    build, key_of = KINDS[kind]
    store = OfflineStore.in_memory(build(), TASK, CONFIG)
    found = {key_of(key.encode(), time): (value, time) for key, (value, time) in rows.items()}
    store.restore([(key, f'"{value}"'.encode(), time, ()) for key, (value, time) in sorted(found.items())])
    return store


def found(old: OfflineStore, new: OfflineStore, **more: Any) -> list[ChangelogRow]:
    given_ = differences(old.store, new.store, lambda read: read(), time=TIME, **more)
    return [row for batch in given_ for row in batch]


def table(rows: list[ChangelogRow]) -> dict[bytes, Any]:
    return {row[0]: row for row in rows if row[1] is not None}


@pytest.mark.parametrize("kind", KINDS)
@given(before=contents, after=contents, kept=st.sets(st.text("ab", min_size=1, max_size=3)))
def test_changelog_and_differences_say_what_the_new_store_says(
    kind: str, before: Contents, after: Contents, kept: set[str]
) -> None:
    after = {**after, **{key: row for key, row in before.items() if key in kept}}
    with opened(kind, {}) as nothing, opened(kind, before) as old, opened(kind, after) as new:
        changelog = table(found(nothing, old))
        for row in found(old, new):
            assert changelog.get(row[0]) != row
            changelog[row[0]] = row

        assert table(list(changelog.values())) == table(found(nothing, new))
        assert len(table(found(nothing, new))) == len(list(new.engine_rows()))
        assert table(found(old, new, everything=True)) == table(found(nothing, new))


def test_deletions_and_rows_without_a_time_get_the_time_that_is_given() -> None:
    with opened("plain", {"gone": ("x", 5)}) as old, opened("plain", {"new": ("y", 6)}) as new:
        assert found(old, new) == [(b"gone", None, TIME, ()), (b"new", b'"y"', TIME, ())]


def test_rows_are_read_in_chunks_each_in_a_turn_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    turns = []

    def turn(read: Any) -> Any:
        turns.append(read)
        return read()

    rows = dict.fromkeys(("a", "aa", "aaa", "b", "bb"), ("x", 5))
    with opened("key-value", rows) as old, opened("key-value", {"aab": ("x", 5)}) as new:
        batches = list(differences(old.store, new.store, turn, time=TIME))

    assert [len(batch) for batch in batches] == [4, 2]
    assert len(turns) == 4

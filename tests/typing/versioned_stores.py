"""Versioned stores that must type-check: what ``get`` gives depends on how it is asked; checked, never run."""

from typing import assert_type

from pykstreams.state import (
    PutResult,
    ReadOnlyVersionedKeyValueStore,
    ResultOrder,
    VersionedBytesStore,
    VersionedKeyValueStore,
    VersionedRecord,
    VersionedRecordIterator,
)


def reads(store: VersionedKeyValueStore[str, float], shown: ReadOnlyVersionedKeyValueStore[str, float]) -> None:
    assert_type(store.get("a"), VersionedRecord[float] | None)
    assert_type(store.get("a", 5), VersionedRecord[float] | None)
    assert_type(shown.get("a", as_of=5), VersionedRecord[float] | None)
    assert_type(store.get("a", 5, 9, ResultOrder.ASCENDING), VersionedRecordIterator[float])
    assert_type(store.get("a", None, time_to=None), VersionedRecordIterator[float])
    assert_type(shown.get("a", time_from=5, time_to=9), VersionedRecordIterator[float])
    store.get("a", time_from=5)  # type: ignore[call-overload]  # from there to where?
    store.get("a", as_of=5, time_to=9)  # type: ignore[call-overload]  # a time or a span


def writes(store: VersionedKeyValueStore[str, float], raw: VersionedBytesStore) -> None:
    assert_type(store.put("a", 1.0, 5), int)
    assert_type(store.put_with_result("a", None, 5), PutResult)
    assert_type(store.delete("a", 5), VersionedRecord[float] | None)
    assert_type(raw.get(b"a", 5), bytes | None)

"""The store of subscriptions: what the join writes in bytes others read as values; it is logged and restored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Serdes, StreamsConfig
from pykstreams.dsl.joins.foreign_key_join import SubscriptionStoreFactory
from pykstreams.errors import InvalidStateStoreError
from pykstreams.processors import ForeignKeySerdes
from pykstreams.serdes import CombinedKey, Instruction, SubscriptionWrapper, SubscriptionWrapperSerde
from pykstreams.state import ValueTimestampHeaders
from tests.unit.state.support import Context

TEXT = Serdes.string()
MESSAGE = SubscriptionWrapper(b"h" * 16, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, "1", 3)
RAW = SubscriptionWrapperSerde(TEXT).serialize("t", MESSAGE)
KEY = b"\0\0\0\1x1"
HEADERS = (("h", b"1"),)


def opened(tmp_path: Path, **settings: Any) -> tuple[Any, Context]:
    context = Context(tmp_path, {"application.id": "shop", **settings})
    factory = SubscriptionStoreFactory("subscriptions", ForeignKeySerdes("topic", TEXT, TEXT, TEXT))
    store = factory.builder(StreamsConfig(context.settings)).build()
    store.init(context)
    context.record(9, headers=(("of the record", None),))
    return store, context


@pytest.mark.parametrize(("store_format", "kept"), [("DEFAULT", ()), ("HEADERS", HEADERS)])
def test_what_was_put_in_bytes_is_read_as_values(tmp_path: Path, store_format: str, kept: Any) -> None:
    settings = {} if store_format == "DEFAULT" else {"dsl.store.format": store_format}
    store, _ = opened(tmp_path, **settings)
    store.put_subscription(KEY, RAW, 5, HEADERS)

    assert list(store.all()) == [(CombinedKey("x", "1"), ValueTimestampHeaders(MESSAGE, 5, kept))]
    store.close()


def test_the_changelog_has_time_and_headers_of_the_subscription_or_of_the_record_that_deletes(tmp_path: Path) -> None:
    store, context = opened(tmp_path)
    store.put_subscription(KEY, RAW, 5, HEADERS)
    store.put_subscription(KEY, None, 6, HEADERS)

    assert context.logged == [(KEY, RAW, 5, HEADERS), (KEY, None, 9, (("of the record", None),))]
    store.close()


def test_a_scan_finds_the_subscriptions_of_one_foreign_key_only(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    others = [b"\0\0\0\0x1", b"\0\0\0\2xx1", b"\0\0\0\1y1"]
    for key in (KEY, b"\0\0\0\1x2", *others):
        store.put_subscription(key, RAW, 5, ())

    assert list(store.subscriptions(b"\0\0\0\1x")) == [(KEY, RAW), (b"\0\0\0\1x2", RAW)]
    store.close()


def test_a_store_is_restored_from_its_changelog(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    store.restore([(KEY, RAW, 5, HEADERS), (b"\0\0\0\1x2", RAW, 6, ()), (KEY, None, 7, ())])
    store.end_restore()

    assert list(store.subscriptions(b"\0\0\0\1x")) == [(b"\0\0\0\1x2", RAW)]
    store.close()


def test_a_closed_store_tells_so(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    store.close()

    uses: tuple[Callable[[], object], ...] = (
        lambda: store.put_subscription(KEY, RAW, 5, ()),
        lambda: store.subscriptions(b""),
    )
    for use in uses:
        with pytest.raises(InvalidStateStoreError, match="store 'subscriptions' is not open"):
            use()

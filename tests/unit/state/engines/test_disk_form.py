"""A store is not opened over rows that lie on disk in another form than the one in which it looks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import DamagedStoreError
from pykstreams.core.windows import EmitStrategy
from pykstreams.serdes.primitives import LongSerde, StringSerde
from pykstreams.state import Stores
from pykstreams.state.dsl_suppliers import (
    DslKeyValueParams,
    DslSessionParams,
    DslStoreFormat,
    DslWindowParams,
    RocksDBDslStoreSuppliers,
)
from pykstreams.state.engines.disk_form import FORM_FILE
from pykstreams.state.spec import StoreBuilder
from tests.unit.state.support import NAME, Context

Make = Callable[[], StoreBuilder[Any]]
MINUTE = 60_000
TIME = 10_000_000
AT_ONCE, ON_CLOSE = EmitStrategy.ON_WINDOW_UPDATE, EmitStrategy.ON_WINDOW_CLOSE
HEADERS, TIMESTAMPED, PLAIN = DslStoreFormat.HEADERS, DslStoreFormat.TIMESTAMPED, DslStoreFormat.PLAIN
SUPPLIERS = RocksDBDslStoreSuppliers()


def window(
    emit: EmitStrategy = AT_ONCE,
    form: DslStoreFormat = TIMESTAMPED,
    *,
    sliding: bool = False,
    retention_ms: int = 4 * MINUTE,
) -> Make:
    def make() -> StoreBuilder[Any]:
        params = DslWindowParams(NAME, retention_ms, MINUTE, False, emit, sliding, form)
        build: Any = (
            Stores.timestamped_window_store_with_headers_builder
            if form is HEADERS
            else Stores.timestamped_window_store_builder
        )
        builder: StoreBuilder[Any] = build(SUPPLIERS.window_store(params), StringSerde(), LongSerde())
        return builder

    return make


def session(emit: EmitStrategy = AT_ONCE, form: DslStoreFormat = PLAIN) -> Make:
    def make() -> StoreBuilder[Any]:
        params = DslSessionParams(NAME, 4 * MINUTE, emit, form)
        build: Any = Stores.session_store_with_headers_builder if form is HEADERS else Stores.session_store_builder
        builder: StoreBuilder[Any] = build(SUPPLIERS.session_store(params), StringSerde(), LongSerde())
        return builder

    return make


def key_value(form: DslStoreFormat = TIMESTAMPED) -> Make:
    def make() -> StoreBuilder[Any]:
        build: Any = {
            PLAIN: Stores.key_value_store_builder,
            TIMESTAMPED: Stores.timestamped_key_value_store_builder,
            HEADERS: Stores.timestamped_key_value_store_with_headers_builder,
        }[form]
        supplier = SUPPLIERS.key_value_store(DslKeyValueParams(NAME, form))
        builder: StoreBuilder[Any] = build(supplier, StringSerde(), LongSerde())
        return builder

    return make


def versioned() -> StoreBuilder[Any]:
    supplier = Stores.persistent_versioned_key_value_store(NAME, 4 * MINUTE)
    return Stores.versioned_key_value_store_builder(supplier, StringSerde(), LongSerde())


def opened(make: Make, folder: Path) -> Any:
    store = make().build()
    store.init(Context(folder))
    return store


def written(make: Make, folder: Path) -> None:
    """Leaves a row of a store on disk."""
    store = opened(make, folder)
    rows = [(b"a" + key, b"\0" * 7 + b"\3", TIME, ()) for key in (_logged_end(make),)]
    store.restore(rows)
    store.commit(1)
    store.close()


def _logged_end(make: Make) -> bytes:
    """What follows the key in a changelog."""
    scope = make().supplier.metrics_scope
    time = TIME.to_bytes(8)
    return {"rocksdb-window": time + bytes(4), "rocksdb-session": time + time}.get(scope, b"")


CHANGES = {
    "windows emitted on close": (window(), window(ON_CLOSE)),
    "windows emitted at once": (window(ON_CLOSE), window()),
    "sliding windows emitted on close": (window(), window(ON_CLOSE, sliding=True)),
    "sliding windows emitted at once": (window(ON_CLOSE, sliding=True), window()),
    "sliding windows in place of others": (window(ON_CLOSE), window(ON_CLOSE, sliding=True)),
    "windows kept for longer": (window(), window(retention_ms=8 * MINUTE)),
    "windows with headers": (window(), window(form=HEADERS)),
    "windows without headers": (window(form=HEADERS), window()),
    "sessions emitted on close": (session(), session(ON_CLOSE)),
    "sessions emitted at once": (session(ON_CLOSE), session()),
    "sessions with headers": (session(), session(form=HEADERS)),
    "rows with headers": (key_value(), key_value(HEADERS)),
    "rows without headers": (key_value(HEADERS), key_value()),
    "rows with times": (key_value(PLAIN), key_value()),
    "versions": (key_value(), versioned),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
def test_store_is_not_opened_over_rows_of_another_form(old: Make, new: Make, tmp_path: Path) -> None:
    written(old, tmp_path)

    with pytest.raises(DamagedStoreError, match=f"store '{NAME}' of task 0_1 in .* its rows lie there as ") as raised:
        opened(new, tmp_path)
    assert raised.value.store == NAME
    opened(old, tmp_path).close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (window(), window(sliding=True)),
        (window(ON_CLOSE), window(ON_CLOSE, retention_ms=8 * MINUTE)),
        (key_value(), key_value()),
    ],
)
def test_store_is_opened_over_rows_of_its_form(old: Make, new: Make, tmp_path: Path) -> None:
    written(old, tmp_path)
    opened(new, tmp_path).close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (window(), window(ON_CLOSE)),
        (window(ON_CLOSE), window()),
        (window(), window(retention_ms=8 * MINUTE)),
    ],
)
def test_store_of_an_older_release_whose_keys_tell_another_form_is_not_opened(
    old: Make, new: Make, tmp_path: Path
) -> None:
    written(old, tmp_path)
    (tmp_path / "rocksdb" / NAME / FORM_FILE).unlink()

    with pytest.raises(DamagedStoreError, match="its rows lie there in another order than"):
        opened(new, tmp_path)


def test_store_of_an_older_release_is_opened_and_its_form_is_kept_from_then_on(tmp_path: Path) -> None:
    written(key_value(), tmp_path)
    form = tmp_path / "rocksdb" / NAME / FORM_FILE
    form.unlink()
    opened(key_value(), tmp_path).close()

    assert form.read_text() == "timestamped"

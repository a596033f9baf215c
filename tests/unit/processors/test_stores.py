from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from pykstreams.core.processor import OperatorContext
from pykstreams.processors.stores import (
    history_rows,
    join_window_rows,
    key_value_rows,
    keyed_rows,
    session_rows,
    store_of_class,
    subscription_rows,
    table_rows,
    versioned_rows,
    window_rows,
)
from pykstreams.state.buffers.join_buffer import JoinBuffer
from pykstreams.state.interfaces.operator_stores import TableRows
from pykstreams.state.shared import ReadOnlyStore
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore
from tests.unit.processors.store_fakes import (
    FakeJoinWindowStore,
    FakeSessionStore,
    FakeSubscriptions,
    FakeVersionedStore,
    FakeWindowStore,
)

Accessor = Callable[[OperatorContext, str], Any]


def of_join_buffer(context: OperatorContext, name: str) -> JoinBuffer:
    return store_of_class(JoinBuffer, context, name)


@pytest.mark.parametrize(
    ("accessor", "store"),
    [
        (keyed_rows, FakeStore()),
        (keyed_rows, FakeSessionStore()),
        (table_rows, FakeStore()),
        (table_rows, FakeVersionedStore()),
        (key_value_rows, FakeStore()),
        (versioned_rows, FakeVersionedStore()),
        (window_rows, FakeWindowStore(10)),
        (join_window_rows, FakeJoinWindowStore()),
        (session_rows, FakeSessionStore()),
        (subscription_rows, FakeSubscriptions()),
    ],
)
def test_store_of_the_kind_is_the_store_itself(accessor: Accessor, store: object) -> None:
    assert accessor(FakeOperatorContext(s=store), "s") is store


@pytest.mark.parametrize(
    ("accessor", "store", "kind"),
    [
        (keyed_rows, FakeSubscriptions(), "KeyedRows"),
        (table_rows, FakeSessionStore(), "TableRows"),
        (key_value_rows, FakeWindowStore(10), "KeyValueRows"),
        (versioned_rows, FakeStore(), "VersionedRows"),
        (window_rows, FakeStore(), "WindowRows"),
        (join_window_rows, FakeStore(), "JoinWindowRows"),
        (session_rows, FakeWindowStore(10), "SessionRows"),
        (subscription_rows, FakeStore(), "SubscriptionRows"),
        (of_join_buffer, FakeStore(), "JoinBuffer"),
    ],
)
def test_store_of_another_kind_is_refused_with_the_names_of_both(accessor: Accessor, store: object, kind: str) -> None:
    expected = f"NODE uses store 's' as {kind}, but it is a {type(store).__name__}; connect the operator to"

    with pytest.raises(TypeError, match=expected):
        accessor(FakeOperatorContext(s=store), "s")


def test_global_store_is_of_the_kind_of_the_store_behind_it() -> None:
    store = FakeStore()
    store.rows["a"] = ("x", 5)
    rows: TableRows[str, str] = table_rows(FakeOperatorContext(s=ReadOnlyStore(store, nullcontext(), "topic")), "s")

    assert rows.get_row("a") == ("x", 5)


def test_store_without_versions_has_no_history() -> None:
    assert history_rows(FakeOperatorContext(s=FakeStore()), "s") is None

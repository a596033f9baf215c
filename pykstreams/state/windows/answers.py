"""The queries that window stores answer."""

from __future__ import annotations

from typing import Any, cast

from pykstreams.state.interfaces.queries import WindowKeyQuery, WindowRangeQuery
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.queries.answers import NO_ANSWER, shown_rows
from pykstreams.state.queries.values import with_time


def answer(store: WindowStore[Any, Any], query: Query[Any]) -> object:
    """Finds the windows that a query asks for."""
    match query:
        case WindowKeyQuery():
            windows = store.fetch(query.key, query.time_from, query.time_to)
            return shown_rows(windows, with_time(store), store.name)
        case WindowRangeQuery(key=None):
            rows = store.fetch_all(cast("int", query.time_from), cast("int", query.time_to))
            return shown_rows(rows, with_time(store), store.name)
        case _:
            return NO_ANSWER

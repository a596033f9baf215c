"""The query that session stores answer."""

from __future__ import annotations

from typing import Any

from pykstreams.state.interfaces.queries import WindowRangeQuery
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.queries.answers import NO_ANSWER, shown_rows
from pykstreams.state.queries.values import alone


def answer(store: SessionStore[Any, Any], query: Query[Any]) -> object:
    """Finds the sessions of a key."""
    match query:
        case WindowRangeQuery(time_from=None):
            return shown_rows(store.fetch(query.key), alone(store), store.name)
        case _:
            return NO_ANSWER

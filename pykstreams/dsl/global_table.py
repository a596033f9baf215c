"""``GlobalKTable``: a table that every worker keeps whole, so that any key of it can be joined with."""

from __future__ import annotations

from typing import Generic, TypeVar

from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.dsl.place import Place, record_serdes_of
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.processors import AnyTableView

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(TellsWhere, Generic[K, V]):
    """All rows of a topic, on every worker; for joins of streams with any key, and for queries.

    It is read to its end before the first record of any stream is processed, and goes on with its topic from then on,
    without regard to the times of records. Source: ``GlobalKTable``, 4.3.1.
    """

    _elsewhere = dict.fromkeys(
        ("filter", "group_by", "join", "left_join", "map_values", "to_stream"),
        "a global table can be joined only: stream.join(it, ...); builder.table(...) has other steps",
    )

    def __init__(self, place: Place, view: AnyTableView, queryable_store_name: str | None) -> None:
        self._place = place
        self._view = view
        self._queryable_store_name = queryable_store_name

    def __repr__(self) -> str:
        return self._place.shown_as("GlobalKTable")

    def _repr_html_(self) -> str:
        """The table in a notebook, with the topic that it is read from."""
        return self._place.drawn_as("GlobalKTable")

    @property
    def _record_serdes(self) -> RecordSerdes:
        return record_serdes_of(self._place)

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store, if the user gave one."""
        return self._queryable_store_name

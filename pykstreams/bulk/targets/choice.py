"""Chooses how the rows for a store are encoded and folded: by the kind of the store, and by what the user says they
are.
"""

from __future__ import annotations

from pykstreams.bulk.application import Application, StorePlace
from pykstreams.bulk.sources.store_bootstrap import Content, StoreBootstrap
from pykstreams.bulk.targets.aggregates import Aggregates, aggregating_node
from pykstreams.bulk.targets.entries import Entries, SessionEntries, WindowEntries
from pykstreams.bulk.targets.left_table_rows import LeftTableRows, way_of
from pykstreams.bulk.targets.logged import ChangelogRows
from pykstreams.bulk.targets.target import Target
from pykstreams.bulk.targets.versions import JoinedStreamRows, VersionRows
from pykstreams.core.errors import StreamsError
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueStore
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.windows.suppliers import WindowBytesStoreSupplier


def choose_target(application: Application, spec: StoreBootstrap) -> Target:
    """Returns the target of one store; ``StreamsError`` where nothing is known to make such a store of such rows."""
    place = application.store(spec.store)
    way = way_of(place)
    content: Content = spec.content or ("entries" if way is None else "records")
    if content == "changelog":
        return ChangelogRows(place, spec.latest, spec.partitioner)
    if content == "records":
        if way is not None:
            return LeftTableRows(place, way, spec.latest, spec.partitioner)
        node = aggregating_node(place, spec.node)
        if node is None:
            raise StreamsError(
                f"no operator makes store {place.name!r} of records: it is no aggregate, and holds no rows of a "
                'referring table; give what it holds (content="entries"), or rows of its changelog '
                '(content="changelog")'
            )
        return Aggregates(place, node, spec.partitioner)
    return _entries(place, spec)


def _entries(place: StorePlace, spec: StoreBootstrap) -> Target:
    store, supplier = place.builder.build(), place.builder.supplier
    if isinstance(store, VersionedKeyValueStore):
        return VersionRows(place, spec.partitioner)
    if isinstance(store, WindowStore):
        if isinstance(supplier, WindowBytesStoreSupplier) and supplier.retain_duplicates:
            return JoinedStreamRows(place, spec.partitioner)
        _need(spec.window_start is not None, spec, "window_start")
        return WindowEntries(place, spec.latest, spec.partitioner)
    if isinstance(store, SessionStore):
        _need(spec.window_start is not None and spec.window_end is not None, spec, "window_start and window_end")
        return SessionEntries(place, spec.latest, spec.partitioner)
    if isinstance(store, KeyValueStore):
        return Entries(place, spec.latest, spec.partitioner)
    raise StreamsError(
        f"store {place.name!r} is a {type(store).__name__}, of which the entries cannot be given as rows; give rows of "
        'its changelog (content="changelog")'
    )


def _need(given: bool, spec: StoreBootstrap, names: str) -> None:
    if not given:
        raise StreamsError(
            f'store {spec.store!r} keeps windows: name the columns {names}, or say content="records", and the '
            "application's own operator makes the windows of the records"
        )

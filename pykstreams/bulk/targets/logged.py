"""Rows that are records of the store's changelog already: key and value are serialized, for stores of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.sources.rows import RowParts
from pykstreams.bulk.targets.entries import newest_of_keys
from pykstreams.bulk.targets.partitions import row_chooser
from pykstreams.bulk.targets.target import (
    Add,
    EncodedRow,
    EncodeRow,
    FoldOrder,
    FoldRows,
    Refuse,
    RowError,
    checked_time,
    no_key,
)
from pykstreams.core.types import StreamPartitioner
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, SessionKeySchema, WindowKeySchema
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.sessions.suppliers import SessionBytesStoreSupplier
from pykstreams.state.versions.suppliers import VersionedBytesStoreSupplier
from pykstreams.state.windows.suppliers import WindowBytesStoreSupplier


@dataclass(frozen=True)
class ChangelogRows:
    """Records of a changelog.

    Rows of a topic stay in their partition (``StoreJob.stays``); others go where the key of the user inside their key
    says.

    :param latest: whether a key may have several rows.
    """

    store: StorePlace
    latest: bool
    partitioner: StreamPartitioner[object, object] | None = None

    row_key = None

    @property
    def keeps_last(self) -> bool:
        """All versions of a key count."""
        return self.order is not FoldOrder.BY_TIME

    @property
    def order(self) -> FoldOrder:
        """Versions of all keys are logged in the order of time; windows and sessions are kept by time."""
        supplier = self.store.builder.supplier
        if isinstance(supplier, VersionedBytesStoreSupplier):
            return FoldOrder.BY_TIME
        composed = WindowBytesStoreSupplier, SessionBytesStoreSupplier
        return FoldOrder.BY_KEY if isinstance(supplier, composed) else FoldOrder.AS_STORED

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        name, supplier = self.store.name, self.store.builder.supplier
        choose = row_chooser(self.store, self.partitioner, layout)
        schema: WindowKeySchema | SessionKeySchema | None = None
        if isinstance(supplier, WindowBytesStoreSupplier):
            schema = WindowKeySchema(1)
        elif isinstance(supplier, SessionBytesStoreSupplier):
            schema = SessionKeySchema(1)
        no_prefix = bytes(PREFIX_BYTES)

        def encode(parts: RowParts, add: Add) -> None:
            key, value, timestamp, _, _ = parts
            if key is None:
                raise no_key(name)
            if not isinstance(key, bytes) or not (value is None or isinstance(value, bytes)):
                raise RowError(
                    f"a row for the changelog of store {name!r} has key {key!r} and value {value!r}; expected bytes"
                )
            time = checked_time(key, timestamp, name)
            user_key = key if schema is None else schema.unpack(no_prefix + key)[0]
            add(choose(key, value, user_key), key, time, value, ())

        return encode

    def folder(self) -> FoldRows:
        return _every if self.order is FoldOrder.BY_TIME else newest_of_keys(self.store.name, self.latest)


def _every(rows: Iterator[EncodedRow], refuse: Refuse) -> Iterator[ChangelogRow]:
    for key, time, value, headers in rows:
        yield key, value, time, headers

"""Versioned stores from the history of their keys, and window stores of stream joins from the records that wait.

Both are folded in the order of time, and not by key: a versioned store takes no record that is older than its newest
one by more than its retention, whatever their keys, so a changelog by key would lose old rows when it is read back; and
a store that retains duplicates numbers its rows in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.targets.entries import Entries
from pykstreams.bulk.targets.target import EncodedRow, EncodeRow, FoldOrder, FoldRows, Refuse
from pykstreams.core.types import StreamPartitioner
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, WindowKeySchema
from pykstreams.state.interfaces.store import ChangelogRow


@dataclass(frozen=True)
class VersionRows:
    """Versions of the keys of a versioned store: each row is valid from its timestamp on, ``None`` deletes."""

    store: StorePlace
    partitioner: StreamPartitioner[object, object] | None = None
    row_key = None
    keeps_last = False
    order = FoldOrder.BY_TIME

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        return Entries(self.store, True, self.partitioner).encoder(layout)

    def folder(self) -> FoldRows:
        return _as_they_are


@dataclass(frozen=True)
class JoinedStreamRows:
    """Records of one side of a stream join, in the window store of that side: key, value and timestamp."""

    store: StorePlace
    partitioner: StreamPartitioner[object, object] | None = None
    row_key = None
    keeps_last = False
    order = FoldOrder.BY_TIME

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        return Entries(self.store, True, self.partitioner).encoder(layout)

    def folder(self) -> FoldRows:
        pack = WindowKeySchema(1).pack

        def fold(rows: Iterator[EncodedRow], refuse: Refuse) -> Iterator[ChangelogRow]:
            numbers = count(1)
            for key, time, value, headers in rows:
                yield pack(key, time, next(numbers))[PREFIX_BYTES:], value, time, headers

        return fold


def _as_they_are(rows: Iterator[EncodedRow], refuse: Refuse) -> Iterator[ChangelogRow]:
    for key, time, value, headers in rows:
        yield key, value, time, headers

"""Records on their way: the columns of the batches that tasks are fed with, and of the files that they send.

Tasks take records in the order of (time, input, origin, order). ``time`` is that by which they are sorted, and
``timestamp`` what a record carries. They differ where the topology extracts times from values, and where records have
an order already, that of offsets or of the task that sent them: there ``time`` is the highest one so far, and so the
order is that in which a worker takes them, which goes by the first record of each queue.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pykstreams.bulk.sources.header_columns import HEADERS
from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import pack_headers

RECORDS: Final = pa.schema(
    [
        ("task", pa.int32()),
        ("time", pa.int64()),
        ("input", pa.int32()),
        ("origin", pa.int64()),
        ("order", pa.int64()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.binary()),
    ]
)
"""Records for the tasks of a sub-topology.

``task`` is the partition, ``input`` the number of the topic among those that are read, ``origin`` and ``order`` tell
where a record stood; an ``offset`` of -1 is not known.
"""

RECORDS_SQL: Final = (
    "task int, time long, input int, origin long, `order` long, offset long, timestamp long, key binary, value binary, "
    "headers binary"
)
"""The same, as Spark says it."""

BY_TIME: Final = ("time", "input", "origin", "order")

SENT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS),
        ("task", pa.string()),
        ("number", pa.int64()),
        ("time", pa.int64()),
    ]
)
"""Records that tasks have sent.

``number`` counts those of one task, in the order in which it sent them; ``time`` is the highest timestamp that it had
sent to the topic up to there. Sorted by (time, task, number) they stand as a topic has them: by time, as far as the
order of each task allows.
"""

AS_SENT: Final = ("time", "task", "number")


def packed(headers: Headers) -> bytes | None:
    """Headers as ``RECORDS`` has them."""
    return pack_headers(headers) if headers else None

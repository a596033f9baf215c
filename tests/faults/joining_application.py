"""What the workers run that join: results are texts that tell both sides, and ``None`` where one is missing.

    pairs     lines and answers of a key that are near each other in time: an outer join of streams. What finds nobody
              comes out alone, when its window and the grace are over
    linked    the last line of each key with the last note of its group: a foreign-key join of tables
    rated     each line with the rate that its key had at the time of the line: a join with a versioned table, for whose
              late updates lines wait

Invariant of the input: each partition is in the order of its timestamps, and none is behind another one for longer than
the grace. So every result is settled by the input alone, except how many lines of a key ``linked`` passes over.
"""

from __future__ import annotations

from typing import Any

from pykstreams import (
    Consumed,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TableJoined,
    Topology,
)
from tests.faults.shifted_clock import follow
from tests.faults.topics import ANSWERS, GRACE_MS, LINES, NEAR_MS, NOTES, RATES, Output, checked, group_of

HISTORY_MS = 4 * GRACE_MS
text, number = Serdes.string(), Serdes.long()
read = Consumed(key_serde=text, value_serde=text)
written = Produced(key_serde=text, value_serde=text)


def together(left: object, right: object) -> str:
    return f"{left}+{right}"


def build(config: Any) -> Topology:
    follow(config)
    builder = StreamsBuilder()
    lines = builder.stream(LINES, read).map_values(checked)

    pairs = lines.outer_join(
        builder.stream(ANSWERS, read),
        together,
        windows=JoinWindows(NEAR_MS, grace=GRACE_MS),
        stream_joined=StreamJoined(
            name="pairs", store_name="pairs", key_serde=text, value_serde=text, other_value_serde=text
        ),
    )
    pairs.to(Output.PAIRS.topic(config.application_id), written)

    notes = builder.table(NOTES, Consumed(key_serde=text, value_serde=number), materialized=Materialized("notes-store"))
    last_lines = lines.to_table(materialized=Materialized("lines-store", key_serde=text, value_serde=text))
    linked = last_lines.join(
        notes,
        together,
        foreign_key_extractor=group_of,
        table_joined=TableJoined(name="link"),
        materialized=Materialized(Output.LINKED.store, key_serde=text, value_serde=text),
    )
    linked.to_stream().to(Output.LINKED.topic(config.application_id), written)

    history = Materialized[str, str](Stores.persistent_versioned_key_value_store(Output.RATED.store, HISTORY_MS))
    rates = builder.table(RATES, read, materialized=history)
    waiting: Joined[str, str, str] = Joined(name="rated", key_serde=text, value_serde=text, grace_period=GRACE_MS)
    lines.left_join(rates, together, joined=waiting).to(Output.RATED.topic(config.application_id), written)
    return builder.build(config)

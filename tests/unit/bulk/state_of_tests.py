"""A small application with a store of each kind, and the state that it has left on disk: of two partitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pykstreams.core.config import StreamsConfig
from pykstreams.dsl.script import load_script
from tests.unit.runtime.queries.queried import Application

SCRIPT = """
from pykstreams import Materialized, Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows
from pykstreams.serdes import JsonSerde

application_id = "shop"
config = {"default.key.serde": "pykstreams.serdes.primitives:StringSerde",
          "default.value.serde": "pykstreams.serdes.primitives:StringSerde"}

def build():
    builder = StreamsBuilder()
    stream = builder.stream("in")
    grouped = stream.group_by_key()
    grouped.count(materialized=Materialized("totals"))
    grouped.windowed_by(TimeWindows(10_000, grace=0)).count(materialized=Materialized("per-window"))
    grouped.windowed_by(SessionWindows(5_000, grace=0)).count(materialized=Materialized("per-session"))
    plain = Materialized(Stores.persistent_key_value_store("plain"), value_serde=Serdes.bytes())
    stream.map_values(str.encode).to_table(materialized=plain)
    stream.to_table(materialized=Materialized(Stores.persistent_versioned_key_value_store("history", 20_000)))
    wares = Materialized("wares", value_serde=JsonSerde())
    stream.map_values(lambda colour: {"colour": colour, "sizes": {"s": 1}}).to_table(materialized=wares)
    stream.to_table(materialized=Materialized(Stores.in_memory_key_value_store("forgotten")))
    return builder
"""
ROWS = (
    ("apple", "red", 1),
    ("apple", "green", 12_000),
    ("pear", "yellow", 13_000),
)
"""Of partition 1."""


def script_in(folder: Path, name: str = "shop_with_state") -> str:
    """Writes the script."""
    path = folder / f"{name}.py"
    path.write_text(SCRIPT)
    return str(path)


def state_in(folder: Path, script: str, name: str = "shop", rows: Sequence[tuple[str, str | None, int]] = ROWS) -> Path:
    """Runs a script that reads the topic ``in``, and gives the folder of the application below ``state.dir``."""
    loaded = load_script(script)
    topology = loaded.build(StreamsConfig({"application.id": name, **loaded.settings}))
    app = Application(topology, folder / "tasks", partitions=2)
    (folder / name).mkdir()
    for task in app.by_partition.values():  # as a worker names them
        (folder / name / str(task.id)).symlink_to(folder / "tasks" / str(task.id.partition))
    app.start()
    app.feed(*rows, partition=1)
    app.commit()
    app.close()
    return folder / name

"""What a topology emits does not depend on where its stores are, nor on the optimizer.

Every recorded case of the parts that are done is run with the stores of the DSL in RocksDB and in memory, and with the
optimizer off and on. What reaches topics of the user, with keys, values, times, headers and order, is the same, and so
is an error. There are two exceptions, both of them rules of Kafka Streams (4.3.1):

- With ``EmitStrategy.ON_WINDOW_CLOSE`` memory drops a window when its retention is over, which may be before anybody
  finds that it is closed, while RocksDB keeps it for the rest of its segment (``InMemoryWindowStore``,
  ``InMemorySessionStore``). So engines are not compared there.
- The optimizer refuses some topologies of merged streams outright, and says so
  (``InternalStreamsBuilder.mergeRepartitionTopics``).

Random programs are compared over both engines only: Kafka Streams' optimizer changes what some of them emit, by joining
a stream with itself in one store, and by merging repartition topics, which changes the order of records.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.areas import DONE, HERE, done_files
from tests.conformance.generate import generate
from tests.conformance.report import load
from tests.conformance.run import run
from tests.conformance.templates.catalogue import TEMPLATES, chosen
from tests.conformance.values import Json

IN_ROCKS_DB = {"dsl.store.suppliers.class": "rocks_db", "topology.optimization": "none"}
IN_MEMORY = {"dsl.store.suppliers.class": "in_memory", "topology.optimization": "none"}
OPTIMIZED = {"dsl.store.suppliers.class": "rocks_db", "topology.optimization": "all"}

SEED, RECORDS = 31, 30


class Emitted(NamedTuple):
    """What users see of a run: records of topics that are not the application's own, in order, and the error."""

    records: list[Json]
    error: Json


@pytest.mark.parametrize("path", done_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_emitted_records_depend_neither_on_the_store_engine_nor_on_the_optimizer(path: Path) -> None:
    case = load(path)

    plain = emitted(case, IN_ROCKS_DB)

    if not emits_on_window_close(case):
        assert plain == emitted(case, IN_MEMORY)
    optimized = emitted(case, OPTIMIZED)
    if not refused_by_the_optimizer(optimized):
        assert plain == optimized


@pytest.mark.parametrize("template", chosen(None, DONE))
def test_records_of_random_programs_do_not_depend_on_the_store_engine(template: str, tmp_path: Path) -> None:
    (path,) = generate(tmp_path, {template: TEMPLATES[template]}, [SEED], RECORDS)
    case = load(path)

    if not emits_on_window_close(case):
        assert emitted(case, IN_ROCKS_DB) == emitted(case, IN_MEMORY)


def test_memory_loses_windows_that_are_emitted_on_close_as_in_kafka_streams() -> None:
    """So the first exception is needed: of this case, run in memory, Kafka Streams emits nothing at all."""
    case = load(HERE / "cases" / "window" / "emit_on_close_hopping.json")

    kept, lost = emitted(case, IN_ROCKS_DB), emitted(case, IN_MEMORY)

    assert emits_on_window_close(case)
    assert [record["ts"] for record in kept.records] == [7]
    assert lost.records == []


def emitted(case: Json, settings: dict[str, str]) -> Emitted:
    """Runs a case with other settings."""
    without_answer = {name: content for name, content in case.items() if name != "expect"}
    result = run({**without_answer, "config": {**case.get("config", {}), **settings}}).result
    own = result.get("internal_topics", {})
    records = [event for event in result.get("events", ()) if "topic" in event and event["topic"] not in own]
    return Emitted(records, result.get("error"))


def emits_on_window_close(case: Json) -> bool:
    """Whether any windowed stream of the case emits when windows close."""
    return any(step.get("strategy") == "on_window_close" for step in case["topology"])


def refused_by_the_optimizer(result: Emitted) -> bool:
    """Whether it is the optimizer that the topology was refused by."""
    return result.error is not None and "merge.repartition.topics" in result.error["message"]

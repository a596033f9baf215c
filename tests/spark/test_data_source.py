"""``spark.read.format("pykstreams")``: one session, one test with a job for each thing that only Spark can show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykstreams.spark import StoreBootstrap, bootstrap, register
from tests.unit.bulk.state_of_tests import script_in, state_in


@pytest.mark.nightly  # the page of data frames is run each time
def test_state_and_bootstraps_are_data_frames(spark: Any, tmp_path: Path) -> None:
    script = script_in(tmp_path)
    state = str(state_in(tmp_path, script))
    register(spark)

    def frame(store: str, path: str, schema: str | None = None, **options: str) -> Any:
        reader = spark.read.format("pykstreams").options(app=script, store=store, **options)
        return (reader if schema is None else reader.schema(schema)).load(path)

    history = frame("history", state)
    assert [("key", "string"), ("valid_from", "timestamp"), ("valid_to", "timestamp"), ("value", "string")] == (
        history.dtypes[2:]
    )
    # in this order: what a where asked for must not stay with the frame
    assert (1, 3) == (history.where("value = 'red'").count(), history.count())
    assert 2 == history.rdd.getNumPartitions()
    assert ["red"] == [row.value for row in frame("history", state, as_of="1970-01-01T00:00:11Z").collect()]

    wares = frame("wares", state, "key string, value struct<colour: string, sizes: map<string, bigint>>")
    assert {("apple", "green", 1), ("pear", "yellow", 1)} == set(
        map(tuple, wares.selectExpr("key", "value.colour", "value.sizes['s']").collect())
    )

    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"id": f"k{n}", "n": n}) + "\n" for n in range(40)))
    stores = [StoreBootstrap("totals", str(source), key="id", value="n", timestamp=5)]
    offline: dict[str, Any] = {"engine": "local", "processes": 1, "changelog": "base-only", "source_offsets": None}
    bootstrap(script, stores, out=tmp_path / "made", partitions=3, **offline)
    totals = frame("totals", str(tmp_path / "made"))
    assert (4, 40) == (totals.where("value < 4").count(), totals.count())
    assert 80 == totals.alias("a").join(totals.alias("b"), "key").count() + totals.where("task like '0_%'").count()

    with pytest.raises(Exception, match="store 'totals' keeps no history, it is a key-value store; leave as_of out"):
        frame("totals", state, as_of="5").collect()

"""The example ``bootstrap_from_snapshot.py``: its state from files equals that from records."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from examples.bootstrap_from_snapshot import bootstrap_from_snapshot as example
from pykstreams import Serdes
from pykstreams.bulk.application import Application
from pykstreams.core.ids import TaskId
from pykstreams.serdes import JsonSerde
from pykstreams.state.bulk.manifest import read
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.testing import TopologyTestDriver


@pytest.mark.slow
def test_what_customers_have_spent_is_the_same_from_files_as_from_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bootstrap_from_snapshot.py", str(tmp_path), "--engine", "local"])
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    example.main()

    page = (Path(example.__file__).parent / "README.md").read_text(encoding="utf-8")
    assert f"```\n{capsys.readouterr().out}```\n" in page
    with TopologyTestDriver(example.build()) as driver:
        orders = driver.create_input_topic("orders", Serdes.string(), JsonSerde())
        for row in pq.read_table(tmp_path / "orders.parquet").to_pylist():
            at = row.pop("at")
            orders.pipe_input(row["customer"], row, timestamp=at)
        expected = {row.key: row.value.value for row in driver.get_all_state_stores()["spent"].all()}
    assert expected == spent(tmp_path)
    assert f'{{"key":"customer-7","value":{expected["customer-7"]},' in page


def spent(folder: Path) -> dict[str, int]:
    application = Application(example.__file__)
    place, found = application.store("spent"), {}
    for partition, files in read(folder / "bootstrap").stores["spent"].tasks.items():
        task, directory = TaskId(place.part.id, partition), folder / f"task-{partition}"
        directory.mkdir()
        made = [StoreToMake(place.builder, files, 0, place.changelog)]
        take_over(directory, task, folder / "bootstrap", made, application.config, "mark")
        with OfflineStore.in_folder(place.builder, task, application.config, directory) as store:
            found.update({row.key: row.value for row in store.rows()})
    return found

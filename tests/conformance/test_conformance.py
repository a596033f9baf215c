"""Every recorded case of the parts that are done gives what Kafka Streams gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.areas import HERE, done_files, parts
from tests.conformance.report import file_problems


@pytest.mark.parametrize("path", done_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case_gives_what_kafka_streams_gave(path: Path) -> None:
    found = file_problems(path)

    assert found == [], "\n".join(["", *found])


def test_every_recorded_case_belongs_to_a_part() -> None:
    recorded = set((HERE / "cases").rglob("*.json"))

    assert recorded == set(parts())

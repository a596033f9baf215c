"""One Spark session for all tests that need one: starting it takes longer than all of them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where tests run in several processes, one of them has the session."""
    item.add_marker(pytest.mark.slow)
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two cores on this machine, which tries a task four times, and twice at once if it is slow."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'pykstreams[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java on this machine, which Spark needs; install a JDK, 17 or 21")
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")))
    session = (
        SparkSession.builder.master("local[2,4]")
        .appName("pykstreams tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "512m")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()

"""The test of the page about tests on clusters holds; that on a real broker is in
``tests/integration/test_kafka_fixture.py``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pykstreams.testing import EmbeddedCluster

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "tests-on-clusters.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> Iterator[dict[str, Any]]:
    module = ModuleType("tests_on_clusters")
    sys.modules[module.__name__] = module  # dataclasses look there
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, module.__dict__)
    yield vars(module)
    del sys.modules[module.__name__]


@pytest.mark.slow
def test_the_test_on_an_embedded_cluster_holds(
    page: dict[str, Any], embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    page["test_the_application_sums_up"](embedded_cluster, tmp_path)

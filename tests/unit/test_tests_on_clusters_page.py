"""The page about tests on clusters runs, and prints what it says; its test on a real broker is in
``tests/integration/test_kafka_fixture.py``."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pykstreams.testing import EmbeddedCluster, TopologyTestDriver

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "tests-on-clusters.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> Iterator[dict[str, Any]]:
    module = ModuleType("tests_on_clusters")
    sys.modules[module.__name__] = module  # dataclasses look there
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(code, module.__dict__)
    yield {**vars(module), "said": said.getvalue()}
    del sys.modules[module.__name__]


def test_the_message_of_a_failed_assertion_is_that_of_the_page(page: dict[str, Any]) -> None:
    assert f"```\n{page['said']}```" in PAGE


def test_the_driver_test_and_the_property_hold(
    page: dict[str, Any], topology_test_driver: Callable[..., TopologyTestDriver]
) -> None:
    page["test_orders_of_a_customer_are_summed_up"](topology_test_driver)
    page["test_sums_are_those_of_a_counter"]()


@pytest.mark.slow
def test_the_test_on_an_embedded_cluster_holds(
    page: dict[str, Any], embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    page["test_the_application_sums_up"](embedded_cluster, tmp_path)

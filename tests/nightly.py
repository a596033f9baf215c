"""The pytest side of the marker ``nightly``: what takes too long for each change is run when it is asked for.

Invariant: a test with the marker runs only where ``-m`` speaks of it (``-m nightly``, ``-m "nightly or slow"``), so
that neither a plain run nor one with another ``-m`` has to leave it out by hand.
"""

from __future__ import annotations

import re

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects nightly tests, unless the selection by ``-m`` has decided about them."""
    if re.search(r"\bnightly\b", config.getoption("markexpr")):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in set(nightly)]

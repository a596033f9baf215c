"""The examples of docs/reference/serdes.md and of the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import pykstreams.core.hashing
import pykstreams.serdes

MODULES = [f"pykstreams.serdes.{module.name}" for module in pkgutil.iter_modules(pykstreams.serdes.__path__)]


def test_the_examples_of_the_page_run() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "serdes.md"

    failed, attempted = doctest.testfile(str(page), module_relative=False)

    assert attempted > 20
    assert failed == 0


@pytest.mark.parametrize("name", [*MODULES, pykstreams.core.hashing.__name__])
def test_the_examples_of_the_docstrings_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))

    assert failed == 0

"""The configuration page of the manual is made from the table, and up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_configuration_page_is_current() -> None:
    """When this fails: python scripts/configuration_page.py"""
    spec = importlib.util.spec_from_file_location("configuration_page", ROOT / "scripts" / "configuration_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert module.PAGE == ROOT / "docs" / "reference" / "configuration.md"
    assert module.PAGE.read_text(encoding="utf-8") == module.page()

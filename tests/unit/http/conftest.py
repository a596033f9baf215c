"""What holds for all tests over HTTP."""

from __future__ import annotations

import pytest

from pykstreams.http import staleness


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of brokers are waited for, however busy the machine is."""
    monkeypatch.setattr(staleness, "_PATIENCE_S", 60.0)

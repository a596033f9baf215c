"""What is to end with the tests is taken back once, whoever finds that it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.brokers import reaper


def test_two_threads_that_see_an_end_at_the_same_time_take_it_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, object]] = []
    meanwhile: list[Callable[[], None]] = []

    def tell(to: Any, what: dict[str, object]) -> None:
        told.append(what)
        if meanwhile:
            meanwhile.pop()()  # as another thread does while this one still writes

    monkeypatch.setattr(reaper, "_tell", tell)
    take_back = reaper.when_killed(["true"])
    del told[:]
    meanwhile.append(take_back)

    take_back()
    take_back()

    assert len(told) == 1

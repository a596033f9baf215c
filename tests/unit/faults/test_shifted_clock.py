"""The clock of a worker follows a file, at every look."""

from pathlib import Path

import pytest

from pykstreams.core.clock import SystemClock
from tests.faults.shifted_clock import SETTING, follow, shift

HOUR_MS = 3_600_000


def test_a_clock_goes_ahead_and_back_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now_ms", SystemClock.now_ms)  # put back afterwards
    file = tmp_path / "clock"
    shift(file, 0)
    clock = SystemClock()
    before = clock.now_ms()
    follow({SETTING: str(file)})

    assert 0 <= clock.now_ms() - before < HOUR_MS
    shift(file, HOUR_MS)
    assert HOUR_MS <= clock.now_ms() - before < 2 * HOUR_MS
    shift(file, -HOUR_MS)
    assert -HOUR_MS <= clock.now_ms() - before < 0


def test_without_the_setting_the_clock_is_the_machine_s() -> None:
    own = SystemClock.now_ms
    follow({})

    assert SystemClock.now_ms is own

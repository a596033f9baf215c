"""The memory of workers: samples in time, the slope of those that are warm, and a picture."""

import os
from pathlib import Path

import pytest

from tests.faults.memory import Memory, Sample, picture, rss_bytes, slope_mb_per_hour

MB = 1 << 20


def life(process: int, level_mb: float, mb_per_hour: float, seconds: int = 600, worker: str = "one") -> list[Sample]:
    return [
        Sample(at, worker, process, round((level_mb + mb_per_hour * at / 3600) * MB)) for at in range(0, seconds, 5)
    ]


def test_the_slope_is_that_of_each_process_whatever_its_level() -> None:
    assert slope_mb_per_hour([*life(1, 100, 36), *life(2, 500, 36)]) == pytest.approx(36, rel=1e-3)


def test_what_grows_in_the_first_minutes_does_not_count() -> None:
    samples = [Sample(at, "one", 1, min(at, 170) * MB) for at in range(0, 600, 5)]

    assert slope_mb_per_hour(samples) == 0


def test_there_is_no_slope_of_processes_that_live_for_less_than_four_minutes() -> None:
    assert slope_mb_per_hour([*life(1, 100, 36, seconds=230), *life(2, 100, 36, seconds=230)]) is None


def test_samples_are_taken_every_five_seconds_and_written(tmp_path: Path) -> None:
    if not rss_bytes(os.getpid()):
        pytest.skip("memory is known on Linux only")
    memory = Memory()
    for at_s in (0.0, 4.9, 5.0, 7.0, 10.1):
        memory.look(at_s, {os.getpid(): "one"})

    assert [sample.at_s for sample in memory.samples] == [0.0, 5.0, 10.1]
    most, slope = memory.of(["one"])
    assert most > 1
    assert slope is None
    memory.write(tmp_path)
    assert len((tmp_path / "memory.csv").read_text().splitlines()) == 4
    assert "<polyline" in (tmp_path / "memory.svg").read_text()


def test_the_picture_has_a_line_for_each_life_and_a_name_for_each_worker() -> None:
    drawn = picture([*life(1, 100, 0), *life(2, 50, 0), *life(3, 70, 0, worker="two")])

    assert (drawn.count("<polyline"), drawn.count(">one<"), drawn.count(">two<")) == (3, 1, 1)

"""The figures of ``docs/why.md`` are those of ``benchmarks/README.md``, and older ones those of decision 0053."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
BEFORE = (ROOT / "docs" / "decisions" / "0053-what-a-record-costs.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d., ]+) \|$", PAGE, re.MULTILINE)


def test_the_page_shows_each_workload() -> None:
    assert [row[0] for row in ROWS] == ["w1-json", "w2", "w3", "w4", "w5", "w6"]


@pytest.mark.parametrize(("workload", "ours", "java", "ratio", "before"), ROWS)
def test_row_of_the_page_is_the_newest_of_the_benchmarks_and_has_the_ratios_before(
    workload: str, ours: str, java: str, ratio: str, before: str
) -> None:
    row = rf"^\| `{workload}` \| ([\d.]+) \([^)]+\) \| ([\d.]+) \([^)]+\) \| ([\d.]+) \|"
    [newest] = re.findall(row, MEASURED, re.MULTILINE)
    others = [found for found in re.findall(row, BEFORE, re.MULTILINE) if found != newest]

    assert (ours, java, ratio) == newest
    assert before.split(", ") == [other[2] for other in others]


def test_figures_beside_the_bare_loop_are_those_of_the_benchmarks() -> None:
    found = re.findall(r"^\| `(w1-json|w2)` \| ([\d.]+) \| [\d.]+ \| (\d+), \d+, (\d+) MB \|$", MEASURED, re.MULTILINE)
    [json_row, aggregate_row] = found

    assert f"`w1-json` took {json_row[1]} and `w2` {aggregate_row[1]} times the CPU" in PAGE
    assert f"{json_row[2]} MB for `w1-json` and {aggregate_row[2]} MB for `w2`" in PAGE
    assert f"Java had {json_row[3]} and {aggregate_row[3]}" in PAGE
    saved = sorted(round(100 * (1 - 1 / float(row[1]))) for row in found)
    assert f"{saved[0]} to {saved[1]} % less CPU" in PAGE


def test_restoring_is_as_fast_as_in_the_benchmarks() -> None:
    [(ours, java)] = re.findall(
        r"^\| `restore` \| [\d.]+, (\d+) k rows/s \([^)]+\) \| [\d.]+, (\d+) k rows/s \(", MEASURED, re.M
    )

    assert f"{ours},000 rows a second, where Kafka Streams had {java},000" in PAGE

"""What is told of questions beside processing, and of levels of metrics."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks import metrics, queries
from benchmarks.figures import Figures
from benchmarks.queries import Asked, Case, told


def figures(records_per_second: float, cpu: float) -> Figures:
    return Figures(records_per_second, cpu, None, 0)


def printed(table: Table) -> str:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def test_a_rate_is_compared_with_the_run_of_its_round_that_nobody_asked() -> None:
    nobody, elsewhere, asked_itself = Case(0), Case(1000, elsewhere=True), Case(1000)
    runs = {
        nobody: [figures(1000, 1), figures(500, 1)],
        elsewhere: [figures(950, 1), figures(480, 1)],
        asked_itself: [figures(900, 2), figures(450, 2)],
    }
    asked = {
        nobody: [Asked(), Asked()],
        elsewhere: list[Asked](),
        asked_itself: [Asked("200=2", [1.0, 3.0]), Asked("200=1", [2.0])],
    }

    *_, other, row, _ = printed(queries.table(runs, asked)).replace("│", " ").splitlines()

    assert other.split() == ["1,000", "requests/s", "of", "another", "worker", "715", "0.95", "1.00", "1.00"]
    shares = ["675", "0.90", "0.94", "2.00"]
    assert row.split() == ["1,000", "requests/s", *shares, "2.0", "3.0", "3.0", "3.0", "200=1"]


def test_nobody_who_asked_has_nothing_to_tell() -> None:
    assert told(iter(())) == Asked()


def test_a_level_is_compared_with_the_first_one() -> None:
    found = {"none": [figures(1000, 5.0)], "INFO": [figures(990, 5.05)]}

    row = printed(metrics.table("w1-json", found)).splitlines()[-2].replace("│", " ").split()

    assert row == ["INFO", "990", "5.05", "5.05", "1.010"]

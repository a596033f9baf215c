"""Shows how far a job is: a line that moves on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown_progress(store: str, shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function that takes (what is done, how far, of how much), for the building of one store."""
    if not shown:
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, int] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(f"{store}: {what}", total=total)
            bars.update(bars.task_ids[tasks[what]], completed=done, total=total)

        yield show

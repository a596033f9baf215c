"""The picture that ``pykstreams top`` makes of two answers: sums, tasks, nodes, copies, the latest lines of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pykstreams.cli.live.facts import InstanceFacts, TaskFacts

LOG_LINES = 8
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """The facts of all instances at one moment, and at the one before, of which the rates are made."""

    instances: Sequence[InstanceFacts]
    before: Sequence[InstanceFacts] = ()

    def reached(self) -> list[InstanceFacts]:
        """The instances that have told facts."""
        return [one for one in self.instances if "error" not in one]

    def tasks(self) -> list[tuple[InstanceFacts, TaskFacts]]:
        """The instances with their tasks, in the order of the tasks."""
        found = [(one, task) for one in self.reached() for task in one["tasks"]]
        return sorted(found, key=lambda pair: (pair[1]["subtopology"], pair[1]["partition"]))

    def rate(self, one: InstanceFacts, count: Callable[[InstanceFacts], int | None]) -> float | None:
        """How much something of an instance has grown, per second; ``None`` until there are two answers of it."""
        then = next((other for other in self.before if other.get("instance") == one["instance"]), None)
        if then is None or "error" in then or one["now_ms"] <= then["now_ms"]:
            return None
        new, old = count(one), count(then)
        if new is None or old is None:
            return None
        return max(0, new - old) * 1000.0 / float(one["now_ms"] - then["now_ms"])


def frame(moment: Moment, problem: str = "") -> RenderableType:
    """Returns all of it, to be printed."""
    parts: list[RenderableType] = [_head(moment)]
    if problem:
        parts.append(Text(f"No facts for now: {problem}. Trying again.", style="bold red"))
    parts += [_tasks(moment), _nodes(moment)]
    if any(one["standbys"] for one in moment.reached()):
        parts.append(_standbys(moment))
    parts += [Text(f"{one['instance']}: {one['error']}", style="red") for one in moment.instances if "error" in one]
    parts.append(_log(moment))
    return Group(*parts)


def whole_width(console: Console, picture: RenderableType) -> int:
    """Returns how wide a picture is of which nothing is folded or cut."""
    return Measurement.get(console, console.options.update(max_width=_NO_LIMIT), picture).maximum


def short(number: float | None) -> str:
    """A number in few characters.

    >>> short(None), short(0.25), short(12), short(12_345), short(3_200_000)
    ('-', '0.2', '12', '12.3k', '3.2M')
    """
    if number is None:
        return "-"
    if number < 10 and number != int(number):
        return f"{number:.1f}"
    if number < 10_000:
        return f"{number:.0f}"
    size, unit = next((size, unit) for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= size)
    return f"{number / size:.3g}{unit}"


def _head(moment: Moment) -> RenderableType:
    reached, tasks = moment.reached(), moment.tasks()
    if not reached:
        return Text("nobody has told anything yet")
    rates = [moment.rate(one, _processed) for one in reached]
    known = [rate for rate in rates if rate is not None]
    state = next((one["state"] for one in reached if not one["ready"]), reached[0]["state"])
    line = Text.assemble(
        (str(reached[0]["application"]), "bold"),
        "  ",
        (str(state), "green" if all(one["ready"] for one in reached) else "yellow"),
        f"  {short(sum(known)) if known else '-'} records/s",
        f"  lag {short(sum(task['lag'] or 0 for _, task in tasks))}",
        f"  dropped {short(sum(task['dropped'] for _, task in tasks))}",
        f"  instances {len(moment.instances)}",
    )
    return line


def _processed(one: InstanceFacts) -> int:
    return sum(task["processed"] for task in one["tasks"])


def _tasks(moment: Moment) -> Table:
    table = _table("Task", "Instance", "State", ">Records/s", ">Lag", ">Late", ">Dropped", ">Failed")
    for one, task in moment.tasks():
        state = Text("running", "green")
        if not task["running"]:
            left = task["remaining"]
            state = Text(f"restoring, {short(left)} to go" if left else "starting", "yellow")
        table.add_row(
            task["id"],
            one["instance"] or "this one",
            state,
            short(moment.rate(one, _of_task(task["id"]))),
            Text(short(task["lag"]), "yellow" if task["lag"] else ""),
            *_losses(task["late"], task["dropped"], task["failed"]),
        )
    return table


def _of_task(task_id: str) -> Callable[[InstanceFacts], int | None]:
    return lambda one: next((task["processed"] for task in one["tasks"] if task["id"] == task_id), None)


def _nodes(moment: Moment) -> Table:
    """The nodes that have counted something, in all instances together."""
    table = _table("Node", ">Records/s", ">Late", ">Dropped", ">Failed")
    for name in sorted({name for one in moment.reached() for name in one["nodes"]}):
        counts = [one["nodes"][name] for one in moment.reached() if name in one["nodes"]]
        losses = (
            sum(one.get("late", 0) for one in counts),
            sum(one.get("dropped", 0) for one in counts),
            sum(one.get("failed", 0) for one in counts),
        )
        rates = [rate for one in moment.reached() if (rate := moment.rate(one, _of_node(name))) is not None]
        moves = any("consumed" in one or "produced" in one or "emitted" in one for one in counts)
        table.add_row(name, short(sum(rates)) if rates and moves else "-", *_losses(*losses))
    return table


def _of_node(name: str) -> Callable[[InstanceFacts], int | None]:
    def count(one: InstanceFacts) -> int:
        counts = one["nodes"].get(name, {})
        return counts.get("consumed", 0) + counts.get("produced", 0) + counts.get("emitted", 0)

    return count


def _standbys(moment: Moment) -> Table:
    table = _table("Copy of", ">Partition", "Instance", ">Offsets behind")
    for one in moment.reached():
        for copy in one["standbys"]:
            lag = Text(short(copy["lag"]), "yellow" if copy["lag"] else "")
            table.add_row(copy["store"], str(copy["partition"]), one["instance"], lag)
    return table


def _log(moment: Moment) -> RenderableType:
    lines = sorted((line for one in moment.reached() for line in one["log"]), key=lambda line: line["at_ms"])
    colors = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
    return Group(
        *(
            Text(
                f"{datetime.fromtimestamp(line['at_ms'] / 1000, UTC):%H:%M:%S} {line['level']} {line['text']}",
                style=colors.get(line["level"], ""),
                no_wrap=True,
                overflow="ellipsis",
            )
            for line in lines[-LOG_LINES:]
        )
    )


def _losses(*counts: int) -> Iterable[Text]:
    return [Text(short(count), "red" if count else "") for count in counts]


def _table(*titles: str) -> Table:
    """A table; a title that begins with ``>`` is of numbers."""
    table = Table(box=None, pad_edge=False, header_style="dim", show_edge=False)
    for title in titles:
        table.add_column(title.removeprefix(">"), justify="right" if title.startswith(">") else "left")
    return table

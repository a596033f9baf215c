"""The figure of ``benchmarks.scale``, drawn by matplotlib: a panel for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path


def require_drawing() -> None:
    """Raises ``RuntimeError`` when figures cannot be drawn here, before anything is measured."""
    if find_spec("matplotlib") is None:
        raise RuntimeError("a figure needs matplotlib; install pykstreams[bench], or leave out --figure")


def draw(costs: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]], path: Path) -> None:
    """Writes a figure of (axis -> program -> (value, CPU us of a record))."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(costs), 3.2), layout="constrained")
    panels = figure.subplots(1, len(costs), sharey=True, squeeze=False)[0]
    for panel, (axis, by_program) in zip(panels, costs.items(), strict=True):
        for program, points in by_program.items():
            panel.plot(*zip(*points, strict=True), marker="o", label=program)
        panel.set_xscale("log")
        values = [value for value, _ in next(iter(by_program.values()))]
        panel.set_xticks(values, [f"{value:,}" for value in values])
        panel.minorticks_off()
        panel.set_xlabel(axis)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("CPU us of a record")
    panels[-1].legend()
    figure.savefig(path, format="svg")

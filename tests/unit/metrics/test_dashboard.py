"""The Grafana dashboard asks for metrics that there are."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from pykstreams.core.metrics.built_in.all_specs import ALL
from pykstreams.core.metrics.specs import each_metric
from pykstreams.metrics.sources import exported_name, only_grows

OPERATE = Path(__file__).parents[3] / "docs" / "guides" / "operate.md"
DASHBOARD = json.loads((files("pykstreams.metrics") / "grafana_dashboard.json").read_text())


def asked_for() -> list[str]:
    """What the panels ask for."""
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def without_statistic(name: str) -> str:
    """A metric whose average, highest value or total is looked at."""
    return re.sub("_(avg|max|total)$", "", name)


def exported() -> dict[str, set[str]]:
    """The names that Prometheus gets, with their labels."""
    found: dict[str, set[str]] = {}
    for group, name, tags, *_ in each_metric(ALL):
        full = exported_name(group, name)
        if only_grows(name) and not full.endswith("_total"):
            full += "_total"
        labels = {"state_id" if tag.endswith("-state-id") else tag.replace("-", "_") for tag in tags}
        found.setdefault(full, set()).update(labels)
    return found


def test_every_panel_asks_for_a_metric_that_is_exported_and_labels_that_it_has() -> None:
    names = exported()

    assert asked_for()
    for expression in asked_for():
        (name,) = re.findall(r"kafka_streams_\w+", expression)
        assert name in names, expression
        assert set(re.findall(r"by \((\w+)\)", expression)) <= names[name], expression


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


def test_what_the_page_on_operating_says_to_watch_has_a_panel() -> None:
    page = OPERATE.read_text(encoding="utf-8")
    table = page[page.index("## What to watch") :].partition("\n\n```")[0]
    watched = {without_statistic(name) for name in re.findall(r"kafka_streams_\w+", table)}
    shown = {without_statistic(name) for name in re.findall(r"kafka_streams_\w+", " ".join(asked_for()))}

    assert len(watched) > 5
    assert watched <= shown

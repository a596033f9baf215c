"""The Grafana dashboard asks for metrics that there are."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from pykstreams.core.metrics.built_in.all_specs import ALL
from pykstreams.core.metrics.specs import each_metric
from pykstreams.metrics.sources import exported_name, only_grows

DASHBOARD = json.loads((files("pykstreams.metrics") / "grafana_dashboard.json").read_text())


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
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

    assert expressions
    for expression in expressions:
        (name,) = re.findall(r"kafka_streams_\w+", expression)
        assert name in names, expression
        assert set(re.findall(r"by \((\w+)\)", expression)) <= names[name], expression


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)

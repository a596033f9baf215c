"""The options of ``spark.read.format("pykstreams")``; the data frames are in ``tests/spark``."""

from __future__ import annotations

import pytest

from pykstreams.bulk.state_rows.data_source import view_of
from pykstreams.core.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"store": "s"}, "option 'app' is missing; it names the application: 'shop.py' or 'module:attribute'"),
        ({"app": "shop.py"}, "option 'store' is missing; it names one of its stores"),
        (
            {"app": "a", "store": "s", "asof": "5"},
            r"the options \['asof'\] are unknown; there are app, store, path, topic",
        ),
        ({"app": "a", "store": "s", "raw": "yes"}, "option 'raw' is 'yes'; expected 'true' or 'false'"),
        ({"app": "a", "store": "s", "as_of": "soon"}, "as_of is 'soon', which is no time"),
    ],
)
def test_wrong_options_are_said(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        view_of(options)


def test_options_with_dots_are_settings() -> None:
    view = view_of({"app": "a", "store": "s", "raw": "TRUE", "as_of": "7", "bootstrap.servers": "here:9"})

    assert ({"bootstrap.servers": "here:9"}, True, 7) == (view.application.settings, view.raw, view.as_of)

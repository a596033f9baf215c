"""Loads the plugin that chooses a Kafka, and the package's own fixtures where it is not installed."""

import pytest

from pykstreams.testing import pytest_plugin

pytest_plugins = ["tests.kafka.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    """An installed package brings its plugin itself; a bare checkout does not."""
    if not config.pluginmanager.is_registered(pytest_plugin):
        config.pluginmanager.register(pytest_plugin, "pykstreams")

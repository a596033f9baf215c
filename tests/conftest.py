"""Loads the plugins of these tests, and the package's own where it is not installed.

Properties have no deadline for an example, and none fails because examples are slow to draw: how long that takes is a
matter of the machine and of what else it does.
"""

import gc
import os
import signal
from collections.abc import Generator

import hypothesis
import pytest

from pykstreams.testing import pytest_plugin

pytest_plugins = ["tests.brokers.plugin", "tests.brokers.fixtures", "tests.nightly"]

hypothesis.settings.register_profile(
    "any machine",
    parent=hypothesis.settings.default,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # so it is in the background jobs of a shell, and in all that they start: what tests start could not be stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """An installed package brings its plugin itself; a bare checkout does not."""
    if not config.pluginmanager.is_registered(pytest_plugin):
        config.pluginmanager.register(pytest_plugin, "pykstreams")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives as long as the run, so that looking for cycles in it, again and again, finds none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: that with the tests of one broker waits for it most of its time."""
    return (os.cpu_count() or 1) + 1

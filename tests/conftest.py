"""Loads the plugin that chooses a Kafka, and the package's own fixtures where it is not installed."""

import os
import shutil
import tempfile

import pytest

from pykstreams.testing import pytest_plugin

pytest_plugins = ["tests.kafka.plugin"]


_MEMORY = "/dev/shm"
_ROOM_BYTES = 2 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Puts temporary files into memory where there is room: stores of tests need not survive a crash of the machine.

    An installed package brings its plugin itself; a bare checkout does not.
    """
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
    if not config.pluginmanager.is_registered(pytest_plugin):
        config.pluginmanager.register(pytest_plugin, "pykstreams")

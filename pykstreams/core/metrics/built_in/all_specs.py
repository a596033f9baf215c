"""Every built-in metric, for documents and tests."""

from __future__ import annotations

from typing import Final

from pykstreams.core.metrics.built_in import client, clients, stores, tasks, threads, updater
from pykstreams.core.metrics.specs import Spec

ALL: Final[tuple[Spec, ...]] = (
    *client.SPECS,
    *threads.SPECS,
    *updater.SPECS,
    *tasks.SPECS,
    *stores.SPECS,
    *clients.SPECS,
)

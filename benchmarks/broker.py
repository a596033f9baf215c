"""The broker of a benchmark: a local Java process, or whoever listens at KAFKA_BOOTSTRAP_SERVERS.

Not a container: the port proxy takes a fifth to a third of the CPU of such a run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from tests.brokers.local_broker import local_brokers

JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
"""What Kafka's own start script gives it; the tests' broker is built to start fast instead."""


@contextlib.contextmanager
def benchmark_broker() -> Iterator[str]:
    """The address of a broker, for the length of a block."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    if shutil.which("java") is None:
        raise RuntimeError(
            "a benchmark needs a broker: install Java 17 or newer, or set KAFKA_BOOTSTRAP_SERVERS to one that "
            "may be filled with millions of records"
        )
    with local_brokers(nodes=1, jvm=JVM) as brokers:
        yield brokers.bootstrap_servers

"""Examples on a cluster: their records are sent, and a worker makes of them what their pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.running import examples, played, received, send
from pykstreams import KafkaStreams
from pykstreams.testing import EmbeddedCluster

EXAMPLE = examples()["word_count"]


@pytest.mark.slow
def test_worker_makes_of_the_records_on_a_cluster_what_the_test_driver_does(tmp_path: Path) -> None:
    """A cache leaves out counts on the way, so the last one of each word is waited for."""
    results = [line.removeprefix("  -> ") for line in played(EXAMPLE) if line.startswith("  -> ")]
    missing = set({line.rpartition(" = ")[0].split(" ", 1)[1]: line for line in results}.values())
    topology, config = EXAMPLE.topology()
    with EmbeddedCluster() as cluster:
        place = {"bootstrap.servers": cluster.bootstrap_servers, "state.dir": str(tmp_path), "commit.interval.ms": 50}
        send(EXAMPLE, cluster.bootstrap_servers)
        with KafkaStreams(topology, config.replace(place)):
            for line in received(EXAMPLE, cluster.bootstrap_servers):
                missing.discard(line)
                if not missing:
                    break

    assert missing == set()

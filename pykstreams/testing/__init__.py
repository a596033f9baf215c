"""Drivers, fakes and clusters for testing topologies; never imported by the package itself."""

from pykstreams.runtime.mock_cluster import PARTITION_LIMIT_BYTES, PARTITIONS, EmbeddedCluster

__all__ = ["PARTITIONS", "PARTITION_LIMIT_BYTES", "EmbeddedCluster"]

"""Drivers, fakes and clusters for testing topologies; never imported by the package itself."""

from pykstreams.runtime.clients.mock_cluster import PARTITION_LIMIT_BYTES, PARTITIONS
from pykstreams.testing.assertions import assert_records, assert_table
from pykstreams.testing.clock import MockClock
from pykstreams.testing.cluster_topic import ClusterTopic
from pykstreams.testing.clusters import EmbeddedCluster, KafkaCluster
from pykstreams.testing.driver import TopologyTestDriver
from pykstreams.testing.input_topic import TestInputTopic
from pykstreams.testing.mock_context import CapturedForward, CapturedPunctuator, MockProcessorContext
from pykstreams.testing.output_topic import TestOutputTopic
from pykstreams.testing.prefix_serde import assert_prefix_serde
from pykstreams.testing.records import ProducedRecord, TestRecord

__all__ = [
    "PARTITIONS",
    "PARTITION_LIMIT_BYTES",
    "CapturedForward",
    "CapturedPunctuator",
    "ClusterTopic",
    "EmbeddedCluster",
    "KafkaCluster",
    "MockClock",
    "MockProcessorContext",
    "ProducedRecord",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TopologyTestDriver",
    "assert_prefix_serde",
    "assert_records",
    "assert_table",
]

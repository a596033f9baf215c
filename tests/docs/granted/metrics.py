"""A ``KafkaStreams`` that runs, and a server of metrics that takes a port of its own."""

from prometheus_client import CollectorRegistry

from pykstreams import KafkaStreams, StreamsBuilder, StreamsConfig
from pykstreams.testing import EmbeddedCluster

_builder = StreamsBuilder()
_builder.stream("in", str, str).to("out")
_cluster = EmbeddedCluster()
_config = StreamsConfig({"application.id": "shop", "bootstrap.servers": _cluster.bootstrap_servers})
streams = KafkaStreams(_builder.build(), _config)
_cluster.close()

STANDS_IN = {
    "prometheus_client.start_http_server": lambda port: None,
    "prometheus_client.REGISTRY": CollectorRegistry(),
}

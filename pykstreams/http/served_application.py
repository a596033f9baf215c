"""The application behind the server: the methods of a ``KafkaStreams`` that this package calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.runtime.health import Health
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.queries.metadata import StreamsMetadata
from pykstreams.runtime.tasks.dropped import NodeDrops
from pykstreams.runtime.worker.thread_metadata import ThreadMetadata
from pykstreams.topology.description import TopologyDescription


class ServedApplication(Protocol):
    """The application that is served; all of it may be called from any thread."""

    @property
    def application_id(self) -> str: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def local_queries(self) -> LocalQueries: ...
    def describe(self) -> TopologyDescription: ...
    def health(self) -> Health: ...
    def metrics(self) -> dict[MetricName, Metric]: ...
    def dropped_records(self) -> dict[TaskId, Mapping[str, NodeDrops]]: ...
    def metadata_for_local_threads(self) -> list[ThreadMetadata]: ...
    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]: ...
    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]: ...

"""The contexts of the processors and stores of global stores.

They belong to no task: there is no stream time, nothing is scheduled or committed for them, and nothing is sent
(``GlobalProcessorContextImpl``, 4.3.1).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.processor import Cancellable, PunctuationType
from pykstreams.core.types import Duration, Headers, Punctuator, Timestamp
from pykstreams.runtime.tasks.collector import ANY_PARTITION
from pykstreams.runtime.tasks.context import NodeProcessingContext, TaskState
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogWriter

log = logging.getLogger(__name__)

GLOBAL_TASK: Final = TaskId(-1, -1)
"""The id that stands for a task where one must be named."""


class GlobalProcessingContext(NodeProcessingContext):
    """The context of user code of a global store."""

    __slots__ = ()

    def get_state_store(self, name: str) -> Any:
        stores = self._task.stores
        if name not in stores:
            raise StreamsError(
                f"{self._node} feeds a global store and has no access to store {name!r}; global stores there are: "
                f"{', '.join(map(repr, stores)) or 'none'}"
            )
        return stores[name]

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> Cancellable:
        raise StreamsError(f"{self._node} feeds a global store, for which nothing can be scheduled; do it in process")

    def commit(self) -> None:
        """Does nothing: global stores are committed by themselves."""

    def current_stream_time_ms(self) -> int:
        raise StreamsError(
            f"{self._node} feeds a global store, and stream time is that of a task; take the timestamp of the record"
        )


class GlobalStoreContext:
    """The context that global stores are opened with."""

    __slots__ = (
        "_dropped",
        "_topics",
        "application_id",
        "cache",
        "config",
        "current",
        "metrics",
        "state_dir",
        "task_id",
    )

    def __init__(self, task: TaskState, topics: Mapping[str, str], cache: RecordCache) -> None:
        self._topics = topics
        self._dropped = task.dropped
        self.application_id = task.application_id
        self.task_id = task.task_id
        self.state_dir = task.directory
        self.config = task.config
        self.current = task.current
        self.cache = cache
        self.metrics = task.metrics

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        """Global stores have no changelog but the topic that feeds them."""
        return None

    def count_late(self, store_name: str) -> None:
        """Counts a record that a store does not put because it is late; the store warns."""
        self._dropped.count(store_name, late=True)

    def changelog_topic(self, store_name: str) -> str:
        """The topic that feeds a store: serdes get it as their topic."""
        return self._topics[store_name]


class GlobalFailures(Failures):
    """Asks the processing handler only under ``processing.exception.handler.global.enabled``.

    Otherwise exceptions go up as they are (``ProcessorNode.process``, ``GlobalStreamThread``, 4.3.1).
    """

    def __init__(self, config: StreamsConfig, *given: Any) -> None:
        super().__init__(GLOBAL_TASK, config, *given)
        self._asks = config.processing_exception_handler_global_enabled
        self.only_fails |= not self._asks

    def processing(self, node: str, error: Exception, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if not self._asks:
            raise error
        super().processing(node, error, key, value, timestamp, headers)


class NoProducer:
    """Where dead letters of global stores end: they are not sent, as in Kafka Streams 4.3.1."""

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Drops a record, and says so."""
        log.warning(
            "a dead letter for topic %s is dropped: there are none for global stores and tables; its headers: %s",
            topic,
            headers,
        )

    def poll(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

    def flush(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

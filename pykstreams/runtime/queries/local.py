"""Interactive queries of one application: finds the stores that its workers have at that moment.

Invariant: what is found is asked for anew for each read; nothing here keeps a task or a store alive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    StateStoreMigratedError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.types import AnyPartitioner, Encoder
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.membership.group_hosts import HostPartitions
from pykstreams.runtime.queries.catalog import HeldPartition, Role, StoreDescription, described
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.runtime.queries.metadata import (
    NO_PARTITION,
    HostInfo,
    KeyQueryMetadata,
    StreamsMetadata,
    only_partition,
)
from pykstreams.runtime.queries.store_types import QueryableStoreType, fitting_types
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.serdes.base import bind_serializer
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.state.interfaces.position import PositionBound
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import FailureReason, QueryConfig, QueryResult, StateQueryResult
from pykstreams.state.user_stores import StateStore
from pykstreams.topology.placed_stores import placed_stores
from pykstreams.topology.placement.key_placement import KeyPartitioner
from pykstreams.topology.plan import TopologyPlan

T = TypeVar("T")
R = TypeVar("R")


class QueriedWorker(Protocol):
    """The methods of a worker that this module calls; called from any thread."""

    @property
    def name(self) -> str: ...

    @property
    def all_running(self) -> bool:
        """Whether it has all of its tasks, and all of them run."""
        ...

    def tasks(self) -> Mapping[Task, bool]:
        """Its tasks, and whether each of them runs; those that do not are being restored."""
        ...

    def running_task(self, task_id: TaskId) -> Task | None:
        """One of its tasks, if that is here and runs."""
        ...


class QueriedGlobals(Protocol):
    """The methods of the thread of the global stores that this module calls."""

    def readable(self, name: str) -> LocalStore | None:
        """A global store."""
        ...


@dataclass(frozen=True, slots=True)
class _Found:
    """A store of a task."""

    task: Task
    worker: QueriedWorker | None
    """``None`` for a standby task."""
    running: bool
    store: LocalStore

    @property
    def active(self) -> bool:
        """Whether it runs, in a worker that has all of its tasks running."""
        return self.running and self.worker is not None and self.worker.all_running

    @property
    def role(self) -> Role:
        """The state of the store here."""
        return Role.STANDBY if self.worker is None else Role.ACTIVE if self.running else Role.RESTORING

    @property
    def partition(self) -> int:
        return self.task.id.partition


class LocalQueries:
    """The stores of one application in this process.

    :param check: raises the error for an application that cannot be asked in its state.
    :param hosts: the instances of the application that have an address, with their partitions.
    :param between: who is served by those workers between two batches of records.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        config: StreamsConfig,
        clock: Clock,
        *,
        workers: Callable[[], Sequence[QueriedWorker]],
        globals_: Callable[[], QueriedGlobals | None],
        layout: Callable[[], TopicLayout | None],
        check: Callable[[], None],
        standbys: Callable[[], Sequence[Task]] = lambda: (),
        hosts: Callable[[], Mapping[HostInfo, HostPartitions]] = dict,
        between: BetweenBatches | None = None,
    ) -> None:
        self.between = between or BetweenBatches()
        """Where questions may come in that workers answer between two batches of records."""
        self._plan = plan
        self._config = config
        self._described: dict[str, StoreDescription] | None = None
        self._clock = clock
        self._workers = workers
        self._hosts = hosts
        self._globals = globals_
        self._layout = layout
        self._check = check
        self._standbys = standbys
        self._parts = {name: part.id for part in plan.subtopologies for name in part.stores}
        self._logged = frozenset(name for part in plan.subtopologies for name in part.changelogs)
        self._global_names = frozenset(one.store.name for one in plan.global_stores)
        self._builders = {name: builder for part in plan.subtopologies for name, builder in part.stores.items()}
        self._builders |= {one.store.name: one.store for one in plan.global_stores}
        self._samples: dict[str, StateStore] = {}
        """Stores that are never opened, of which the types are looked at."""
        self._sources: tuple[TopicLayout, dict[int, tuple[str, int]]] | None = None
        self._placed: dict[str, KeyPartitioner] = {}
        for part in plan.subtopologies:
            self._placed.update(placed_stores(part))

    def check_name(self, name: str) -> None:
        """``UnknownStateStoreError`` for a name that no store of the topology has."""
        if name not in self._parts and name not in self._global_names:
            known = ", ".join(map(repr, sorted((*self._parts, *self._global_names)))) or "none"
            raise UnknownStateStoreError(f"the topology has no store {name!r}; its stores are: {known}")

    def store(self, name: str, store_type: QueryableStoreType[T], partition: int | None, stale: bool) -> T:
        """Makes what reads a store; it looks for the store's partitions at each read."""
        self.check_name(name)
        if name not in self._samples:
            self._samples[name] = self._builders[name].build().public_view
        _check_type(name, self._samples[name], store_type)
        return store_type.create(_Provider(self, partition, stale), name)

    def stores(
        self, name: str, store_type: QueryableStoreType[object], partition: int | None, stale: bool
    ) -> list[LocalStore]:
        """The stores that may be read now, in the order of their partitions."""
        self._check()
        if name in self._global_names:
            found = [self._global_store(name)]
        else:
            found = self._task_stores(name, partition, stale)
        return [store.checked(lambda one: _check_type(name, one, store_type)) for store in found]

    def query(
        self,
        name: str,
        query: Query[R],
        *,
        partitions: Collection[int] | None,
        bound: PositionBound,
        require_active: bool,
        execution_info: bool,
    ) -> StateQueryResult[R]:
        """Asks the partitions of a store."""
        config = QueryConfig(execution_info)
        if name in self._global_names:
            return StateQueryResult(None, self._ask(self._global_store(name), query, bound, config))
        results: dict[int, QueryResult[R]] = {}
        for found in self._find(name):
            if partitions is not None and found.partition not in partitions:
                continue
            if require_active and not found.active:
                results[found.partition] = _not_active(found)
                continue
            try:
                results[found.partition] = self._ask(
                    found.store, query, PositionBound.UNBOUNDED if require_active else bound, config
                )
            except StateStoreMigratedError:
                continue  # it went while it was asked
        for partition in partitions or ():
            if partition not in results:
                results[partition] = self._missing(name, partition)
        return StateQueryResult(dict(sorted(results.items())))

    def streams_metadata(self, store: str | None = None) -> list[StreamsMetadata]:
        """The metadata of all instances, or of those that have a store."""
        known = self._hosts()
        found = [self._metadata_of(host, places) for host, places in known.items()] if known else [self._own_metadata()]
        return [one for one in found if store is None or store in one.state_store_names | one.standby_state_store_names]

    def _metadata_of(self, host: HostInfo, places: HostPartitions) -> StreamsMetadata:
        active, standby = self._parts_that_read(places.active), self._parts_that_read(places.standby)
        return StreamsMetadata(
            host,
            frozenset(name for name, part in self._parts.items() if part in active) | self._global_names,
            places.active,
            places.standby,
            frozenset(name for name in self._logged if self._parts[name] in standby),
        )

    def _parts_that_read(self, places: Collection[TopicPartition]) -> set[int]:
        """The sub-topologies that read any of some partitions."""
        layout = self._layout()
        if layout is None:
            return set()
        return {task.subtopology for task, inputs in layout.inputs.items() if not inputs.isdisjoint(places)}

    def _own_metadata(self) -> StreamsMetadata:
        tasks = [task for worker in self._workers() for task in worker.tasks()]
        parts = {task.id.subtopology for task in tasks}
        names = {name for name, part in self._parts.items() if part in parts} | self._global_names
        places = frozenset(place for task in tasks for place in task.input_partitions)
        standbys = self._standbys()
        standby_parts = {task.id.subtopology for task in standbys}
        standby_names = frozenset(name for name in self._logged if self._parts[name] in standby_parts)
        standby_places = frozenset(place for task in standbys for place in task.input_partitions)
        return StreamsMetadata(self.host, frozenset(names), places, standby_places, standby_names)

    def key_metadata(
        self, name: str, key: object, key_serializer: object, partitioner: AnyPartitioner | None
    ) -> KeyQueryMetadata:
        """Where a key of a store is."""
        partition = self.placer(name, key_serializer, partitioner)(key)
        if partition is None:
            return KeyQueryMetadata.NOT_AVAILABLE
        if partition == NO_PARTITION:
            return KeyQueryMetadata(self.host, frozenset(), NO_PARTITION)
        return self._places_of(TaskId(self._parts[name], partition))

    def placer(
        self, name: str, key_serializer: object, partitioner: AnyPartitioner | None
    ) -> Callable[[object], int | None]:
        """Returns what gives the partition of a key, -1 for a global store; ``None`` before the topics are known."""
        self.check_name(name)
        if (key_serializer is None) == (partitioner is None):
            raise TypeError(
                f"key_serializer is {key_serializer!r} and partitioner {partitioner!r}; give exactly one of them, as "
                "the records of the store were partitioned"
            )
        is_global, part = name in self._global_names, self._parts.get(name, -1)
        placed, by_part = self._placed.get(name, partition_for_key), self._plan.partitioners.get(name)
        if by_part is not None:
            by_part = by_part.over_default(lambda: self._config.default_key_serde, partition_for_key)
        serializer = given_serde(cast("SerdeOrType[object] | None", key_serializer), is_key=True)
        encoders: dict[str, Encoder] = {}

        def partition_of(key: object) -> int | None:
            if key is None:
                raise TypeError(f"the key for store {name!r} is None; a key must not be None")
            if is_global:
                return NO_PARTITION
            source = self._source_of(part)
            if source is None:
                return None
            topic, count = source
            if partitioner is not None:
                return only_partition(partitioner(topic, key, None, count), name)
            if by_part is not None and (chosen := by_part(topic, key, None, count)) is not None:
                return chosen
            if topic not in encoders:
                encoders[topic] = bind_serializer(serializer, topic)
            raw = encoders[topic](key, ())
            if raw is None:
                raise TypeError(f"the key {key!r} for store {name!r} was serialized to None, which is in no partition")
            return placed(raw, count)

        return partition_of

    def _source_of(self, part: int) -> tuple[str, int] | None:
        """The input topic of a sub-topology that has the most partitions, and how many; looked for once a layout."""
        layout = self._layout()
        if layout is None:
            return None
        if self._sources is None or self._sources[0] is not layout:
            self._sources = layout, {}
        known = self._sources[1]
        if part not in known:
            places = [one for task, inputs in layout.inputs.items() if task.subtopology == part for one in inputs]
            if not places:
                return None
            topic = max(sorted({place.topic for place in places}), key=lambda one: layout.partitions[one])
            known[part] = topic, layout.partitions[topic]
        return known[part]

    def owners(self, name: str) -> dict[int, KeyQueryMetadata]:
        """Where each partition of a store is, by partition; empty before the topics are known.

        Of a global store there is one entry, under -1: this instance.
        """
        self.check_name(name)
        if name in self._global_names:
            return {NO_PARTITION: KeyQueryMetadata(self.host, frozenset(), NO_PARTITION)}
        layout = self._layout()
        if layout is None:
            return {}
        tasks = sorted(task for task in layout.inputs if task.subtopology == self._parts[name])
        return {task.partition: self._places_of(task) for task in tasks}

    def held(self, name: str) -> list[HeldPartition]:
        """The partitions of a store that are in this process in any role, in order; an ``InvalidStateStoreError``
        where none can be read at all.
        """
        self.check_name(name)
        self._check()
        if name in self._global_names:
            return [HeldPartition(NO_PARTITION, Role.GLOBAL, self._global_store(name))]
        return [HeldPartition(one.partition, one.role, one.store) for one in self._find(name)]

    def running(self, name: str, partition: int) -> HeldPartition | None:
        """A partition of a store whose task runs in this process, or a global store; ``None`` for any other one."""
        self._check()
        if name in self._global_names:
            return HeldPartition(NO_PARTITION, Role.GLOBAL, self._global_store(name))
        wanted = TaskId(self._parts[name], partition)
        for worker in self._workers():
            task = worker.running_task(wanted)
            if task is not None and name in task.stores:
                return HeldPartition(partition, Role.ACTIVE, _local(task, name, whole=False))
        return None

    def descriptions(self) -> dict[str, StoreDescription]:
        """All stores of the topology, by name."""
        if self._described is None:
            self._described = described(self._plan, self._config)
        return self._described

    def _places_of(self, wanted: TaskId) -> KeyQueryMetadata:
        """Which instances have a task."""
        layout, partition = self._layout(), wanted.partition
        if layout is None:
            return KeyQueryMetadata.NOT_AVAILABLE
        if known := self._hosts():
            inputs = layout.inputs.get(wanted, frozenset())
            active = [host for host, places in known.items() if not inputs.isdisjoint(places.active)]
            standby = frozenset(host for host, places in known.items() if not inputs.isdisjoint(places.standby))
            return KeyQueryMetadata(active[0] if active else HostInfo.UNAVAILABLE, standby, partition)
        here = any(wanted == task.id for worker in self._workers() for task in worker.tasks())
        on_standby = not here and any(wanted == task.id for task in self._standbys())
        return KeyQueryMetadata(
            self.host if here else HostInfo.UNAVAILABLE, frozenset({self.host} if on_standby else ()), partition
        )

    @cached_property
    def host(self) -> HostInfo:
        """The address of this instance."""
        return HostInfo.from_endpoint(self._config.application_server) or HostInfo.UNAVAILABLE

    def _find(self, name: str) -> list[_Found]:
        """The stores of a name, running, being restored, or on standby where they are not, by partition."""
        part = self._parts[name]
        standbys = [(task, None, False) for task in self._standbys()] if name in self._logged else []
        of_workers = [(task, worker, runs) for worker in self._workers() for task, runs in worker.tasks().items()]
        found = {
            task.id: _Found(task, worker, running, _local(task, name, whole=not running))
            for task, worker, running in (*standbys, *of_workers)  # a task of a worker comes after its standby
            if task.id.subtopology == part and name in task.stores
        }
        return sorted(found.values(), key=lambda one: one.partition)

    def _task_stores(self, name: str, partition: int | None, stale: bool) -> list[LocalStore]:
        found = [one for one in self._find(name) if stale or one.running]
        busy = [worker.name for worker in self._workers() if not worker.all_running]
        if partition is not None:
            found = [one for one in found if one.partition == partition and (stale or one.active)]
        if busy and not stale and not (partition is not None and found):
            raise StreamsRebalancingError(
                f"store {name!r} cannot be read now: {', '.join(busy)} has not got all of its tasks running; ask "
                "again, or read what is there with enable_stale_stores=True"
            )
        if not found and partition is not None:
            raise InvalidStateStorePartitionError(
                f"partition {partition} of store {name!r} is not in this process; ask the instance that has it"
            )
        if not found:
            raise StateStoreMigratedError(
                f"no partition of store {name!r} is in this process: they have moved to other instances, or have not "
                "come yet; ask again, or ask the instances that have them"
            )
        return [one.store for one in found]

    def _global_store(self, name: str) -> LocalStore:
        keeper = self._globals()
        store = None if keeper is None else keeper.readable(name)
        if store is None:
            raise StreamsRebalancingError(f"global store {name!r} is still being read from its topic; ask again")
        return store

    def _ask(self, store: LocalStore, query: Query[R], bound: PositionBound, config: QueryConfig) -> QueryResult[R]:
        asked = self._clock.monotonic()
        begun = asked

        def ask(one: Any) -> QueryResult[R]:
            nonlocal begun
            begun = self._clock.monotonic()
            answer: QueryResult[R] = one.query(query, bound, config)
            return answer

        result = store.read(ask)
        if config.collect_execution_info:
            result.add_execution_info(f"waited {(begun - asked) * 1e6:.0f} us for the batch of {store.where}")
        return result

    def _missing(self, name: str, partition: int) -> QueryResult[R]:
        layout, part = self._layout(), self._parts[name]
        if layout is not None and TaskId(part, partition) not in layout.inputs:
            return QueryResult.for_failure(
                FailureReason.DOES_NOT_EXIST, f"store {name!r} has no partition {partition}, here or anywhere else"
            )
        return QueryResult.for_failure(
            FailureReason.NOT_PRESENT,
            f"partition {partition} of store {name!r} is not in this process; ask the instance that has it",
        )


@dataclass(frozen=True, slots=True)
class _Provider:
    """Finds the stores for one ``KafkaStreams.store``."""

    queries: LocalQueries
    partition: int | None
    stale: bool

    def stores(self, store_name: str, store_type: QueryableStoreType[object]) -> list[LocalStore]:
        return self.queries.stores(store_name, store_type, self.partition, self.stale)


def _local(task: Task, name: str, *, whole: bool) -> LocalStore:
    where = f"store {name!r} of task {task.id}"
    return LocalStore(name, where, task.gate, lambda: task.readable_store(name), whole=whole)


def _not_active(found: _Found) -> QueryResult[R]:
    if found.worker is None:
        state = "is a standby task here"
    else:
        state = f"runs, but {found.worker.name} is in a rebalance" if found.running else "is being restored"
    return QueryResult.for_failure(
        FailureReason.NOT_ACTIVE, f"task {found.task.id} {state}, and require_active was given; ask again"
    )


def _check_type(name: str, store: StateStore, store_type: QueryableStoreType[object]) -> None:
    if not store_type.accepts(store):
        fitting = ", ".join(map(repr, fitting_types(store))) or "a QueryableStoreType of your own"
        raise InvalidStateStoreError(
            f"store {name!r} is a {type(store).__name__}, which {store_type!r} does not read; take {fitting}"
        )

"""A worker and standby tasks are put together: which clients are asked for, and what is left out where."""

from __future__ import annotations

import dataclasses
import errno
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import DiskFullError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.assembly.application_parts import ApplicationParts
from pykstreams.runtime.assembly.standbys import build_standbys, build_sums
from pykstreams.runtime.assembly.worker import build_worker
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.refused_access import Complaints
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.restore import Damaged
from pykstreams.runtime.swap.bootstrap import TaskBase
from pykstreams.runtime.tasks.cache_shares import CacheShares
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout
from pykstreams.runtime.worker.commits.commit import RECOMMIT_INTERVAL_MS
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.runtime.worker.worker import Worker
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.testing.clock import MockClock
from pykstreams.topology.plan import InternalTopic, TopologyPlan
from tests.unit.runtime.plans import part, plan, source

NOWHERE = "127.0.0.1:1"
QUIET = {"log_level": 0}
"""Settings of clients that say nothing: that there is no broker is no news."""
TASK = TaskId(0, 0)
LAYOUT = TopicLayout({"orders": 1}, {TASK: frozenset({TopicPartition("orders", 0)})})
STATEFUL = plan(part(0, source("A", "orders"), changelogs={"rows": InternalTopic("log", "changelog", 1, {})}))
STATELESS = plan(part(0, source("A", "orders")))
REPARTITIONED = plan(part(0, source("A", "orders"), repartition=[("shop-by-page-repartition", 1)]))


class Clients(DefaultKafkaClientSupplier):
    """Clients of brokers that are not there, with the settings that each was asked for with."""

    def __init__(self) -> None:
        self.made: list[Consumer] = []
        self.settings: list[Mapping[str, object]] = []
        self.producers: list[Mapping[str, object]] = []
        self.restoring: list[Mapping[str, object]] = []

    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        return super().get_admin({**config, **QUIET})

    def get_producer(self, config: Mapping[str, object]) -> Producer:
        self.producers.append(config)
        return super().get_producer({**config, **QUIET})

    def get_restore_consumer(self, config: Mapping[str, object]) -> Consumer:
        self.restoring.append(config)
        self.made.append(super().get_restore_consumer(config))
        return self.made[-1]

    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        self.settings.append(config)
        self.made.append(super().get_consumer(config))
        return self.made[-1]


@pytest.fixture
def clients() -> Iterator[Clients]:
    found = Clients()
    yield found
    for one in found.made:
        one.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[StateDirectory]:
    found = StateDirectory(tmp_path, "shop", clock=MockClock(0))
    yield found
    found.close()


Make = Callable[..., ApplicationParts]


@pytest.fixture
def make(clients: Clients) -> Make:
    def application(
        topology: TopologyPlan = STATEFUL, settings: Mapping[str, object] | None = None, *, embedded: bool = False
    ) -> ApplicationParts:
        config = StreamsConfig({"application.id": "shop", "bootstrap.servers": NOWHERE, **(settings or {})})
        clock = MockClock(0)
        admin = ClusterAdmin(clients.get_admin({"bootstrap.servers": NOWHERE}), NOWHERE, clock, 1, Complaints())
        return ApplicationParts(
            plan=topology,
            config=config,
            clock=clock,
            supplier=clients,
            admin=admin,
            topics=TopicAdmin(admin, topology, replication=1, embedded=embedded),
            metrics=StreamsMetrics(),
            client_id="shop-client",
            process_id="process",
            instance="0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1",
            embedded=embedded,
            base=TaskBase(topology, config, admin, None),
            caches=CacheShares(config.statestore_cache_max_bytes, has_global=False),
            recommit_interval_ms=RECOMMIT_INTERVAL_MS,
            pause=Pause(),
            between=BetweenBatches(),
        )

    return application


def worker_of(app: ApplicationParts, directory: StateDirectory) -> Worker:
    return build_worker(
        app,
        2,
        LAYOUT,
        directory=directory,
        listener=None,
        on_running=lambda running: None,
        global_stores={},
        standbys=None,
        sums=build_sums(app, directory, None),
        hosts=GroupHosts(),
    )


@pytest.mark.parametrize(
    ("topology", "replicas", "kept"), [(STATEFUL, 1, True), (STATEFUL, 0, True), (STATELESS, 1, False)]
)
def test_standby_tasks_can_be_kept_where_tasks_have_state_since_warm_ups_come_without_replicas_too(
    make: Make, directory: StateDirectory, topology: TopologyPlan, replicas: int, kept: bool
) -> None:
    app = make(topology, {"num.standby.replicas": replicas})

    assert (build_standbys(app, LAYOUT, directory=directory) is not None) is kept


def test_standby_tasks_on_an_embedded_cluster_are_left_out_with_a_warning(
    make: Make, directory: StateDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    app = make(STATEFUL, {"num.standby.replicas": 1}, embedded=True)

    with caplog.at_level(logging.WARNING):
        assert build_standbys(app, LAYOUT, directory=directory) is None
    assert "num.standby.replicas has no effect there" in caplog.text


def test_clients_of_a_worker_carry_the_name_of_its_thread(
    make: Make, directory: StateDirectory, clients: Clients
) -> None:
    worker = worker_of(make(), directory)

    assert worker.name == "shop-client-StreamThread-2"
    assert [one["client.id"] for one in clients.settings] == ["shop-client-StreamThread-2-consumer"]


def test_a_worker_is_stuck_in_a_turn_that_is_longer_than_its_setting_says(
    make: Make, directory: StateDirectory
) -> None:
    app = make(STATELESS, {"max.poll.interval.ms": 10_000})
    worker = worker_of(app, directory)
    assert isinstance(app.clock, MockClock)

    worker._turn_since = app.clock.monotonic()
    app.clock.advance(10_000)
    within = worker.stuck_s()
    app.clock.advance(500)

    assert (within, worker.stuck_s()) == (None, 10.5)


def test_nothing_is_swapped_watched_or_purged_on_an_embedded_cluster(make: Make, directory: StateDirectory) -> None:
    there = worker_of(make(REPARTITIONED), directory)._parts
    embedded = worker_of(make(REPARTITIONED, embedded=True), directory)._parts

    assert None not in (there.swaps, there.topic_watch, there.purge)
    assert (embedded.swaps, embedded.topic_watch, embedded.purge) == (None, None, None)


def test_without_repartition_topics_nothing_is_purged(make: Make, directory: StateDirectory) -> None:
    assert worker_of(make(STATEFUL), directory)._parts.purge is None


@pytest.mark.parametrize(
    ("guarantee", "transactional_id"), [("at_least_once", None), ("exactly_once_v2", "shop-process-2")]
)
def test_producer_of_a_worker_has_transactions_under_exactly_once_by_an_id_of_its_thread(
    make: Make, directory: StateDirectory, clients: Clients, guarantee: str, transactional_id: str | None
) -> None:
    worker_of(make(settings={"processing.guarantee": guarantee}), directory)
    (producer,) = clients.producers

    assert producer["client.id"] == "shop-client-StreamThread-2-producer"
    assert producer.get("transactional.id") == transactional_id


REUSING = plan(
    dataclasses.replace(
        part(0, source("A", "orders")), reused_changelogs={"orders": InternalTopic("orders", "changelog", 1, {})}
    )
)


@pytest.mark.parametrize(
    ("topology", "embedded", "only_committed"),
    [(STATEFUL, False, True), (REUSING, False, False), (STATEFUL, True, False)],
    ids=["own changelogs", "input topics as changelogs", "embedded cluster"],
)
def test_restoring_passes_over_what_was_not_committed_unless_input_topics_serve_as_changelogs(
    make: Make,
    directory: StateDirectory,
    clients: Clients,
    topology: TopologyPlan,
    embedded: bool,
    only_committed: bool,
) -> None:
    updater = worker_of(make(topology, embedded=embedded), directory)._parts.updater
    assert isinstance(updater, StateUpdater)

    updater._make_restorer()

    (restoring,) = clients.restoring
    assert restoring["client.id"] == "shop-client-StreamThread-2-restore-consumer"
    assert (restoring.get("isolation.level") == "read_committed") is only_committed


def test_tasks_are_noted_as_worked_on_where_no_transaction_tells_of_a_dead_worker(
    make: Make, directory: StateDirectory
) -> None:
    notes = [
        worker_of(make(STATEFUL, {"processing.guarantee": guarantee}), directory)._parts.tasks._note_of(TaskId(0, 1))
        for guarantee in ("at_least_once", "exactly_once_v2")
    ]

    assert notes == [TopicPartition("log", 1), None]


def test_a_task_that_comes_to_a_full_disk_waits_for_room_and_ends_no_worker(
    make: Make, directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    parts = worker_of(make(), directory)._parts
    updater = parts.updater
    assert isinstance(updater, StateUpdater)
    monkeypatch.setattr(Path, "mkdir", full)

    updater.open(parts.tasks._make_task(TASK, LAYOUT.inputs[TASK], {}, False), {})
    updater._obey(0)

    (report,) = updater.reports()
    assert isinstance(report, Damaged)
    assert isinstance(report.error, DiskFullError)


def test_state_of_a_task_that_waits_for_room_is_kept_from_being_cleaned_up(
    make: Make, directory: StateDirectory
) -> None:
    assert worker_of(make(), directory)._parts.tasks._aside._keep == directory.keep


def test_a_standby_task_is_made_without_its_folder_which_a_full_disk_may_not_have(
    make: Make, directory: StateDirectory
) -> None:
    standbys = build_standbys(make(), LAYOUT, directory=directory)
    assert standbys is not None

    standbys._make_task(TASK, LAYOUT.inputs[TASK], {})

    assert not directory.task_path(TASK).exists()

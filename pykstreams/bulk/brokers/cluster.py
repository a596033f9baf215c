"""The brokers as a job uses them: partition counts, ends of topics, the application's own topics."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from pykstreams.bulk.application import Application, StorePlace, tasks_of
from pykstreams.bulk.brokers.retention import expiring
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import BootstrapError, ConfigError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.shown_values import with_noun
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout

log = logging.getLogger(__name__)

SourceOffsets: TypeAlias = Literal["now"] | Mapping[str, Mapping[int, int]] | None
"""Where an application goes on in its inputs: where they end now, by topic and partition, or wherever it likes."""


class Cluster:
    """The cluster of an application, as its jobs use it."""

    def __init__(self, application: Application) -> None:
        config = application.config
        if "bootstrap.servers" not in config:
            raise ConfigError(
                "no brokers are named (bootstrap.servers), and they are needed to write changelogs, note offsets and "
                "count partitions; name them, or say changelog='base-only', source_offsets=None (or a mapping), and "
                "partitions=..."
            )
        self._application = application
        supplier = DefaultKafkaClientSupplier()
        self._admin = ClusterAdmin.open(supplier, config, f"{config.application_id}-bootstrap-admin", SystemClock())
        self._admin.wait_until_reachable()

    def layout(self) -> TopicLayout:
        """The topics as they are, with those that are worked out; none is made."""
        return self._application.layout(self.partition_counts())

    def partition_counts(self) -> dict[str, int]:
        """The partition counts of all topics."""
        return self._admin.partition_counts()

    def prepared(self, layout: TopicLayout) -> TopicLayout:
        """Makes the topics of the application, as its first worker would."""
        plan, config = self._application.plan, self._application.config
        embedded = self._admin.embedded
        found = TopicAdmin(self._admin, plan, replication=config.replication_factor, embedded=embedded).prepare()
        if len(found.inputs) != len(layout.inputs):
            raise BootstrapError(
                f"the topics of the cluster make {len(found.inputs)} tasks, and those given make {len(layout.inputs)}; "
                "leave partitions= out"
            )
        return found

    def input_ends(self, layout: TopicLayout) -> dict[str, dict[int, int]]:
        """Where each input topic ends now, internal ones left out."""
        plan = self._application.plan
        internal = {topic for part in plan.subtopologies for topic in part.repartition_topics}
        wanted = {place for places in layout.inputs.values() for place in places if place.topic not in internal}
        found: dict[str, dict[int, int]] = {}
        for place, end in self._admin.end_offsets(wanted).items():
            found.setdefault(place.topic, {})[place.partition] = end
        return found

    def check_idle(self) -> None:
        """Refuses an application that has workers: they would not see what a job writes to their changelogs."""
        if self._admin.embedded:
            return
        config, clock = self._application.config, SystemClock()
        requests = GroupRequests.open(config, f"{config.application_id}-bootstrap", thread=None)
        group = GroupTools(requests, clock, config.request_timeout_ms / 1000)
        try:
            members = group.view().members
        finally:
            group.close()
        if members:
            raise BootstrapError(
                f"group {config.application_id!r} has {with_noun(len(members), 'member')}, such as "
                f"{members[0].client_id} on {members[0].host}, which would not see what is written to the changelogs, "
                "and write over it; stop all workers, and wait until session.timeout.ms is over for those that were "
                "killed; or say changelog='base-only', and have them go over to the new state (--load-bootstrap)"
            )

    def check_empty(self, places: Iterable[StorePlace], layout: TopicLayout) -> None:
        """Refuses changelogs that have rows: those that the job does not write would come back with a fail-over."""
        held = [told for place in places if (told := self._held(place, layout)) is not None]
        if held:
            raise BootstrapError(
                f"changelogs hold records already, of a worker that has run, or of a job that failed: {'; '.join(held)}"
                ". Delete these topics (kafka-topics.sh --delete), and they are made anew"
            )

    def _held(self, place: StorePlace, layout: TopicLayout) -> str | None:
        held = {found: end for found, end in self._ends(place, layout).items() if end}
        if not held:
            return None
        first = min(held)
        return f"{first.topic!r} of store {place.name!r} ({held[first]} in partition {first.partition})"

    def changelog_ends(self, place: StorePlace, layout: TopicLayout) -> dict[int, int]:
        """Where the changelog of a store ends."""
        return {found.partition: end for found, end in self._ends(place, layout).items()}

    def warn_of_expiry(self, place: StorePlace, oldest_ms: int | None) -> None:
        """Warns where the changelog of a store does not keep what was written to it.

        :param oldest_ms: the lowest timestamp of that.
        """
        if oldest_ms is None or self._admin.embedded:
            return
        topic = place.serde_topic
        found = expiring(topic, self._admin.topic_settings([topic])[topic], oldest_ms, SystemClock().now_ms())
        if found is not None:
            log.warning("store %s: %s", place.name, found)

    def _ends(self, place: StorePlace, layout: TopicLayout) -> dict[TopicPartition, int]:
        partitions = range(tasks_of(layout, place.part))
        return self._admin.end_offsets([TopicPartition(place.serde_topic, partition) for partition in partitions])


def noted_offsets(given: SourceOffsets, cluster: Cluster | None, layout: TopicLayout) -> dict[str, dict[int, int]]:
    """Where the application goes on in its inputs, by topic and partition, as far as it is known."""
    if given is None:
        return {}
    if isinstance(given, str):
        if given != "now":
            raise ConfigError(f"source_offsets is {given!r}; expected 'now', a mapping or None")
        return {} if cluster is None else cluster.input_ends(layout)
    return {topic: dict(found) for topic, found in given.items()}

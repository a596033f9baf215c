"""The group of one application looked at: its tasks by the plan and the cluster, its lag, and its status."""

from __future__ import annotations

from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.groups.lag import GroupLag, LagClient, LagGroup
from pykstreams.runtime.groups.lag_report import LagReport
from pykstreams.runtime.groups.status import GroupStatus, status_of
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicClient, TopicLayout
from pykstreams.topology.plan import TopologyPlan


class InspectionClient(TopicClient, LagClient, Protocol):
    """The methods of an administrative client that this room calls; none of them changes anything."""


class GroupInspection:
    """Looks at a group from outside, whether or not somebody runs."""

    def __init__(
        self, plan: TopologyPlan, config: StreamsConfig, client: InspectionClient, group: LagGroup, clock: Clock
    ) -> None:
        self._plan = plan
        self._config = config
        self._client = client
        self._group = group
        self._clock = clock

    def lag(self) -> LagReport:
        """Works out the lag; ``MissingSourceTopicError`` or ``ClusterError`` where it cannot be known."""
        consumer = self._config.get_main_consumer_configs(self._config.application_id, "", 1)
        lag = GroupLag(
            self._plan,
            self._client,
            self._group,
            self._clock,
            isolation=str(consumer["isolation.level"]),
            reset_policy=str(consumer["auto.offset.reset"]),
        )
        return lag.report(self._layout().inputs)

    def status(self) -> GroupStatus:
        """Asks who is in the group; fails as ``lag`` does."""
        return status_of(self._config.application_id, self._group.view(), self._layout().inputs)

    def _layout(self) -> TopicLayout:
        return TopicAdmin(self._client, self._plan, replication=self._config.replication_factor, embedded=False).look()

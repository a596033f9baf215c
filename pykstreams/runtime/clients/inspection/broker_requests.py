"""Requests to brokers that no client library makes: which protocols they speak, what time it is, what is allowed.

None of them changes anything. Whether a user may read a group, or write transactions, is only seen by trying: in the
name of a member, and of a producer, that do not exist. Brokers look at rights first (``KafkaApis``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.consumer import HeartbeatRequest
from kafka.protocol.metadata import ApiVersionsRequest, CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer.transaction import EndTxnRequest

from pykstreams.runtime.clients.coordinators.coordinator_requests import CoordinatorRequests
from pykstreams.runtime.clients.errors import GroupError

_METADATA: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class Protocols:
    """The protocols that brokers speak.

    :param requests: the highest version of each request, by the request's key.
    :param features: the level of each feature of the cluster; ``None`` where brokers are too old to say it.
    """

    requests: Mapping[int, int]
    features: Mapping[str, int] | None = None


class BrokerRequests(CoordinatorRequests):
    """Any broker, or one of them; every request raises ``GroupError``."""

    def protocols(self, broker: int) -> Protocols:
        """Asks one broker for the requests that it takes, and for the features of the cluster."""
        answer = self.ask_broker(
            ApiVersionsRequest(max_version=3, client_software_name="pykstreams", client_software_version="unknown"),
            broker,
        )
        self.raise_for(answer.error_code)
        requests = {one.api_key: one.max_version for one in answer.api_keys}
        if answer.finalized_features_epoch is None or answer.finalized_features_epoch < 0:
            return Protocols(requests)
        return Protocols(requests, {one.name: one.max_version_level for one in answer.finalized_features or ()})

    def controller_time_ms(self) -> int | None:
        """Asks for the wall clock of the active controller; ``None`` where brokers do not tell it (before 3.3).

        It is told as the time when the leader of the metadata was last caught up (KIP-836).
        """
        topic = DescribeQuorumRequest.TopicData
        try:
            answer = self.ask_broker(
                DescribeQuorumRequest(
                    topics=[topic(topic_name=_METADATA, partitions=[topic.PartitionData(partition_index=0)])]
                )
            )
        except GroupError as error:
            if isinstance(error.__cause__, IncompatibleBrokerVersion):
                return None
            raise
        if answer.error_code == KafkaError.UNSUPPORTED_VERSION:  # brokers with ZooKeeper
            return None
        self.raise_for(answer.error_code)
        partition = answer.topics[0].partitions[0]
        self.raise_for(partition.error_code)
        times = (
            one.last_caught_up_timestamp for one in partition.current_voters if one.replica_id == partition.leader_id
        )
        return next((time for time in times if time > 0), None)

    def may_find_group(self) -> bool:
        """Returns whether the user may DESCRIBE the group."""
        group = self.group.group
        answer = self.ask_broker(
            FindCoordinatorRequest(key=group, key_type=CoordinatorType.GROUP, coordinator_keys=[group])
        )
        found = answer.coordinators[0] if answer.coordinators else answer
        return bool(found.error_code != KafkaError.GROUP_AUTHORIZATION_FAILED)

    def may_join_group(self) -> bool:
        """Returns whether the user may READ the group, as members do."""
        answer = self.ask_broker(
            HeartbeatRequest(
                max_version=4, group_id=self.group.group, generation_id=-1, member_id="", group_instance_id=None
            )
        )
        return bool(answer.error_code != KafkaError.GROUP_AUTHORIZATION_FAILED)

    def may_write_transactions(self, transactional_id: str) -> bool:
        """Returns whether the user may WRITE under a transactional id, which no producer has."""
        answer = self.ask_broker(
            EndTxnRequest(
                max_version=4, transactional_id=transactional_id, producer_id=0, producer_epoch=0, committed=False
            )
        )
        return bool(answer.error_code != KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

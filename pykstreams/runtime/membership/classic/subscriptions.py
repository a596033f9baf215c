"""The subscriptions of one member: what it says of itself each time it joins, in a version that the group can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerSubscription
from pykstreams.runtime.membership.protocol.follow_up import follow_up
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo
from pykstreams.runtime.membership.protocol.versions import LATEST_VERSION
from pykstreams.runtime.topics.topic_admin import TopicLayout

_UNIQUE_NUMBERS: Final = 128
"""How many numbers subscriptions take in turn, so that the broker sees that one has changed."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """The word of a member about itself, besides its tasks.

    :param endpoint: ``application.server``.
    :param error: ``SHUTDOWN_REQUESTED`` asks the leader to tell all members to shut down.
    """

    process_id: ProcessId
    endpoint: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    error: AssignorError = AssignorError.NONE


class Subscriptions:
    """The subscriptions of one member, one after the other."""

    def __init__(self, introduction: Introduction) -> None:
        self._introduction = introduction
        self._version = LATEST_VERSION
        self._unique = 0
        self._sent = SubscriptionInfo(introduction.process_id, {})

    def next(
        self, layout: TopicLayout, owned: Iterable[TaskId], generation: int, offset_sums: Mapping[TaskId, int]
    ) -> bytes:
        """Returns the subscription to join with.

        :param owned: the active tasks of the member, in its last generation.
        :param offset_sums: how far the state of each task is that the member reports.
        """
        said = self._introduction
        self._unique = (self._unique + 1) % _UNIQUE_NUMBERS
        self._sent = SubscriptionInfo(
            said.process_id, offset_sums, said.endpoint, self._unique, said.error, said.tags, version=self._version
        )
        return ConsumerSubscription(
            frozenset(place.topic for places in layout.inputs.values() for place in places),
            self._sent.encode(),
            frozenset(place for task in owned for place in layout.inputs.get(task, ())),
            generation,
            said.rack,
        ).encode()

    def answered(self, info: AssignmentInfo) -> int:
        """Notes the version of an assignment; returns when to join again: ``AT_ONCE``, ``NEVER`` or a time."""
        found = follow_up(self._sent, info)
        self._version = found.version
        return found.at_ms

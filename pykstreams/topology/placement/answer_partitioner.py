"""Partitions the answers of foreign-key joins."""

from __future__ import annotations

from pykstreams.serdes.subscription import SubscriptionResponseWrapper


class AnswerPartitioner:
    """Sends an answer to the partition that asked; subscriptions of version 0 do not know it, then the key decides
    (``KTableImpl.doJoinOnForeignKey``, 4.3.1).

    Sinks know that it needs nothing of a record but what the sender of the answer knows.
    """

    def __call__(
        self, topic: str, key: object, answer: SubscriptionResponseWrapper[object], partitions: int
    ) -> int | None:
        return answer.primary_partition

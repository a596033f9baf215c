"""The client that reads committed offsets for standby tasks."""

from __future__ import annotations

from collections.abc import Collection

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.standby.group_offsets import GroupOffsets

ORDERS = TopicPartition("orders", 0)


class Client:
    def __init__(self) -> None:
        self.history: list[str] = []

    def open(self) -> Client:
        self.history.append("opened")
        return self

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        return dict.fromkeys(partitions, (7, ""))

    def close(self, leave: bool) -> None:
        self.history.append("closed")


def test_the_client_is_made_when_offsets_are_asked_for_and_closed_once() -> None:
    client = Client()
    group = GroupOffsets(client.open)
    group.close()
    before = client.history[:]
    found = [group.committed([ORDERS]), group.committed([ORDERS])]
    group.close()
    group.close()

    assert before == []
    assert found == 2 * [{ORDERS: (7, "")}]
    assert client.history == ["opened", "closed"]

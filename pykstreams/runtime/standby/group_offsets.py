"""The committed offsets of the group, read by a client that is no member of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import Offsets

_TIMEOUT_S: Final = 2.0


class OffsetsClient(Protocol):
    """The methods of a consumer that this module calls."""

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None: ...

    def close(self, leave: bool) -> None: ...


class GroupOffsets:
    """The offsets of one group.

    :param open_client: makes the client, when it is needed first.
    """

    def __init__(self, open_client: Callable[[], OffsetsClient]) -> None:
        self._open_client = open_client
        self._client: OffsetsClient | None = None

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """Reads committed offsets; ``None``: ask again later."""
        if self._client is None:
            self._client = self._open_client()
        return self._client.committed(partitions, _TIMEOUT_S)

    def close(self) -> None:
        """Lets go of the client."""
        client, self._client = self._client, None
        if client is not None:
            client.close(leave=True)

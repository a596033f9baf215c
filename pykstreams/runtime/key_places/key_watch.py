"""Looks at some of the records that are read, and warns once of each topic whose keys lie elsewhere.

The first records of each partition are looked at, and then one of many, so that what is read in batches of hundreds
costs as good as nothing. One watch serves all workers of a process: a topic is warned of once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pykstreams.runtime.key_places.key_sample import KeySample
from pykstreams.runtime.key_places.keyed_inputs import keyed_inputs
from pykstreams.topology.plan import TopologyPlan

log = logging.getLogger(__name__)

FIRST: Final = 100
"""Records of a partition that are looked at as they come."""
EVERY: Final = 1000
"""Of so many later ones one is looked at."""


class Keyed(Protocol):
    """The used method of ``confluent_kafka.Message``."""

    def key(self) -> object: ...


@dataclass(slots=True)
class _Progress:
    first: int = FIRST
    skip: int = EVERY


class KeyWatch:
    """The watch of one application in a process.

    Threads may call ``look`` at the same time for different partitions; what they count together is only a sample.
    """

    def __init__(self, plan: TopologyPlan) -> None:
        self._plan = plan
        self._counts: dict[str, int] = {}
        self._samples: dict[str, KeySample] = {}
        self._progress: dict[tuple[str, int], _Progress] = {}

    def follow(self, partitions: Mapping[str, int]) -> None:
        """Notes the topics as they are now.

        A topic that has got more partitions meanwhile is looked at no more: its older records lie by the old number.
        """
        for topic, keyed in keyed_inputs(self._plan, partitions).items():
            known = self._counts.get(topic)
            if known is None:
                self._counts[topic] = keyed.partitions
                self._samples[topic] = KeySample(keyed)
            elif known != keyed.partitions:
                self._samples.pop(topic, None)

    def look(self, place: tuple[str, int], messages: Sequence[Keyed]) -> None:
        """Looks at a batch of records of a partition, in the order in which they are read."""
        sample = self._samples.get(place[0])
        if sample is None:
            return
        progress = self._progress.get(place)
        if progress is None:
            progress = self._progress[place] = _Progress()
        if progress.first > 0:
            looked_at = messages[: progress.first]
            progress.first -= len(looked_at)
        else:
            progress.skip -= len(messages)
            if progress.skip > 0:
                return
            progress.skip = EVERY
            looked_at = messages[-1:]
        sample.add(place[1], [message.key() for message in looked_at])
        verdict = sample.verdict()
        if verdict is not None and self._samples.pop(place[0], None) is not None:
            log.warning("topic %r: %s; %s", place[0], verdict.what, verdict.cure)

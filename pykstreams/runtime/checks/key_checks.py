"""Checks of records: whether keys lie in the partitions in which the topology takes them to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.runtime.key_places.key_sample import KeySample
from pykstreams.runtime.key_places.keyed_inputs import keyed_inputs
from pykstreams.topology.plan import TopologyPlan

ReadKeys: TypeAlias = Callable[[Mapping[str, int]], Mapping[TopicPartition, Sequence[bytes | None]]]
"""Reads the keys of the last records of topics, each given with its number of partitions."""


def key_findings(plan: TopologyPlan, existing: Mapping[str, int], read: ReadKeys) -> Iterator[Finding]:
    """Yields topics whose keys lie elsewhere, by a sample of their last records.

    :param existing: how many partitions each topic of the cluster has.
    """
    samples = {topic: KeySample(keyed) for topic, keyed in keyed_inputs(plan, existing).items()}
    for place, keys in read({topic: existing[topic] for topic in samples}).items():
        samples[place.topic].add(place.partition, keys)
    for topic, sample in sorted(samples.items()):
        if (verdict := sample.verdict()) is not None:
            yield Finding(Severity.WARNING, "keys", verdict.what, topic, verdict.cure)

"""A sample of the records of one topic: whether their keys lie where its readers take them to be, and if not, where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.key_places.keyed_inputs import KeyedInput
from pykstreams.topology.placement.key_placement import KeyPartitioner, placement_of

ENOUGH: Final = 10
"""Records with a key from which on a sample says something."""

SETTING: Final = "partitioner.check.enable"

_KNOWN: Final = (
    ("consistent_random", "librdkafka's default partitioner consistent_random puts them"),
    ("murmur2_random", "murmur2 puts them"),
    ("fnv1a_random", "librdkafka's fnv1a_random puts them"),
)
_TELLING: Final = 5
"""Different keys that lie elsewhere from which on it is said what may have put them there; fewer may fit by chance."""
_KEPT: Final = 200
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Misplaced:
    """The verdict about a topic: what is wrong, and what to do, each half a sentence."""

    what: str
    cure: str


class KeySample:
    """The sample of one topic; records without key, or with an empty one, do not count."""

    def __init__(self, keyed: KeyedInput) -> None:
        self.keyed = keyed
        self._choose: KeyPartitioner = partition_for_key if keyed.placement is None else keyed.placement
        self._seen = 0
        self._elsewhere = 0
        self._kept: set[tuple[bytes, int]] = set()

    def add(self, partition: int, keys: Iterable[object]) -> None:
        """Adds the raw keys of records of a partition."""
        choose, count = self._choose, self.keyed.partitions
        for key in keys:
            if not isinstance(key, bytes) or not key:
                continue
            self._seen += 1
            if choose(key, count) != partition:
                self._elsewhere += 1
                if len(self._kept) < _KEPT:
                    self._kept.add((key, partition))

    def verdict(self) -> Misplaced | None:
        """Returns what is wrong; ``None`` while nothing is, or too few records were seen."""
        if not self._elsewhere or self._seen < ENOUGH:
            return None
        keyed = self.keyed
        expected = "Kafka's murmur2" if keyed.placement is None else f"partitioner {keyed.placement.name}"
        likely, cure = self._likely()
        if keyed.met_by:
            effect = f"records of {_listed(keyed.met_by)} that lie by {expected} do not meet them"
        else:
            effect = "who looks a key up asks the wrong partition, and joins by key would lose rows"
        return Misplaced(
            f"{self._elsewhere} of {self._seen} sampled records lie in other partitions than {expected} chooses for "
            f"their keys{likely}; {effect} (read by {_listed(keyed.readers)})",
            f"{cure}; where this is meant so, {SETTING}=false leaves the check out",
        )

    def _likely(self) -> tuple[str, str]:
        """Names what may have put the records where they are, and the cure."""
        placement, partitions = self.keyed.placement, self.keyed.partitions
        different = len({key for key, _ in self._kept})
        if different < _TELLING:
            return "", _told("...")
        for name, said in _KNOWN:
            other = placement_of(name)
            if other != placement and self._fits(other or partition_for_key, partitions):
                return f", namely where {said}", _told(repr(name)) if placement is None else _corrected(name)
        fewer = next((n for n in range(partitions - 1, 1, -1) if self._fits(self._choose, n)), None)
        if fewer is None or different < 2 * _TELLING:  # of many numbers one fits by chance sooner
            return "", _told("...")
        return (
            f", namely where it puts them in a topic of {fewer} partitions, as this one may have been",
            "records from before lie where they lie: write them to a new topic, or join behind repartition()",
        )

    def _fits(self, choose: KeyPartitioner, partitions: int) -> bool:
        return all(choose(key, partitions) == partition for key, partition in self._kept)


def _told(partitioner: str) -> str:
    return (
        'let the producers of the topic have "partitioner": "murmur2_random", or say where they put keys by '
        f"Consumed(partitioner={partitioner})"
    )


def _corrected(name: str) -> str:
    return f"give its source Consumed(partitioner={name!r})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

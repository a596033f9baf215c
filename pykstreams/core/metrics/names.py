"""Names of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class MetricName(NamedTuple):
    """Name, group and tags of a metric; tags are sorted pairs. The description is no part of what makes it another."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()
    description: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetricName) and self[:3] == other[:3]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:3])

    def __str__(self) -> str:
        tags = ",".join(f"{name}={value}" for name, value in self.tags)
        return f"{self.group}:{tags}:{self.name}"


def sorted_tags(tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Returns tags as they are in a name, with the hyphens that keywords cannot have."""
    return tuple(sorted((name.replace("_", "-"), value) for name, value in tags.items()))

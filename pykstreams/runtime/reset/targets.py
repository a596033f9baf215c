"""The offsets that a group is to begin at, as options of a tool ask for them (``StreamsResetter``, 4.3.1).

Invariant: an offset that is not in its partition becomes the nearest one that is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TopicPartition

_DURATION: Final = re.compile(r"P(?:(\d{1,15})D)?(?:T(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15}(?:\.\d{1,3})?)S)?)?")
_UNITS_MS: Final = (24 * 60 * 60 * 1000, 60 * 60 * 1000, 60 * 1000, 1000)


@dataclass(frozen=True, slots=True)
class Current:
    """The offsets that there are."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first records that there still are."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After the last records."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time, in ms since the epoch; the end where there is none."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records further than what was committed, negative for back; from the beginning where nothing was."""

    count: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class Given:
    """An offset for some partitions; the others stay as they are."""

    offsets: Mapping[TopicPartition, int]


Target: TypeAlias = Current | Earliest | Latest | AtTime | ShiftBy | ToOffset | Given


class OffsetClient(Protocol):
    """The methods of an administrative client that this module calls."""

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]: ...


def offsets_for(
    target: Target,
    partitions: Collection[TopicPartition],
    committed: Mapping[TopicPartition, int],
    client: OffsetClient,
) -> dict[TopicPartition, int]:
    """Returns the offset to commit for each partition that is to be changed."""
    if isinstance(target, Current) or not partitions:
        return {}
    if isinstance(target, Given) and (unknown := sorted(set(target.offsets) - set(partitions))):
        raise ConfigError(
            f"the file of offsets names {', '.join(map(str, unknown))}, which the application does not read; take the "
            "line out, or correct it"
        )
    first, last = client.beginning_offsets(partitions), client.end_offsets(partitions)
    match target:
        case Earliest():
            wanted = dict(first)
        case Latest():
            wanted = dict(last)
        case AtTime(timestamp):
            found = client.offsets_at(partitions, max(timestamp, 0))  # -1 would be the end, and so on
            wanted = {place: last[place] if found[place] < 0 else found[place] for place in partitions}
        case ShiftBy(count):
            wanted = {place: committed.get(place, first[place]) + count for place in partitions}
        case ToOffset(offset):
            wanted = dict.fromkeys(partitions, offset)
        case Given(offsets):
            wanted = dict(offsets)
    return {place: min(max(offset, first[place]), last[place]) for place, offset in sorted(wanted.items())}


def duration_ms(text: str) -> int:
    """Reads a duration as Java writes it.

    >>> duration_ms("P1DT2H"), duration_ms("PT0.5S")
    (93600000, 500)
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ConfigError(f"duration is {text!r}; expected one such as P7D, PT2H30M or P1DT12H")
    return round(sum(float(part or 0) * unit for part, unit in zip(found.groups(), _UNITS_MS, strict=True)))


def read_offsets(path: Path) -> Given:
    """Reads lines ``topic,partition,offset``, as Kafka's tools write them; empty lines are left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file of offsets {str(path)!r} cannot be read: {error}; name another one") from error
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        fields = [field.strip().strip('"') for field in line.split(",")]
        if len(fields) != 3 or not fields[0] or not fields[1].isdecimal() or not fields[2].isdecimal():
            raise ConfigError(f"line {number} of {str(path)!r} is {line!r}; expected topic,partition,offset")
        offsets[TopicPartition(fields[0], int(fields[1]))] = int(fields[2])
    return Given(offsets)

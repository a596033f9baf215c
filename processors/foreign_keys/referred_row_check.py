"""Looks whether referred rows lie where the rows that refer to them are sent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pykstreams.core.processor import OperatorContext
from pykstreams.core.shown_values import shown
from pykstreams.core.types import AnyPartitioner
from pykstreams.processors.foreign_keys.row_place_check import row_place_check
from pykstreams.serdes.base import AnySerde

log = logging.getLogger(__name__)


class CompletedByDefaults(Protocol):
    """A partitioner that may need the default key serde."""

    def over_default(self, default: Callable[[], AnySerde], choose: Callable[[bytes, int], int]) -> AnyPartitioner:
        """The partitioner with the default serde in it."""
        ...


@dataclass(frozen=True, slots=True)
class ReferredRowCheck:
    """Compares the partition of each referred row with the one to which left rows are sent, until they differ.

    :param topic: the repartition topic of the left rows, without the application id.
    :param partitioner: chooses the partition of a referred row by its key.
    """

    topic: str
    partitioner: CompletedByDefaults

    def build(self, context: OperatorContext) -> Callable[[object], bool]:
        """Makes the check of the row of a key, which returns whether to look at the next one, too."""
        processing = context.processing
        topic, here = f"{processing.application_id}-{self.topic}", processing.task_id.partition
        partitioner = self.partitioner.over_default(lambda: processing.key_serde, context.default_partition)

        def choose(key: object, count: int) -> object:
            return partitioner(topic, key, None, count)

        def warn(key: object, chosen: object) -> None:
            log.warning(
                "%s: the row %s lies in partition %s, but rows that refer to it are sent to partition %s of topic %r, "
                "so it joins nothing; let its topic be written by Kafka's default partitioner with the key serde of "
                "the table, or send it through to_stream().repartition().to_table()",
                context.node,
                shown(key),
                here,
                chosen,
                topic,
            )

        return row_place_check(context, topic, choose, warn)

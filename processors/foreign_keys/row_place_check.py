"""The check that rows of the right table lie where left rows ask for them.

Nothing fails where they do not: their topic may be written by another partitioner, or its keys otherwise than the
table's key serde writes them, and then results are just missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pykstreams.core.processor import OperatorContext

Row = TypeVar("Row")


def row_place_check(
    context: OperatorContext,
    topic: str,
    choose: Callable[[Row, int], object],
    warn: Callable[[Row, object], None],
) -> Callable[[Row], bool]:
    """Makes the check of a row, which returns whether to look at the next one, too: until one lies elsewhere.

    :param topic: the topic through which left rows ask for rows of the right table; with one partition all lie there.
    :param choose: (row, number of partitions of the topic) -> the partition in which it is asked for.
    :param warn: is called with the row that lies elsewhere, and the partition in which it is asked for.
    """
    here = context.processing.task_id.partition
    count = 0

    def check(row: Row) -> bool:
        nonlocal count
        count = count or context.partition_count(topic)
        if count < 2:
            return False
        chosen = choose(row, count)
        if chosen == here:
            return True
        warn(row, chosen)
        return False

    return check

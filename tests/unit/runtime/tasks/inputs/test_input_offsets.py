"""How far a task has come in inputs that begin anew."""

from __future__ import annotations

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.inputs.input_offsets import InputOffsets

IN = TopicPartition("in", 0)


def at_the_end() -> InputOffsets:
    """Offsets of a partition that ends at 1000, with a marker behind its last record."""
    offsets = InputOffsets()
    offsets.come(IN, 998)
    offsets.processed[IN] = 998
    offsets.reached_end(IN, 1000)
    return offsets


def test_skipped_record_of_a_topic_that_was_made_anew_counts_at_its_own_offset() -> None:
    offsets = at_the_end()
    offsets.come(IN, 0)
    offsets.note_skipped({IN: 0})

    assert offsets.next_of(IN, None) == 1


def test_end_of_a_topic_that_was_made_anew_is_news_where_it_lies_behind_what_was_processed_of_it() -> None:
    offsets = at_the_end()
    offsets.come(IN, 0)
    offsets.processed[IN] = 0

    assert offsets.reached_end(IN, 2)
    assert offsets.next_of(IN, None) == 2


def test_records_behind_the_end_change_nothing_of_what_lies_before() -> None:
    offsets = at_the_end()
    offsets.come(IN, 1000)

    assert offsets.next_of(IN, None) == 1000

"""Which letters were replayed, in what a group commits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import StreamsError
from pykstreams.runtime.dead_letters.progress import Replayed


@given(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=20))
def test_ranges_equal_a_set_whenever_they_are_committed_and_read(offset: int, added: list[tuple[int, int]]) -> None:
    replayed, model = Replayed(offset), set(range(offset))
    for start, size in added:
        replayed.add(start, start + size)
        model.update(range(start, start + size))
        replayed = Replayed(*replayed.committed())

    assert {number for number in range(60) if replayed.has(number)} == model


def test_what_is_committed_is_the_first_that_was_not_replayed_and_those_behind() -> None:
    replayed = Replayed(10)
    replayed.add(12, 13)
    replayed.add(15, 18)
    assert replayed.committed() == (10, "1:2,5-7")

    replayed.add(10, 12)
    assert replayed.committed() == (13, "1:2-4")


def test_more_places_than_a_group_can_keep_are_an_error() -> None:
    replayed = Replayed()
    for number in range(1, 4000, 2):
        replayed.add(number, number + 1)

    with pytest.raises(
        StreamsError, match=r"lie in 2001 places, .*replay those between them, too, or take another group"
    ):
        replayed.committed()


@pytest.mark.parametrize("text", ["AgAAAAAAAAAF", "1:x", "1:2-y"])
def test_the_text_of_somebody_else_is_refused(text: str) -> None:
    with pytest.raises(StreamsError, match=r"does not tell what was replayed .*; give a group that nothing else uses"):
        Replayed(3, text)

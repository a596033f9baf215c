"""Which written offsets have reached the disk, by how many of them have not."""

from __future__ import annotations

from pykstreams.state.engines.flushed_offset import FlushedOffset


def test_nothing_is_known_before_an_offset_has_left_the_buffers() -> None:
    offset = FlushedOffset()
    without = offset.known(0)
    offset.write(7)

    assert (without, offset.known(1)) == (None, None)


def test_the_last_offset_is_known_when_none_waits() -> None:
    offset = FlushedOffset()
    offset.write(7)
    offset.write(9)

    assert offset.known(0) == 9


def test_of_those_that_have_left_the_last_is_known_that_was_asked_about() -> None:
    offset = FlushedOffset()
    for number in (1, 2, 3):
        offset.write(number)
    offset.known(3)
    for number in (4, 5, 6):
        offset.write(number)
    offset.known(6)

    assert [offset.known(waiting) for waiting in (4, 3, 2, 1, 0)] == [None, 3, 3, 3, 6]


def test_an_offset_that_is_known_stays_known_while_others_wait() -> None:
    offset = FlushedOffset()
    offset.write(1)
    offset.known(0)
    offset.write(2)

    assert offset.known(1) == 1


def test_all_are_known_when_everything_was_flushed() -> None:
    offset = FlushedOffset()
    offset.write(1)
    offset.known(1)
    offset.write(2)
    offset.flush()
    offset.write(3)

    assert (offset.known(1), offset.known(0)) == (2, 3)


def test_however_long_buffers_are_not_flushed_little_is_kept_and_nothing_that_waits_is_known() -> None:
    offset = FlushedOffset()
    for number in range(10_000):
        offset.write(number)
        assert offset.known(number + 1) is None
    half = offset.known(5_000)

    assert len(offset._notes) < 300
    assert half is not None and half < 5_000
    assert offset.known(0) == 9_999

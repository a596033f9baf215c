"""The queue by priority beside a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.runtime.membership.assignment.java_queue import JavaQueue


@given(st.lists(st.integers()), st.lists(st.integers()), st.data())
def test_items_come_out_by_priority(first: list[int], later: list[int], data: st.DataObject) -> None:
    queue = JavaQueue(lambda item: -item, first)
    for item in later:
        queue.push(item)
    left = [*first, *later]
    for item in data.draw(st.lists(st.sampled_from(left), unique=True) if left else st.just([])):
        assert item in queue
        queue.remove(item)
        left.remove(item)
    assert sorted(queue) == sorted(left) and len(queue) == len(left)
    assert [queue.pop() for _ in range(len(queue))] == sorted(left, reverse=True)


def test_equal_items_come_out_as_with_java() -> None:
    # java.util.PriorityQueue by length: add a, b, c, d, and poll until it is empty
    queue = JavaQueue(len)
    for item in ("a", "b", "c", "d"):
        queue.push(item)
    assert [queue.pop() for _ in range(4)] == ["a", "d", "c", "b"]

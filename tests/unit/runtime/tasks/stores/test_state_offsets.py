"""How far the stores of a task are: what is told of open stores, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets

COUNTS, SUMS = TopicPartition("shop-counts-changelog", 0), TopicPartition("shop-sums-changelog", 0)


@dataclass
class Store:
    name: str
    persistent: bool = True
    flushed: int | None = None

    def flushed_offset(self) -> int | None:
        return self.flushed


def offsets() -> StateOffsets:
    return StateOffsets({"counts": COUNTS, "sums": SUMS})


def test_stores_are_at_the_offsets_they_were_committed_with_and_at_0_before() -> None:
    found = offsets()
    before = found.committed()
    found.note(Store("counts"), 5)
    found.note(Store("counts"), 7)
    found.note(Store("counts"), None)

    assert before == {COUNTS: 0, SUMS: 0}
    assert found.committed() == {COUNTS: 7, SUMS: 0}


def test_a_store_in_memory_counts_while_it_is_open_and_leaves_nothing() -> None:
    found = offsets()
    found.note(Store("counts"), 7)
    found.note(Store("sums", persistent=False), 9)

    assert found.committed() == {COUNTS: 7, SUMS: 9}
    assert found.durable() == {"counts": 7}


def test_a_store_without_a_changelog_does_not_count() -> None:
    found = offsets()
    found.note(Store("scratch"), 7)

    assert found.committed() == {COUNTS: 0, SUMS: 0}
    assert found.durable() == {}


def test_what_is_flushed_is_found_out_at_the_commit_after_somebody_asked() -> None:
    found, store = offsets(), Store("counts", flushed=3)
    found.note(store, 5)
    asked = found.flushed()
    found.note(store, 6)
    store.flushed = 6
    found.note(store, 7)

    assert asked == {}
    assert found.flushed() == {"counts": 3}


def test_what_a_store_was_opened_with_is_on_disk_until_more_is_known() -> None:
    found, store = offsets(), Store("counts")
    found.opened(store, 5)
    found.opened(Store("sums", persistent=False), None)
    first = found.flushed()
    found.note(store, 7)
    second = found.flushed()
    store.flushed = 6
    found.note(store, 8)

    assert (first, second, found.flushed()) == ({"counts": 5}, {"counts": 5}, {"counts": 6})


def test_a_store_that_does_not_tell_what_is_flushed_is_left_out() -> None:
    found = offsets()
    found.flushed()
    found.note(Store("counts"), 5)

    assert found.flushed() == {}


def test_nothing_is_left_of_stores_that_are_opened_anew() -> None:
    found = offsets()
    found.flushed()
    found.note(Store("counts", flushed=1), 5)
    found.clear()

    assert (found.committed(), found.durable(), found.flushed()) == ({COUNTS: 0, SUMS: 0}, {}, {})

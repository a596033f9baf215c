"""Copies of stores that workers leave behind: the newest ones count, and must hold what the changelog says."""

import operator

from tests.faults.stores import Copy, check_copies


def copy(offset: int, worker: str = "one", partition: int = 0, **rows: int) -> Copy:
    return Copy(worker, partition, offset, rows)


def test_the_newest_copies_of_all_partitions_hold_what_they_must() -> None:
    copies = [copy(9, a=2), copy(9, "two", a=2), copy(4, "three", a=1), copy(5, partition=1, b=1)]

    assert check_copies(copies, {"a": 2, "b": 1}, operator.eq) == []


def test_copies_of_one_offset_must_be_alike() -> None:
    [wrong] = check_copies([copy(9, a=2), copy(9, "two", a=1)], {"a": 2}, operator.eq)

    assert wrong == "partition 0 of two is not that of one at 9"


def test_missing_further_and_other_rows_are_wrong() -> None:
    wrong = check_copies([copy(9, a=1, c=1)], {"a": 2, "b": 1}, operator.eq)

    assert wrong == [
        "1 of 2 keys are missing: ['b']",
        "1 keys are too many: ['c']",
        "1 of 2 keys are otherwise: a is 1, not 2",
    ]


def test_counts_may_be_higher_where_that_is_said() -> None:
    assert check_copies([copy(9, a=3)], {"a": 2}, operator.ge) == []
    assert len(check_copies([copy(9, a=1)], {"a": 2}, operator.ge)) == 1
